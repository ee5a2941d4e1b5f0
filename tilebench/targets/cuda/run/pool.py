"""Device memory in the order of a stream: taken and given back without waiting, from a pool of our own.

A capture into a CUDA graph records both, and each run of the graph has the memory again.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Generator
from contextlib import contextmanager

from .context import Context
from .memory import DeviceMemory

# What the pool keeps when nobody uses it; more goes back to the driver at the next synchronisation.
KEPT_BYTES = 1 << 30
_PINNED, _ON_DEVICE, _RELEASE_THRESHOLD = 1, 1, 4


class _Properties(ctypes.Structure):
    """CUmemPoolProps: memory of one device, not shared with other processes."""

    _fields_ = (
        ("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int),
        ("security", ctypes.c_void_p), ("most", ctypes.c_size_t), ("rest", ctypes.c_char * 56),
    )  # fmt: skip


# None for a device that has no pools.
_pools: dict[int, ctypes.c_void_p | None] = {}
_lock = threading.Lock()


def _pool(context: Context) -> ctypes.c_void_p | None:
    """The pool of a device, made at first use. Each launch asks, so the driver is asked once."""
    ordinal = context.device.ordinal
    if ordinal not in _pools:
        with _lock:
            if ordinal not in _pools:
                _pools[ordinal] = _made(context)
    return _pools[ordinal]


def _made(context: Context) -> ctypes.c_void_p | None:
    if not context.device.attribute("MEMORY_POOLS_SUPPORTED"):
        return None
    with context:
        lib, pool = context.driver.lib, ctypes.c_void_p()
        wanted = _Properties(type=_PINNED, place=_ON_DEVICE, device=context.device.ordinal)
        code = lib.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(wanted))
        context.driver.check(code, f"making a pool of memory on {context.device.name}")
        most = ctypes.c_uint64(KEPT_BYTES)
        code = lib.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, ctypes.byref(most))
        context.driver.check(code, "saying how much the pool of memory keeps")
    return pool


@contextmanager
def stream_memory(context: Context, stream: int, size: int) -> Generator[int]:
    """The address of `size` bytes for the work that the block puts on the stream."""
    pool = _pool(context)
    if pool is None:
        # A device without pools: freeing waits for what is running.
        memory = DeviceMemory(context, size)
        try:
            yield memory.pointer
        finally:
            memory.free()
        return
    pointer, on = ctypes.c_uint64(), ctypes.c_void_p(stream)
    with context:
        lib, count = context.driver.lib, ctypes.c_size_t(max(size, 1))
        code = lib.cuMemAllocFromPoolAsync(ctypes.byref(pointer), count, pool, on)
        context.driver.check(code, f"allocating {size} bytes for T.alloc_global on {context.device.name}")
        try:
            yield pointer.value
        finally:
            code = lib.cuMemFreeAsync(pointer, on)
            context.driver.check(code, "freeing the memory of T.alloc_global")


__all__ = ["stream_memory"]
