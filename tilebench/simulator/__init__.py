"""Running the stage `threaded` without a GPU."""
