"""What passes, targets and records ask of a kernel. Nothing here changes one."""
