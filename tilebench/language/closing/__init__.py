"""Rewrites of a whole traced kernel: what stands in it only while it is traced is gone after them.

`frontend/finish.py` has their order. Each takes a kernel, with what the builder noted of it, and returns one.
"""
