"""Masks: every access that runs is inside its buffer, and every access inside that the kernel asks for runs.

The oracle is enumeration: each turn of the loops, with and without the guards that the pass added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from tilebench.ir import Arith, Call, Expr, Function, If, Load, Store, children, parse_function, walk
from tilebench.ir.arith import evaluate
from tilebench.language.copy import Copy
from tilebench.language.structure import KernelLaunch, Parallel, Serial
from tilebench.language.words import registry
from tilebench.passes.bounded.bound_accesses import bound_accesses
from tilebench.passes.context import Context
from tilebench.targets.cuda.machines import machine_of

Touched = tuple[str, str, tuple[int, ...]]
_COMPARE = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def holds(condition: Expr, values: Mapping[str, int]) -> bool:
    if isinstance(condition, Arith) and condition.op == "and":
        return all(holds(part, values) for part in condition.args)
    assert isinstance(condition, Arith)
    a, b = (evaluate(part, values) for part in condition.args)
    return bool(_COMPARE[condition.op](a, b))


def loads(expr: Any, values: Mapping[str, int]) -> Iterator[Touched]:
    """What an expression reads; of a choice only the side that is taken."""
    if isinstance(expr, Call) and expr.word == "if_then_else":
        yield from loads(expr.args[1] if holds(expr.args[0], values) else expr.args[2], values)
        return
    if isinstance(expr, Load):
        yield "read", expr.buffer.name, tuple(evaluate(part, values) for part in expr.index)
    for part in children(expr):
        yield from loads(part, values)


def touched(body: tuple[Any, ...], values: Mapping[str, int]) -> Iterator[Touched]:
    """Every element that runs, in order."""
    for statement in body:
        if isinstance(statement, If):
            taken = statement.then if holds(statement.condition, values) else statement.orelse
            yield from touched(taken, values)
        elif isinstance(statement, Store):
            yield from loads(statement.value, values)
            index = tuple(evaluate(part, values) for part in statement.index)
            yield "write", statement.buffer.name, index
        else:
            ranges = [range(n) for n in getattr(statement, "extents", getattr(statement, "grid", ()))]
            if isinstance(statement, Serial):
                ends = (statement.start, statement.stop, statement.step)
                ranges = [range(*(evaluate(end, values) for end in ends))]
            assert isinstance(statement, (KernelLaunch, Parallel, Serial))
            for turn in product(*ranges):
                names = [variable.name for variable in statement.vars]
                yield from touched(statement.body, {**values, **dict(zip(names, turn, strict=False))})


def bounded(text: str) -> tuple[Function, Function]:
    function = parse_function(text, registry())
    return function, bound_accesses(function, Context(machine_of("sm_80")))


def compared(text: str) -> tuple[list[Touched], list[Touched]]:
    """What runs after the pass, and what was asked for and is inside."""
    before, after = bounded(text)
    shapes = {buffer.name: buffer.shape for buffer in before.params}

    def inside(touch: Touched) -> bool:
        return all(0 <= i < n for i, n in zip(touch[2], shapes[touch[1]], strict=True))

    asked = [touch for touch in touched(before.body, {}) if inside(touch)]
    return list(touched(after.body, {})), asked


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("end", [9, 10, 11])
@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_guard_of_the_kernels_own_is_taken_at_its_word(op: str, end: int, shift: int) -> None:
    """`if i <= 10: A[i] = ...` with ten elements stores an eleventh, unless the pass adds its own test."""
    index = f"bx * 8 + i + {shift}" if shift else "bx * 8 + i"
    got, asked = compared(f"""@T.prim_func
def f(A: T.Tensor((10,), T.int32), B: T.Tensor((64,), T.int32)):
    with T.Kernel(2, threads=32) as bx:
        for i in T.Parallel(8):
            if bx * 8 + i {op} {end}:
                A[{index}] = B[i]
            else:
                A[bx * 8 + i] = B[bx * 8 + i + 1]
""")
    writes = [touch for touch in got if touch[0] == "write"]
    assert writes == [touch for touch in asked if touch[0] == "write"]
    assert set(got) <= set(asked)


@pytest.mark.parametrize("extent", range(5, 10))
@pytest.mark.parametrize(("start", "step"), [(0, 1), (2, 2), (-1, 3)])
def test_the_last_element_of_a_loop(extent: int, start: int, step: int) -> None:
    got, asked = compared(f"""@T.prim_func
def f(A: T.Tensor(({extent},), T.int32), B: T.Tensor((2, {extent}), T.int32)):
    with T.Kernel(1, threads=32) as bx:
        for k in T.serial(8, start={start}, step={step}):
            for i in T.Parallel(2):
                B[i, k + i] = A[k] + T.if_then_else(k > 2, A[k - 3], A[k + i])
""")
    assert [touch for touch in got if touch[0] == "write"] == [
        touch for touch in asked if touch[0] == "write"
    ]
    assert set(got) <= set(asked)


@pytest.mark.parametrize("limit", range(14, 19))
@pytest.mark.parametrize("first", [-1, 0, 1])
def test_a_box_that_may_leave_its_buffer_is_bounded(limit: int, first: int) -> None:
    _, after = bounded(f"""@T.prim_func
def f(A: T.Tensor(({limit}, 4), T.int32), B: T.Tensor((16, 4), T.int32)):
    with T.Kernel(4, threads=32) as bx:
        s = T.alloc_shared((4, 4), T.int32)
        T.copy(A[bx * 4 + {first} : bx * 4 + {first + 4}, 0 : 4], s)
        T.copy(s, B[bx * 4 : bx * 4 + 4, 0 : 4])
""")
    first_copy, second = (node for node in walk(after) if isinstance(node, Copy))
    leaves = first < 0 or 12 + first + 4 > limit
    assert first_copy.src_within == ((limit, None) if leaves else None)
    assert second.dst_within is None


def test_a_condition_on_memory_ends_where_its_branch_writes_that_memory() -> None:
    """`if N[0] < 10: N[0] = 99; A[N[0]] = ...`: behind the store nothing is known of N[0]."""
    _, after = bounded("""@T.prim_func
def f(A: T.Tensor((10,), T.int32), N: T.Tensor((1,), T.int32)):
    with T.Kernel(1, threads=32) as bx:
        if N[0] < 10 and N[0] >= 0:
            A[N[0]] = 1
        if N[0] < 10 and N[0] >= 0:
            N[0] = 99
            A[N[0]] = 2
""")
    stores = [node for node in walk(after) if isinstance(node, If)]
    # Two of the kernel's own, and one that the pass adds in the second.
    assert len(stores) == 3
