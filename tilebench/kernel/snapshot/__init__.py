"""What a kernel function saw around itself when it was traced, and whether that still stands."""
