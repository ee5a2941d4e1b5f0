"""Numbers: what memory holds and registers compute with, and the elementary functions."""
