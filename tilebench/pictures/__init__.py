"""What a compilation decided, as data to draw: who holds what, banks, sectors, shared memory, occupancy."""
