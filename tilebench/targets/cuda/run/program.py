"""Several launches of one cubin, in order on one stream, and the memory that they work in together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ....passes.analysis.launches import is_program, parts_of
from ....passes.analysis.reads_writes import reads_and_writes
from ...build import Build
from ...devices import HOST
from ...scalars import letters
from ...workspaces import Workspaces
from .arrays import current_stream
from .clock import CudaArrays
from .context import context
from .host import HostArray
from .load import CudaExecutable, explain_places, round_trip, settle
from .memory import DeviceMemory
from .modules import Modules
from .pool import stream_memory


class CudaProgram:
    """Called as one launch is: arrays of one device are used in place, on the caller's current stream.

    The launches follow each other there. Memory of `T.alloc_global` is taken and given back in the order
    of the stream, so that nobody waits, calls of several threads never share it, and a CUDA graph captures
    it too. NumPy arrays are copied to the device and back.
    """

    def __init__(self, build: Build) -> None:
        self.arrays = build.function.arrays
        self.kinds = letters(build.function)
        self.written = reads_and_writes(build.function)[1]
        self.workspaces = Workspaces(build.function)
        modules = Modules(build.code)
        rows = build.data["launches"]
        self.launches = [
            CudaExecutable(replace(build, function=part, data={**build.data, "launches": (row,)}), modules)
            for part, row in zip(parts_of(build.function), rows, strict=True)
        ]

    def __call__(self, arguments: Sequence[Any], /) -> None:
        infos = self._arrays_of(arguments)
        device = infos[0].device if infos else HOST
        if device == HOST:
            round_trip(self.arrays, infos, self.written, lambda found: self._launched(0, 0, arguments, found))
            return
        explain_places(self.arrays, infos)
        ordinal = int(device[5:])
        stream = current_stream(infos[0].owner, ordinal)
        self._launched(ordinal, stream, arguments, [info.pointer for info in infos])
        settle(infos, ordinal)

    def _arrays_of(self, arguments: Sequence[Any]) -> list[Any]:
        return [argument for argument, kind in zip(arguments, self.kinds, strict=True) if kind == "P"]

    def _launched(self, ordinal: int, stream: int, arguments: Sequence[Any], pointers: Sequence[int]) -> None:
        with self._memory(ordinal, stream, arguments) as memory:
            self._in_order(ordinal, stream, (*arguments, *memory), (*pointers, *[m.pointer for m in memory]))

    def _in_order(self, ordinal: int, stream: int, arguments: Sequence[Any], pointers: Sequence[int]) -> None:
        for launch in self.launches:
            launch.launch(ordinal, stream, arguments, pointers)

    @contextmanager
    def _memory(self, ordinal: int, stream: int, arguments: Sequence[Any]) -> Generator[tuple[Any, ...]]:
        """The arrays that the call works in, until the stream is past the block."""
        if not self.workspaces.buffers:
            yield ()
            return
        layout = self.workspaces(arguments)
        with stream_memory(context(ordinal), stream, layout.size) as pointer:
            yield layout.placed(pointer)

    def device_arrays(self, arguments: list[Any]) -> CudaArrays:
        """Copies of described host arrays on device 0, with its clock and cache flush, for timing."""
        arrays = [HostArray(info) for info in self._arrays_of(arguments)]
        layout = self.workspaces(arguments)
        # Held by `run`: what is timed are the launches.
        held = DeviceMemory(context(0), layout.size)
        memory = layout.placed(held.pointer)

        def run(pointers: Sequence[int], held: DeviceMemory = held) -> None:
            self._in_order(0, 0, (*arguments, *memory), (*pointers, *[each.pointer for each in memory]))

        return CudaArrays(context(0), run, arrays, [array.name in self.written for array in self.arrays])


def load(build: Build) -> CudaExecutable | CudaProgram:
    """The executable of a build whose cubin has been made."""
    return CudaProgram(build) if is_program(build.function) else CudaExecutable(build)


__all__ = ["CudaProgram", "load"]
