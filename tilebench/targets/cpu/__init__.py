"""The CPU target: tile programs to LLVM, run over a pool of threads."""
