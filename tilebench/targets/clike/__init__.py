"""Text for languages like C, shared by targets that compile one thread's code: CUDA, and what comes.

What a target has of its own is a `Dialect` (spellings), a `Prelude` (small functions in front of the
kernel) and its intrinsics; statements, expressions and line numbers are the same for all.
"""
