"""The reference of a large kernel, its blocks shared out among processes: of threads Python lets one work.

A product of 2048^3 in blocks of 64x64 is 65536 small ones, 15 s in one process, while the card that is to be
measured waits. Each process has a run of neighbouring blocks and gives back what those store.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...ir import Function
from ...profile.environment import allowed_cores
from ...profile.flush import available_bytes
from ...reference import Bounded, run_bounded
from ...reference.bounds import apart
from ...reference.orders import orders_of
from ...runtime.codec import spool_folders
from ...runtime.job import Job
from ...runtime.worker import Worker
from .package import Package

Arrays = Mapping[str, np.ndarray[Any, Any]]
# By name: a file with an array's elements, their dtype and the shape.
Files = dict[str, tuple[str, np.dtype[Any], tuple[int, ...]]]

# A process is there, with NumPy and the arrays, after about half a second.
WORTH_S = 2.0
MOST_PROCESSES = 16
# Threads of one process's products would be in the others' way.
_ONE_THREAD: dict[str, str] = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
# Of a parameter's element: itself, and value, error, what is stored and by whom in float64 and less.
_BYTES_AN_ELEMENT = 40


@dataclass(frozen=True)
class BlocksResult:
    """What some blocks stored of one output: the arrays begin with its element of number `first`."""

    first: int
    value: np.ndarray[Any, Any]
    error: np.ndarray[Any, Any]
    stored: np.ndarray[Any, Any]
    blocks: np.ndarray[Any, Any]


def run_shared_out(package: Package, function: Function, before: Arrays) -> dict[str, Bounded]:
    """`run_bounded` of a package's function; by several processes where that is sooner done."""
    total = apart(function)
    processes = min(MOST_PROCESSES, allowed_cores(), total // 4, _memory_for(before))
    if processes < 2 or len(orders_of(function)) > 1:
        return run_bounded(function, before)
    few = max(1, total // 512)
    start = time.perf_counter()
    begun = run_bounded(function, before, only=frozenset(range(few)))
    estimate = (time.perf_counter() - start) / few * total
    if estimate * (1 - 1 / processes) < WORTH_S:
        return run_bounded(function, before)
    with _files_of(before) as files:
        parts = _in_processes(package, files, few, total, processes)
    return _joined(begun, parts)


def _in_processes(
    package: Package, files: Files, few: int, total: int, processes: int
) -> list[dict[str, BlocksResult]]:
    bounds = [few + (total - few) * k // processes for k in range(processes + 1)]
    ranges = [range(low, high) for low, high in itertools.pairwise(bounds)]
    with ThreadPoolExecutor(processes, "tilebench-reference") as pool:
        coming = [pool.submit(_elsewhere, package, files, blocks) for blocks in ranges]
        return [one.result() for one in coming]


@contextlib.contextmanager
def _files_of(before: Arrays) -> Generator[Files]:
    """The arrays in files that every process maps, in shared memory where there is some."""
    with tempfile.TemporaryDirectory(prefix="tilebench-reference-", dir=spool_folders()[0]) as folder:
        files: Files = {}
        for number, (name, array) in enumerate(before.items()):
            path = f"{folder}/{number}"
            np.ascontiguousarray(array).tofile(path)
            files[name] = (path, array.dtype, array.shape)
        yield files


def _memory_for(before: Arrays) -> int:
    """How many processes have room for arrays of their own."""
    elements = sum(math.prod(array.shape) for array in before.values())
    return available_bytes() // 2 // max(1, _BYTES_AN_ELEMENT * elements)


def _elsewhere(package: Package, files: Files, blocks: range) -> dict[str, BlocksResult]:
    job = Job(f"{__name__}:run_blocks", (package.target, package.tile_text, files, blocks))
    with Worker(env=_ONE_THREAD) as worker:
        return worker.call(job)


def run_blocks(target: str, text: str, files: Files, blocks: range) -> dict[str, BlocksResult]:
    """What runs in one of the processes."""
    from ...ir import parse_function
    from ...targets import resolve_machine

    function = parse_function(text, resolve_machine(target)[0].registry, "<tile>")
    before = {name: _mapped(*file) for name, file in files.items()}
    found = run_bounded(function, before, only=frozenset(blocks))
    return {name: _stored_part(bounded) for name, bounded in found.items()}


def _mapped(path: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if 0 in shape:  # no file of no bytes is mapped
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(path, dtype, "r", shape=shape))


def _stored_part(bounded: Bounded) -> BlocksResult:
    assert bounded.stored is not None  # the outputs of blocks that do not need each other are not read
    assert bounded.blocks is not None
    places = np.flatnonzero(bounded.stored)
    part = slice(int(places[0]), int(places[-1]) + 1) if places.size else slice(0, 0)
    arrays = (bounded.value, bounded.error, bounded.stored, bounded.blocks)
    return BlocksResult(part.start, *(array.reshape(-1)[part].copy() for array in arrays))


def _joined(first: Mapping[str, Bounded], parts: Sequence[Mapping[str, BlocksResult]]) -> dict[str, Bounded]:
    """All outputs whole; where several blocks store one element, the last of them, as in one process."""
    out: dict[str, Bounded] = {}
    for name, begun in first.items():
        arrays = [np.ascontiguousarray(a) for a in (begun.value, begun.error, begun.stored, begun.blocks)]
        for part in (one[name] for one in parts):
            here = slice(part.first, part.first + part.stored.size)
            mine = (part.value, part.error, part.stored, part.blocks)
            for array, its in zip(arrays, mine, strict=True):
                np.copyto(array.reshape(-1)[here], its, where=part.stored)
        value, error, stored, blocks = arrays
        out[name] = replace(begun, value=value, error=error, stored=stored, blocks=blocks, known=None)
    return out
