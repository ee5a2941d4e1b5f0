"""The ordered pipeline; a folder for each stage, and in it a file for each pass."""
