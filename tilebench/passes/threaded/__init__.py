"""What is done around the lowering to one thread: the shared-memory map, barriers, counters."""
