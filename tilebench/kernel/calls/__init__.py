"""Calls of a kernel: arguments bound and checked, the variant that fits them, arrays as NumPy's."""
