"""From tile statements to the code of one thread."""
