"""The stage `threaded` as CUDA C: the dialect, its prelude and the words of threads that it has."""
