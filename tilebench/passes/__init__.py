"""The ordered pipeline, and a file for each pass."""
