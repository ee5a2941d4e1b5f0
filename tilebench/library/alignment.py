"""Arrays that start off the alignment of their device's accesses, as a view of a longer array may.

Kernels for them take elements through registers, in accesses as narrow as the elements: no box, no copy that
goes on by itself, and more registers for the same tile, so that schedule files have rules of their own for
them (`aligned`). An operator that computes much for each byte is better served by copies in memory of their
own: on an H200 a product of 4001^3, whose rows no vectors divide, takes 919 us where one of 4096^3 takes 183
(`schedules/matmul.sm_90a.toml`), and a copy reads and writes each byte once at some 4 TB/s. So a copy is
level at 736 us / (2 * 4001^3) = 5.7e-15 s an operation against 5e-13 s a byte: 87 operations a byte.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

import numpy as np

from .. import settings
from ..runtime.describe import ArrayInfo, describe, library, numpy_pointer
from ..targets import resolve
from ..targets.devices import HOST
from .binding import target_of
from .definition import Effort

# Operations a byte from which arrays are copied: more than twice what makes a copy level, since each copy is
# a launch too. Reasoned from the times above, and not timed itself.
WORTH_A_COPY = 256
# Libraries whose arrays can be copied to memory of their own on the device where they are.
_COPIED = ("numpy", "torch", "cupy")


def alignment_on(device: str) -> int:
    """Bytes of whose multiples arrays on a device, `cuda:0` or its kind, start for wide accesses."""
    return _alignment(device.partition(":")[0], settings.target())


@lru_cache(64)
def _alignment(kind: str, _: str) -> int:
    return resolve(target_of(kind))[1].alignment


def is_aligned(array: Any) -> bool:
    """Whether an array starts at a multiple of the alignment on its device.

    Raises what `describe` raises for what is no array, and torch's `RuntimeError` for one without memory.
    """
    kind = cast(Any, type(array))
    if kind is np.ndarray:
        return not numpy_pointer(array) % alignment_on(HOST)
    torch: Any = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor:
        return not array.data_ptr() % alignment_on(array.device.type)
    info = describe(array)
    return not info.pointer % alignment_on(info.device)


def are_aligned(infos: Iterable[ArrayInfo]) -> bool:
    """The same of described arrays, all of them."""
    return not any(info.pointer % alignment_on(info.device) for info in infos)


def is_copied(array: Any, effort: Effort) -> bool:
    """Whether arrays of an operator that takes so much are copied where they start off the alignment."""
    return library(array) in _COPIED and effort.flops >= WORTH_A_COPY * effort.bytes


def aligned(array: Any) -> Any:
    """The array, or a copy that starts where its library's own arrays do, its axes in the same order.

    The copy is made on the current stream of the array's library, and stands in a graph that captures it.
    None stays None.
    """
    if array is None or is_aligned(array):
        return array
    if library(array) == "torch":
        return array.clone()
    if library(array) == "cupy":
        with array.device:
            return array.copy(order="K")
    return array.copy(order="K")


def write_back(result: Any, out: Any) -> None:
    """Copy a result to the array that a caller gave for it, on the current stream of its library."""
    if library(out) == "torch":
        out.copy_(result)
    else:
        out[...] = result


__all__ = ["aligned", "alignment_on", "are_aligned", "is_aligned", "is_copied", "write_back"]
