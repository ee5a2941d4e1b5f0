"""A host array as it travels to a device and back: all bytes from its first element to behind its last.

Between the elements of a strided array lies what is somebody else's: it travels along, so that strides mean
the same on the device, and is left alone on the way back.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from .context import Context
from .memory import copy_in, copy_out


class HostArray:
    """The memory of a described array (`ArrayInfo`), whatever library owns it."""

    def __init__(self, info: Any) -> None:
        size = info.dtype.numpy.itemsize
        # Its memory stays as long as this.
        self.owner: Any = info.owner
        self.shape: tuple[int, ...] = info.shape
        self.strides = tuple(stride * size for stride in info.strides)
        self.size: int = size
        steps = zip(self.shape, self.strides, strict=True)
        span = 0 if 0 in self.shape else sum((extent - 1) * step for extent, step in steps) + size
        raw = (ctypes.c_uint8 * span).from_address(info.pointer) if span else b""
        self.bytes = np.frombuffer(raw, np.uint8)
        self._gapless = span == math.prod(self.shape) * size

    @property
    def nbytes(self) -> int:
        return self.bytes.nbytes

    def upload(self, context: Context, pointer: int) -> None:
        """To the device at `pointer`, in order with the default stream."""
        copy_in(context, pointer, self.bytes)

    def download(self, context: Context, pointer: int) -> None:
        """The elements back from the device; waits until they are there."""
        if self._gapless:
            copy_out(context, self.bytes, pointer)
            return
        back = np.empty(self.nbytes, np.uint8)
        copy_out(context, back, pointer)
        self._elements(self.bytes)[...] = self._elements(back)

    def _elements(self, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.ndarray(self.shape, f"V{self.size}", raw.data, strides=self.strides)
