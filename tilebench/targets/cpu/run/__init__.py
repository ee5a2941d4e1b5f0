"""Running on this machine: machine code, its loading, and the pool of threads."""
