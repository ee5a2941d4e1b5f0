# ruff: noqa: E501 -- stages are one statement a line
"""Random programs over shared memory: barriers leave no race, and every read gives the right value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.lowering import lower
from tests.simulated import run_threaded
from tilebench.layout import spread

STEPS, STAGES = 4, 3
WRITE, READ = spread((64,), 32, 2, 32), spread((64,), 32, 1, 32)


@dataclass
class Program:
    """Text of a kernel and what its reads must give, found by running the same steps in order."""

    lines: list[str] = field(default_factory=list[str])
    memory: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    reads: int = 0

    def line(self, text: str, depth: int) -> None:
        self.lines.append("    " * (depth + 2) + text)


OPS = st.lists(
    st.tuples(st.sampled_from(["fill", "read", "move"]), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
    min_size=1, max_size=5,
)  # fmt: skip
BLOCKS = st.lists(
    st.tuples(st.sampled_from(["plain", "loop", "branch", "loop_branch"]), OPS), min_size=1, max_size=4
)  # fmt: skip


def version(ring: bool, offset: int, looped: bool) -> str:
    if not ring:
        return ""
    return f".version((k + {offset}) % {STAGES})" if looped else f".version({offset})"


def spell(program: Program, kind: str, ops: list[Any], rings: list[bool], number: int) -> list[Any]:
    """Write one block of statements; returns its steps as (op, buffers, versions, constant, row)."""
    looped, depth = kind.startswith("loop"), 0
    if looped:
        program.line(f"for k in T.serial({STEPS}):".replace("k ", f"k{number} "), 0)
        depth = 1
    if kind.endswith("branch"):
        test = f"if k{number} % 2 == 0:" if looped else "if bx == 0:"
        program.line(test, depth)
        depth += 1
    steps: list[Any] = []
    for op, a, b, offset in ops:
        one = version(rings[a], offset, looped).replace("k ", f"k{number} ")
        two = version(rings[b], 0, looped).replace("k ", f"k{number} ")
        constant = float(len(program.lines) + 1)
        row = program.reads
        if op == "fill":
            program.line(f"T.fill(S{a}{one}, T.float32({int(constant)}), map={WRITE})", depth)
        elif op == "move":
            if a == b:
                continue
            program.line(f"T.copy(S{a}{one}, S{b}{two}, map={READ})", depth)
        else:
            # An array of its own for each read: nothing but shared memory asks for a barrier.
            at = f"k{number} * 64 : k{number} * 64 + 64" if looped else "0 : 64"
            program.line(f"T.copy(S{a}{one}, O{row}[{at}], map={READ})", depth)
            program.reads += 1
        steps.append((op, a, b, offset, constant, row))
    if not steps:
        program.line("pass", depth)
    return steps


def execute(
    memory: dict[tuple[int, int], float], steps: list[Any], k: int, rings: list[bool], out: Any
) -> None:
    for op, a, b, offset, constant, row in steps:
        one = (a, (k + offset) % STAGES if rings[a] else 0)
        two = (b, k % STAGES if rings[b] else 0)
        if op == "fill":
            memory[one] = constant
        elif op == "move":
            memory[two] = memory[one]
        else:
            out[row, k] = memory[one]


@settings(max_examples=60)
@given(blocks=BLOCKS, rings=st.lists(st.booleans(), min_size=3, max_size=3))
def test_no_race_and_the_values_of_the_program_in_order(blocks: list[Any], rings: list[bool]) -> None:
    program = Program()
    for n, ring in enumerate(rings):
        more = f", versions={STAGES}" if ring else ""
        program.line(f"S{n} = T.alloc_shared((64,), T.float32{more})", 0)
    for n, ring in enumerate(rings):
        for v in range(STAGES if ring else 1):
            at = f".version({v})" if ring else ""
            program.line(f"T.fill(S{n}{at}, T.float32(0), map={WRITE})", 0)
            program.memory[n, v] = 0.0
    wanted: dict[tuple[int, int], float] = {}
    for number, (kind, ops) in enumerate(blocks):
        steps = spell(program, kind, ops, rings, number)
        for k in range(STEPS) if kind.startswith("loop") else (0,):
            if kind != "loop_branch" or k % 2 == 0:
                execute(program.memory, steps, k, rings, wanted)
    arrays = {f"O{row}": np.full((STEPS * 64,), -1, np.float32) for row in range(program.reads)}
    params = ", ".join(f"{name}: T.Tensor(({STEPS * 64},), T.float32)" for name in arrays)
    head = f"@T.prim_func\ndef kernel({params}):\n    with T.Kernel(1, threads=32) as bx:\n"
    function, _ = lower(head + "\n".join(program.lines) + "\n")
    run_threaded(function, arrays, warp=32)
    for row in range(program.reads):
        for k, held in enumerate(arrays[f"O{row}"].reshape(STEPS, 64)):
            assert (held == wanted.get((row, k), -1)).all()
