"""Running a function of stage `threaded` in NumPy: every thread of many blocks is a lane of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import Buffer, Function, If, While
from ..ir.room import is_deep, with_room
from ..ir.stmt import statements
from ..language.lowered.threads import SyncWarp
from ..language.meanings.extern import refuse_addresses
from ..language.structure import KernelLaunch, Serial, Unroll
from ..passes.analysis.launches import parts_of
from .arithmetic import FUNCTIONS
from .clusters import MEANINGS as CLUSTERS
from .counters import Counters
from .lanes import Lanes, Meaning
from .launch import launch_of, ordered_by_blocks
from .mbarriers import MEANINGS as MBARRIERS
from .refusal import SimulationError
from .scheduler import Scheduler
from .words import MEANINGS

_STRUCTURE: frozenset[type] = frozenset({KernelLaunch, Serial, Unroll, While, If})
# Lanes run at once: enough to hide Python's cost, few enough to stay in the cache.
MOST_LANES = 16384


def run_threaded(
    function: Function,
    arrays: Mapping[str, Any],
    blocks: Iterable[tuple[int, ...]] | None = None,
    *,
    warp: int,
    meanings: Mapping[type, Meaning] = MEANINGS,
    functions: Mapping[str, Callable[..., Any]] = FUNCTIONS,
    counters: Counters | None = None,
) -> None:
    """Run the function on `arrays` (by parameter name, changed in place); `blocks` picks some, (x, y, z).

    `warp` is the machine's number of threads a warp. `meanings` holds what each word of the function
    does, by the class of its statement, and `functions` what each function of elements gives, by its
    word: a target's own are rows beside `MEANINGS` and `FUNCTIONS`. `counters` get what
    it did to the banks of shared memory.

    Raises `SimulationError` at the statement that does what a GPU must not, `InternalError` for a word
    without a meaning and for an array that is missing or of another shape or dtype.
    """
    refuse_addresses(function)
    # Launches run one after the other, on memory of the call that starts as poison.
    memory = {each.name: poisoned_array(each) for each in function.workspaces}
    for part in parts_of(function):
        _run_launch(part, {**arrays, **memory}, blocks, warp, meanings, functions, counters)


def poisoned_array(buffer: Buffer) -> Any:
    """An array of what nobody wrote: NaN, or bytes 0xA5."""
    dtype = buffer.dtype
    if dtype.kind == "bool" or dtype.per_byte > 1:
        return np.ones(buffer.extents, dtype.numpy)
    if dtype.is_float:
        return np.full(buffer.extents, np.nan, dtype.numpy)
    return np.full((*buffer.extents, dtype.numpy.itemsize), 0xA5, np.uint8).view(dtype.numpy)[..., 0]


def _run_launch(
    function: Function, arrays: Mapping[str, Any], blocks: Iterable[tuple[int, ...]] | None, warp: int,
    meanings: Mapping[type, Meaning], functions: Mapping[str, Callable[..., Any]],
    counters: Counters | None,
) -> None:  # fmt: skip
    for param in function.arrays:
        array = arrays.get(param.name)
        if array is None or array.shape != param.extents or array.dtype != param.dtype.numpy:
            raise InternalError(
                "the array {name} is missing or is not {what}", name=param.name,
                what=(param.extents, param.dtype),
            )  # fmt: skip
    kernel = next(stmt for stmt in function.body if isinstance(stmt, KernelLaunch))
    buffers: dict[str, Buffer] = {param.name: param for param in function.arrays}
    own = frozenset(cls for cls, meaning in MEANINGS.items() if meanings.get(cls) is meaning)
    simple = own - {SyncWarp, *MBARRIERS, *CLUSTERS} | _STRUCTURE
    by_blocks = ordered_by_blocks(kernel, simple)
    engine = any(type(node) in MBARRIERS for node in statements(kernel.body))
    launch = launch_of(kernel, buffers, arrays, warp, by_blocks=by_blocks, engine=engine, counters=counters)
    chosen = list(_grid(launch.grid)) if blocks is None else [_block(*block) for block in blocks]
    chosen = chosen if launch.cluster == 1 else _whole_clusters(chosen, launch.cluster)
    # Whole clusters run together.
    at_once = max(1, MOST_LANES // kernel.threads // launch.cluster) * launch.cluster

    def run() -> None:
        for start in range(0, len(chosen), at_once):
            try:
                Scheduler(Lanes(launch, chosen[start : start + at_once], meanings, functions)).run()
            except SimulationError as error:
                if error.place is None and error.node is not None:
                    error.place = launch.sites.place(error.node)
                raise

    # What has been stored cannot be taken back, so it is known beforehand whether it fits.
    with_room(run, sure=is_deep(function))


def _whole_clusters(blocks: list[tuple[int, int, int]], size: int) -> list[tuple[int, int, int]]:
    """The clusters of these blocks, each with all its blocks, one after the other."""
    firsts = dict.fromkeys((x // size * size, y, z) for x, y, z in blocks)
    return [(x + rank, y, z) for x, y, z in firsts for rank in range(size)]


def _block(x: int, y: int = 0, z: int = 0) -> tuple[int, int, int]:
    return x, y, z


def _grid(grid: tuple[int, int, int]) -> Iterable[tuple[int, int, int]]:
    return ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))
