"""Kernels as files: a Python file that runs without a notebook, a schedule beside it, measurements to
repeat.
"""
