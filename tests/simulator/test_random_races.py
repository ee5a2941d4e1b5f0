"""Random small kernels: the simulator refuses the line that a search through all orders finds, and no other.

The oracle keeps for each thread the set of all accesses that happened before; a barrier joins the sets of
those who meet there. It has neither stamps nor groups, and forgets nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.simulator import SimulationError, run_threaded

THREADS, WARP, CELLS, TURNS = 6, 2, 6, 2
# A condition on `tid`, and the threads for which it holds: whole warps, as barriers need them.
PARTS = (
    ("tid < 2", {0, 1}), ("tid >= 4", {4, 5}), ("tid < 4", {0, 1, 2, 3}), ("tid >= 2", {2, 3, 4, 5}),
    ("tid < 2 or tid >= 4", {0, 1, 4, 5}), ("tid >= 0", {0, 1, 2, 3, 4, 5}),
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One statement: `kind` is read, write, block, warp or named; `a`, `b`, `c` make a cell."""

    kind: str
    part: int
    a: int = 0
    b: int = 0
    c: int = 0

    def cell(self, tid: int, turn: int) -> int:
        return (tid * self.a + turn * self.c + self.b) % CELLS

    def text(self, number: int, memory: str) -> str:
        cell = f"{memory}[(tid * {self.a} + k * {self.c} + {self.b}) % {CELLS}]"
        condition, threads = PARTS[self.part]
        match self.kind:
            case "read":
                return f"if {condition}:\n    x{number}: T.float32 = {cell}"
            case "write":
                return f"if {condition}:\n    {cell} = A[tid]"
            case "block":
                return "if k >= 0:\n    T.sync_threads()"
            case "warp":
                return f"if {condition}:\n    T.sync_warp()"
            case _:
                count = len(threads)
                return f"if {condition}:\n    T.sync_threads(barrier={self.part + 1}, threads={count})"


def program(seed: int) -> list[Step]:
    rng = random.Random(seed)
    kinds = rng.choices(("read", "write", "block", "warp", "named"), (5, 3, 2, 2, 3), k=rng.randint(3, 9))
    return [
        Step(
            kind,
            rng.randrange(len(PARTS)),
            rng.choice((0, 1, 1, 1, 5)),
            rng.randrange(CELLS),
            rng.randrange(2),
        )
        for kind in kinds
    ]


def first_race(steps: list[Step]) -> int | None:
    """The number of the step at which two accesses without an order are first there."""
    before: list[set[tuple[int, int, bool, int]]] = [set() for _ in range(THREADS)]
    events: set[tuple[int, int, bool, int]] = set()  # (number, thread, whether it writes, cell)
    for turn in range(TURNS):
        for number, step in enumerate(steps):
            threads = sorted(PARTS[step.part][1])
            if step.kind in ("read", "write"):
                for tid in threads:
                    cell, writes = step.cell(tid, turn), step.kind == "write"
                    others = {e for e in events - before[tid] if e[1] != tid and e[3] == cell}
                    if any(writes or e[2] for e in others):
                        return number
                    event = (len(events), tid, writes, cell)
                    events.add(event)
                    before[tid].add(event)
                continue
            everyone = list(range(THREADS))
            meetings = [everyone] if step.kind == "block" else [threads]
            if step.kind == "warp":
                meetings = [threads[i : i + WARP] for i in range(0, len(threads), WARP)]
            for meeting in meetings:
                known = set().union(*(before[tid] for tid in meeting))
                for tid in meeting:
                    before[tid] = set(known)
    return None


def refused_line(steps: list[Step], memory: str) -> int | None:
    """The number of the step at which the simulator refuses the kernel."""
    lines = [line for number, step in enumerate(steps) for line in step.text(number, memory).splitlines()]
    body = "".join(f"            {line}\n" for line in lines)
    text = f"""@T.prim_func
def kernel(A: T.Tensor(({THREADS},), T.float32), G: T.Tensor(({CELLS},), T.float32)):
    with T.Kernel(1, threads={THREADS}, shared_bytes=64) as bx:
        tid: T.int32 = T.thread_id()
        S = T.alloc_shared(({CELLS},), T.float32, offset=0)
        S[tid] = A[tid]
        T.sync_threads()
        for k in T.serial({TURNS}):
{body}"""
    given = {"A": np.zeros(THREADS, np.float32), "G": np.zeros(CELLS, np.float32)}
    try:
        run_threaded(parse_function(text, registry()), given, warp=WARP)
        return None
    except SimulationError as error:
        what, place = error.message, error.place
    assert what.startswith("a race")
    assert place is not None
    return (place.line - 9) // 2


@pytest.mark.parametrize("memory", ["S", "G"])
def test_races_are_found_where_a_search_finds_them(memory: str) -> None:
    found: list[bool] = []
    for seed in range(400):
        steps = program(seed)
        wanted = first_race(steps)
        assert refused_line(steps, memory) == wanted, (seed, steps)
        found.append(wanted is not None)
    assert 100 < sum(found) < 350
