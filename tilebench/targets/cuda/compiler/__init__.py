"""CUDA text to a cubin by NVRTC, and what is read off the result: PTX lines, registers, SASS."""
