"""A kernel in the measuring child: packed as plain data, timed there, rehearsed before its first launch."""
