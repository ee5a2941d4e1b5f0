"""The kernels of the library, in the tile language: what is computed, and no thread in it."""
