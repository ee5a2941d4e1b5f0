"""LLVM as text: values, instructions, functions with loops, loops over vectors."""

from __future__ import annotations

from .module import Function, Loop, Module
from .values import (
    Index,
    Value,
    bytes_of,
    const,
    const_lanes,
    element_of,
    i32,
    i64,
    lanes_of,
    mangle,
    vector,
)

__all__ = [
    "Function", "Index", "Loop", "Module", "Value", "bytes_of", "const", "const_lanes", "element_of", "i32",
    "i64", "lanes_of", "mangle", "vector",
]  # fmt: skip
