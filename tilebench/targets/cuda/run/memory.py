"""Device memory, copies, streams and events by the driver API."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ....errors import ArgumentError
from .context import Context


class DeviceMemory:
    """Bytes on a device. Freed by `free()`, or when the last reference goes."""

    def __init__(self, context: Context, size: int) -> None:
        if size < 0:
            raise ArgumentError("memory of {size} bytes was asked for", size=size)
        self.context = context
        self.size = size
        self.pointer = 0
        pointer = ctypes.c_uint64()
        with context:
            # The driver refuses zero bytes; an empty array still needs an address.
            code = context.driver.lib.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
            context.driver.check(code, f"allocating {size} bytes on {context.device.name}")
        self.pointer = pointer.value

    def free(self) -> None:
        pointer, self.pointer = self.pointer, 0
        if pointer:
            with self.context:
                code = self.context.driver.lib.cuMemFree_v2(ctypes.c_uint64(pointer))
                self.context.driver.check(code, "freeing memory")

    def __del__(self) -> None:
        try:
            self.free()
        except Exception:
            # At the end of a process, or in a lost context, there is nothing left to free.
            return


def _span(array: np.ndarray[Any, Any]) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    if not array.flags.c_contiguous:
        raise ArgumentError("a copy to or from the device needs a contiguous array", expected="C order")
    return ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)


def copy_in(context: Context, pointer: int, array: np.ndarray[Any, Any], stream: int = 0) -> None:
    """Copy a contiguous NumPy array to the device at `pointer`, in order with `stream`."""
    source, size = _span(array)
    with context:
        lib = context.driver.lib
        code = lib.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(pointer), source, size, ctypes.c_void_p(stream))
        context.driver.check(code, "copying to the device")


def copy_out(context: Context, array: np.ndarray[Any, Any], pointer: int, stream: int = 0) -> None:
    """Copy from the device at `pointer` into a contiguous NumPy array; waits until it is there."""
    target, size = _span(array)
    with context:
        lib = context.driver.lib
        code = lib.cuMemcpyDtoHAsync_v2(target, ctypes.c_uint64(pointer), size, ctypes.c_void_p(stream))
        context.driver.check(code, "copying from the device")
        context.driver.check(lib.cuStreamSynchronize(ctypes.c_void_p(stream)), "copying from the device")


def fill_bytes(context: Context, pointer: int, value: int, size: int, stream: int = 0) -> None:
    """Set `size` bytes at `pointer` to `value` (0 to 255), in order with `stream`."""
    with context:
        code = context.driver.lib.cuMemsetD8Async(
            ctypes.c_uint64(pointer), ctypes.c_ubyte(value), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )
        context.driver.check(code, "filling memory")


def copy_within(context: Context, to: int, pointer: int, size: int, stream: int = 0) -> None:
    """Copy `size` bytes on the device from `pointer` to `to`, in order with `stream`."""
    with context:
        code = context.driver.lib.cuMemcpyDtoDAsync_v2(
            ctypes.c_uint64(to), ctypes.c_uint64(pointer), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )
        context.driver.check(code, "copying on the device")


class Stream:
    """A stream of its own (not blocking the legacy default stream). `handle` is the CUstream."""

    _NON_BLOCKING = 1

    def __init__(self, context: Context) -> None:
        self.context = context
        handle = ctypes.c_void_p()
        with context:
            code = context.driver.lib.cuStreamCreate(ctypes.byref(handle), self._NON_BLOCKING)
            context.driver.check(code, "making a stream")
        self.handle = handle.value or 0

    def synchronize(self) -> None:
        self.context.synchronize(self.handle)

    def close(self) -> None:
        handle, self.handle = self.handle, 0
        if handle:
            with self.context:
                code = self.context.driver.lib.cuStreamDestroy_v2(ctypes.c_void_p(handle))
                self.context.driver.check(code, "closing a stream")


class Event:
    """A point in a stream with a time. `seconds_since` waits for both events' work to be done."""

    def __init__(self, context: Context) -> None:
        self.context = context
        handle = ctypes.c_void_p()
        with context:
            context.driver.check(context.driver.lib.cuEventCreate(ctypes.byref(handle), 0), "making an event")
        self.handle = handle

    def record(self, stream: int = 0) -> None:
        with self.context:
            code = self.context.driver.lib.cuEventRecord(self.handle, ctypes.c_void_p(stream))
            self.context.driver.check(code, "recording an event")

    def synchronize(self) -> None:
        with self.context:
            code = self.context.driver.lib.cuEventSynchronize(self.handle)
            self.context.driver.check(code, "the kernel failed while it ran")

    def seconds_since(self, start: Event) -> float:
        """Seconds between two events, as the device measured them (about 0.5 us resolution)."""
        self.synchronize()
        milliseconds = ctypes.c_float()
        with self.context:
            code = self.context.driver.lib.cuEventElapsedTime(
                ctypes.byref(milliseconds), start.handle, self.handle
            )
            self.context.driver.check(code, "reading the time between two events")
        # Whole nanoseconds, finer than the clock: what a float32 of milliseconds adds is none of its.
        return round(milliseconds.value * 1e6) / 1e9

    def close(self) -> None:
        if self.handle.value:
            with self.context:
                code = self.context.driver.lib.cuEventDestroy_v2(self.handle)
                self.context.driver.check(code, "closing an event")
            self.handle = ctypes.c_void_p()
