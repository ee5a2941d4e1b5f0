"""What a schedule, a hint or a default chose is written into the kernel."""
