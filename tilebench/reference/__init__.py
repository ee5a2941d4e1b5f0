"""The reference: a kernel run in NumPy, the error bounds of its result, and the check against them."""

from __future__ import annotations

from .bounds import Bounded, run_bounded
from .run import run_reference

__all__ = ["Bounded", "run_bounded", "run_reference"]
