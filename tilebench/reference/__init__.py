"""The reference: a kernel run in NumPy, the error bounds of its result, and the check against them."""

from __future__ import annotations

from .bounds import Bounded, run_bounded
from .check import CheckError, CheckReport, OutputReport, WorstElement, check_function, compare, poison
from .inputs import input_for, make_inputs, random_array, strided_empty
from .run import run_reference

__all__ = [
    "Bounded", "CheckError", "CheckReport", "OutputReport", "WorstElement", "check_function", "compare",
    "input_for", "make_inputs", "poison", "random_array", "run_bounded", "run_reference",
    "strided_empty",
]  # fmt: skip
