"""Running a cubin: a launch on the caller's device and stream, or a round trip for host arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import ArgumentError
from ....ir import Buffer, Function
from ....ir.stmt import statements
from ....passes.analysis.launches import launch_of
from ....passes.analysis.reads_writes import reads_and_writes
from ...build import Build
from ...devices import HOST
from ...scalars import Grid, Words, letters
from .arrays import current_stream
from .clock import CudaArrays
from .context import context
from .host import HostArray
from .launch import Launch
from .memory import DeviceMemory
from .modules import Modules
from .prepared import Prepared

if TYPE_CHECKING:
    from .tensor_maps import TensorMaps

# Words of one thread that copy boxes of arrays.
BOX_WORDS = frozenset({"tma_load", "tma_store"})


class CudaExecutable:
    """A loaded launch. One module for each device it has run on, made at the first call there.

    Called with arrays, all on one device or all NumPy, and numbers for scalars, in parameter order.
    Device arrays are used in place, on the caller's current stream, without waiting, so a CUDA graph can
    capture it. NumPy arrays are copied to the device and what the kernel writes is copied back.
    """

    def __init__(self, build: Build, modules: Modules | None = None) -> None:
        self.build = build
        self.modules = modules or Modules(build.code)
        self.params = build.function.params
        self.arrays = build.function.arrays
        self.kinds = letters(build.function)
        # Behind the parameters, the maps of arrays of which boxes are copied.
        self._maps = _maps_of(build.function)
        self._words = Words(build.function)
        self.grid = Grid(build.function, build.machine)
        # Of all arrays: where one is off it, each is asked for its own.
        self.alignment = max((array.align for array in self.arrays), default=1)
        self.written = reads_and_writes(build.function)[1]
        # Arrays alone, and a grid that no call changes, which stands in the launch: nothing is to be made.
        self._fixed = len(self.arrays) == len(self.params) and 0 not in (self.grid.constant or (0,))
        self.passes_pointers_only = self._fixed and self._maps is None
        self._dependent = bool(launch_of(build.function).dependent_launch)
        self._launches: dict[int, Launch] = {}
        self._lock = threading.Lock()

    def launch_on(self, ordinal: int) -> Launch:
        """The launch for one device, its module loaded at first use."""
        with self._lock:
            launch = self._launches.get(ordinal)
            if launch is None:
                entry, threads, shared = self.build.data["launches"][0]
                kinds = self.kinds + "T" * (0 if self._maps is None else len(self._maps.maps))
                function = self.modules.function(ordinal, entry)
                launch = self._launches[ordinal] = Launch(
                    function, kinds, grid=self.grid.constant or (1,), block=(threads,), shared=shared,
                    dependent=self._dependent,
                )  # fmt: skip
            return launch

    def __call__(self, arguments: Sequence[Any], /) -> None:
        grid = None if self._fixed else self.grid(arguments)
        if grid is not None and 0 in grid:
            return  # nothing to do, and the driver refuses an empty grid
        infos = arguments if self._fixed else self._arrays_of(arguments)
        first = infos[0].device if infos else HOST
        if first == HOST:
            grid = grid or self.grid(arguments)
            round_trip(
                self.arrays, infos, self.written,
                lambda pointers: self.launch_on(0)(0, *self.packed(arguments, pointers, 0), grid=grid),
            )  # fmt: skip
            return
        bits, foreign, pointers = 0, False, list[int]()
        for info in infos:
            pointer = info.pointer
            bits |= pointer
            pointers.append(pointer)
            if info.device is not first:
                explain_places(self.arrays, infos)
            foreign = foreign or type(info.owner) is tuple
        if bits % self.alignment:
            explain_places(self.arrays, infos)
        ordinal = int(first[5:])
        launch = self._launches.get(ordinal) or self.launch_on(ordinal)
        words = pointers if self.passes_pointers_only else self.packed(arguments, pointers, ordinal)
        launch(current_stream(infos[0].owner, ordinal), *words, grid=grid)
        if foreign:
            settle(infos, ordinal)

    def prepared(self, ordinal: int, arguments: Sequence[Any], owner: Any) -> Prepared | None:
        """What launches for more arrays like these on that card; None where there is nothing to do."""
        return None if 0 in self.grid(arguments) else Prepared(self, ordinal, arguments, owner)

    def packed(self, arguments: Sequence[Any], pointers: Sequence[int], ordinal: int) -> Sequence[Any]:
        """What the launch packs: words of the parameters, and maps."""
        words = self._words(arguments, pointers)
        return words if self._maps is None else (*words, *self._maps(arguments, pointers, ordinal))

    def launch(self, ordinal: int, stream: int, arguments: Sequence[Any], pointers: Sequence[int]) -> None:
        """Launch on a device and stream that are known, with these addresses of the arrays."""
        grid = self.grid(arguments)
        if 0 not in grid:
            self.launch_on(ordinal)(stream, *self.packed(arguments, pointers, ordinal), grid=grid)

    def _arrays_of(self, arguments: Sequence[Any]) -> Sequence[Any]:
        if len(self.arrays) == len(self.kinds):
            return arguments
        return [arguments[k] for k in self._words.arrays]

    def device_arrays(self, arguments: list[Any]) -> CudaArrays:
        """Copies of described host arrays on device 0, with its clock and cache flush, for timing."""
        arrays = [HostArray(info) for info in self._arrays_of(arguments)]
        launch, grid = self.launch_on(0), self.grid(arguments)

        def run(pointers: Sequence[int]) -> None:
            if 0 not in grid:
                launch(0, *self.packed(arguments, pointers, 0), grid=grid)

        return CudaArrays(context(0), run, arrays, [array.name in self.written for array in self.arrays])


def _maps_of(function: Function) -> TensorMaps | None:
    """The maps that a launch passes, if it does: a kernel out of the cache needs no compiler to know."""
    if not any(getattr(stmt, "word", "") in BOX_WORDS for stmt in statements(function.body)):
        return None
    from .tensor_maps import TensorMaps

    return TensorMaps(function)


def settle(infos: Sequence[Any], ordinal: int) -> None:
    """Wait where an array came through DLPack: its library does not know that it is read, and may free it."""
    for info in infos:
        if type(info.owner) is tuple:
            context(ordinal).synchronize(0)
            return


def explain_places(arrays: Sequence[Buffer], infos: Sequence[Any]) -> None:
    """Raise `ArgumentError` for arrays on different devices, or where their accesses cannot start."""
    first = infos[0].device
    for array, info in zip(arrays, infos, strict=True):
        if info.device != first:
            raise ArgumentError(
                "{name} lies on {there}, the first array on {here}", name=array.name, there=info.device,
                here=first, hint="move all arrays to one device",
            )  # fmt: skip
        if info.pointer % array.align:
            raise ArgumentError(
                "{name} starts at an address that is no multiple of {align} bytes", name=array.name,
                align=array.align, hint="this code was compiled for aligned arrays alone",
            )  # fmt: skip


def round_trip(
    arrays: Sequence[Buffer], infos: Sequence[Any], written: Collection[str],
    run: Callable[[Sequence[int]], None],
) -> None:  # fmt: skip
    """Run on copies of host arrays on device 0, and copy back what is written."""
    where = context(0)
    hosts = [HostArray(info) for info in infos]
    copies: list[DeviceMemory] = []
    try:
        for host in hosts:
            memory = DeviceMemory(where, host.nbytes)
            copies.append(memory)
            host.upload(where, memory.pointer)
        run([memory.pointer for memory in copies])
        for array, host, memory in zip(arrays, hosts, copies, strict=True):
            if array.name in written:
                host.download(where, memory.pointer)
        where.synchronize()
    finally:
        for memory in copies:
            memory.free()
