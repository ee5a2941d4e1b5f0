"""The stream a user's array is worked on: the caller's current one, in its own library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, cast


@cache
def _torch_stream() -> Any:
    """torch's function from a device number to its current stream: the raw one where it exists."""
    torch: Any = importlib.import_module("torch")
    # current_stream() builds a Stream object, 1.5 us; the raw handle takes 0.1 us.
    raw: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def public(ordinal: int) -> int:
        return int(torch.cuda.current_stream(ordinal).cuda_stream)

    return raw or public


@cache
def _cupy_stream() -> Any:
    """CuPy's function to its current stream."""
    cupy: Any = importlib.import_module("cupy")
    return cupy.cuda.get_current_stream


@lru_cache(maxsize=64)
def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def current_stream(array: Any, ordinal: int) -> int:
    """The stream that the array's library works on now, on that device; 0 (the default stream) for others."""
    root = _library(type(cast("object", array)))
    if root == "torch":
        return _torch_stream()(ordinal)
    return int(_cupy_stream()().ptr) if root == "cupy" else 0


def stream_function(array: Any) -> Callable[[int], int]:
    """The function from a device's number to the current stream there, of the array's library."""
    if _library(type(cast("object", array))) == "torch":
        return cast("Callable[[int], int]", _torch_stream())
    return lambda ordinal: current_stream(array, ordinal)
