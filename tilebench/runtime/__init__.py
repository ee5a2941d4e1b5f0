"""What happens when a compiled kernel is used: arguments, the disk cache, the measuring child."""
