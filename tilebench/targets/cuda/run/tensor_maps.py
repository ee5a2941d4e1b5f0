"""Tensor maps of a launch, encoded by the driver from the arrays of a call and kept for the next one."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ....errors import LaunchError
from ....ir import Function, Var
from ..tensor_maps import PROMOTION_256, Encoding, encoding_of, tensor_maps
from .context import context
from .driver import Driver, driver

SIZE = 128
_MOST_KNOWN = 256
# CUtensorMapInterleave and CUtensorMapFloatOOBfill: boxes lie in rows, and zeros stand for what is outside.
_NO_INTERLEAVE, _ZEROS = 0, 0


class TensorMaps:
    """The maps of a kernel's launches, by the addresses and sizes of a call."""

    def __init__(self, function: Function) -> None:
        self.maps = tensor_maps(function)
        # Of each map the number of its array among the arrays.
        names = [array.name for array in function.arrays]
        self._arrays = [names.index(each.array.name) for each in self.maps]
        self._sizes = [(k, p.name) for k, p in enumerate(function.params) if isinstance(p, Var)]
        self._known: dict[tuple[Any, ...], tuple[bytes, ...]] = {}

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int], ordinal: int) -> tuple[bytes, ...]:
        """The maps of a call on a device, 128 bytes each. `ArgumentError` for an array that none describes.

        The driver looks at the addresses in the context that is current, which a process that has not begun
        with torch has none of.
        """
        sizes = {name: arguments[k] for k, name in self._sizes}
        key = (*[pointers[k] for k in self._arrays], *sizes.values())
        found = self._known.get(key)
        if found is None:
            with context(ordinal):
                found = tuple(
                    _encode(driver(), encoding_of(each, sizes), pointers[k], each.array.name)
                    for each, k in zip(self.maps, self._arrays, strict=True)
                )
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = found
        return found


def _encode(driver: Driver, encoding: Encoding, pointer: int, name: str) -> bytes:
    """One map as the driver writes it; of an array without elements, which nobody reads, zeros."""
    if 0 in encoding.extents:
        return bytes(SIZE)
    if not hasattr(driver.lib, "cuTensorMapEncodeTiled"):
        raise LaunchError("this driver knows no tensor maps", hint="update the driver")
    raw = ctypes.create_string_buffer(SIZE + 64)
    start = -ctypes.addressof(raw) % 64
    space = (ctypes.c_char * SIZE).from_buffer(raw, start)
    rank = len(encoding.extents)
    code = driver.lib.cuTensorMapEncodeTiled(
        ctypes.byref(space), ctypes.c_int(encoding.element), ctypes.c_uint32(rank), ctypes.c_void_p(pointer),
        (ctypes.c_uint64 * rank)(*encoding.extents), (ctypes.c_uint64 * max(1, rank - 1))(*encoding.strides),
        (ctypes.c_uint32 * rank)(*encoding.box), (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(_NO_INTERLEAVE), ctypes.c_int(encoding.swizzle), ctypes.c_int(PROMOTION_256),
        ctypes.c_int(_ZEROS),
    )  # fmt: skip
    driver.check(code, f"describing {name} to the tensor memory accelerator")
    return bytes(space)


__all__ = ["SIZE", "TensorMaps"]
