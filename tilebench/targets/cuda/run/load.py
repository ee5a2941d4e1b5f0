"""Running a cubin: a launch on the caller's device and stream, or a round trip for host arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import ArgumentError
from ....passes.reads_writes import reads_and_writes
from ...build import Build
from .arrays import current_stream
from .clock import CudaArrays
from .context import context
from .launch import Launch
from .memory import DeviceMemory, copy_in, copy_out
from .modules import Module

# What vector accesses and `__align__` promise of every parameter's address, in bytes.
ALIGNMENT = 16


class CudaExecutable:
    """A loaded kernel. One module for each device it has run on, made at the first call there.

    Called with arrays in parameter order, all on one device or all NumPy. Device arrays are used
    in place, on the caller's current stream, without waiting, so a CUDA graph can capture it.
    NumPy arrays are copied to the device and what the kernel writes is copied back.
    """

    def __init__(self, build: Build) -> None:
        self.build = build
        self.params = build.function.params
        self.written = reads_and_writes(build.function)[1]
        self._launches: dict[int, Launch] = {}
        self._lock = threading.Lock()

    def launch_on(self, ordinal: int) -> Launch:
        """The launch for one device, its module loaded at first use."""
        with self._lock:
            launch = self._launches.get(ordinal)
            if launch is None:
                data = self.build.data
                function = Module(self.build.code, context(ordinal)).function(data["entry"])
                launch = Launch(
                    function, "P" * len(self.params), grid=data["grid"], block=(data["threads"],),
                    shared=data["shared_bytes"],
                )  # fmt: skip
                self._launches[ordinal] = launch
            return launch

    def __call__(self, arrays: Sequence[Any]) -> None:
        first = arrays[0].device
        if first == "cpu":
            self._round_trip(arrays)
            return
        pointers = [array.pointer for array in arrays]
        for array, pointer in zip(arrays, pointers, strict=True):
            if pointer % ALIGNMENT or array.device is not first:
                self._explain(arrays)
        ordinal = int(first[5:])
        launch = self._launches.get(ordinal) or self.launch_on(ordinal)
        launch(current_stream(arrays[0].owner, ordinal), *pointers)

    def _explain(self, arrays: Sequence[Any]) -> None:
        """Raise `ArgumentError` for arrays on different devices, or at an address that vectors cannot use."""
        first = arrays[0].device
        for param, array in zip(self.params, arrays, strict=True):
            if array.device != first:
                raise ArgumentError(
                    "{name} lies on {there}, the first array on {here}", name=param.name, there=array.device,
                    here=first, hint="move all arrays to one device",
                )  # fmt: skip
            if array.pointer % ALIGNMENT:
                raise ArgumentError(
                    "{name} starts at an address that is no multiple of {align} bytes", name=param.name,
                    align=ALIGNMENT, hint="pass a copy of the slice: accesses are up to that wide",
                )  # fmt: skip

    def _round_trip(self, arrays: Sequence[Any]) -> None:
        where = context(0)
        hosts = [_host_view(host) for host in arrays]
        copies: list[DeviceMemory] = []
        try:
            for host in hosts:
                copy = DeviceMemory(where, host.nbytes)
                copies.append(copy)
                copy_in(where, copy.pointer, host)
            self.launch_on(0)(0, *(copy.pointer for copy in copies))
            for param, host, copy in zip(self.params, hosts, copies, strict=True):
                if param.name in self.written:
                    copy_out(where, host, copy.pointer)
            where.synchronize()
        finally:
            for copy in copies:
                copy.free()

    def device_arrays(self, arrays: list[np.ndarray[Any, Any]]) -> CudaArrays:
        """Copies of the arrays on device 0, with its clock and cache flush, for timing."""
        return CudaArrays(context(0), self.launch_on(0), arrays)


def _host_view(array: Any) -> np.ndarray[Any, Any]:
    """Bytes of a contiguous host array at its address, whatever library owns it."""
    size = array.bytes
    if not size:
        return np.empty(0, np.uint8)
    raw = (ctypes.c_uint8 * size).from_address(array.pointer)
    return np.frombuffer(raw, np.uint8)


def load(build: Build) -> CudaExecutable:
    """The executable of a build whose cubin has been made."""
    return CudaExecutable(build)
