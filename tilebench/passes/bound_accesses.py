"""Extents of every region, and a test for every access that is not proved inside its buffer.

`T.copy(A[m, k], A_s)` -> `T.copy(A[m : m + 128, k : k + 32], A_s, src_within=(1000, None))`;
`C[i, j] = A[i, j]` -> `if i < 1000: C[i, j] = A[i, j]`; a load no guard implies becomes
`T.if_then_else(i < 1000, A[i, j], 0)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ir import (
    Arith,
    Buffer,
    Call,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Region,
    Stmt,
    Store,
    all_of,
    const_of,
    map_children,
    zero_of,
)
from ..ir.arith import Range, bounds
from ..language.copy import Copy, Fill, Within
from ..language.structure import (
    KernelLaunch,
    Parallel,
    Pipelined,
    Serial,
    ThreadGroup,
    Unroll,
    Vectorized,
)
from .context import Context

NAME = "bound_accesses"


def bound_accesses(function: Function, context: Context) -> Function:
    """The function with extents on every region and a guard on every access that needs one."""
    work = _Bounder()
    out = work.statement(function, ())
    context.remark(
        NAME, "note", f"{work.proved} accesses proved inside, {work.tested} tested", function,
        proved=work.proved, tested=work.tested,
    )  # fmt: skip
    return out


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction."""
    if isinstance(condition, Arith) and condition.op == "and":
        return tuple(part for each in condition.args for part in conjuncts(each))
    return (condition,)


def implied(test: Expr, facts: Sequence[Expr]) -> bool:
    """Whether `index < bound` (or `index >= 0`) follows from one of the facts."""
    if test in facts:
        return True
    if not isinstance(test, Arith) or test.op != "<":
        return False
    bound = const_of(test.args[1])
    for fact in facts:
        if isinstance(fact, Arith) and fact.op in ("<", "<=") and fact.args[0] == test.args[0]:
            other = const_of(fact.args[1])
            if other is not None and bound is not None and other + (fact.op == "<=") <= bound:
                return True
    return False


class _Bounder:
    def __init__(self) -> None:
        self.ranges: dict[str, Range] = {}
        self.proved = 0
        self.tested = 0

    # -- tests
    def tests(
        self, buffer: Buffer, index: Sequence[Expr], extents: Sequence[int] | None = None
    ) -> list[Expr]:
        """What must hold for an access, proofs left out. `extents` widens each index to a box."""
        out: list[Expr] = []
        for k, (each, limit) in enumerate(zip(index, buffer.shape, strict=True)):
            low, high = bounds(each, self.ranges)
            last = high + (extents[k] - 1 if extents else 0)
            if last >= limit:
                out.append(each.compare("<", limit))
            if low < 0:
                out.append(each.compare(">=", 0))
        return out

    def count(self, tests: Sequence[Expr]) -> None:
        if tests:
            self.tested += 1
        else:
            self.proved += 1

    # -- statements
    def statement(self, at: Any, facts: tuple[Expr, ...]) -> Any:
        match at:
            case Store():
                return self.store(at, facts)
            case Copy():
                return self.copy(at, facts)
            case Fill():
                dst = self.region(at.dst, at.dst.extent or (1,) * at.dst.buffer.rank, facts)
                return at.but(dst=dst, value=self.value(at.value, facts), dst_within=self.within(dst))
            case If():
                inside = (*facts, *conjuncts(at.condition))
                then = self.body(at.then, inside)
                return at.but(
                    condition=self.value(at.condition, facts), then=then, orelse=self.body(at.orelse, facts)
                )
            case Let():
                value = self.value(at.value, facts)
                self.ranges[at.var.name] = bounds(value, self.ranges)
                return at if value is at.value else at.but(value=value)
            case ThreadGroup():
                return at.but(body=self.body(at.body, facts))
            case KernelLaunch() | LoopStmt():
                self.enter(at)
                return at.but(body=self.body(at.body, facts))
            case Function():
                return at.but(body=self.body(at.body, facts))
            case _:
                return map_children(at, lambda each: self.value(each, facts))

    def body(self, body: tuple[Stmt, ...], facts: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        return tuple(self.statement(each, facts) for each in body)

    def enter(self, at: KernelLaunch | LoopStmt) -> None:
        match at:
            case KernelLaunch():
                sizes = at.grid
            case Parallel():
                sizes = at.extents
            case Vectorized():
                sizes = (at.extent,)
            case Serial() | Unroll() | Pipelined():
                self.ranges[at.vars[0].name] = self.loop_range(at)
                return
            case _:
                return
        for var, size in zip(at.vars, sizes, strict=True):
            self.ranges[var.name] = (0, max(size - 1, 0))

    def loop_range(self, at: Serial | Unroll | Pipelined) -> Range:
        start, stop = bounds(at.start, self.ranges), bounds(at.stop, self.ranges)
        step = 1 if isinstance(at, Pipelined) else const_of(at.step)
        if step is None:
            return min(start[0], stop[0]), max(start[1], stop[1])
        if step > 0:
            return start[0], max(start[0], stop[1] - 1)
        return min(start[1], stop[0] + 1), start[1]

    def store(self, at: Store, facts: tuple[Expr, ...]) -> Stmt:
        tests = [each for each in self.tests(at.buffer, at.index) if not implied(each, facts)]
        self.count(tests)
        inside = (*facts, *tests)
        index = tuple(self.value(each, inside) for each in at.index)
        made = at.but(index=index, value=self.value(at.value, inside))
        return If(all_of(tests), (made,), (), place=at.place) if tests else made

    # -- expressions
    def value(self, at: Any, facts: tuple[Expr, ...]) -> Any:
        """An expression with its unproved loads guarded."""
        if isinstance(at, Load):
            below: Load = map_children(at, lambda each: self.value(each, facts))
            tests = [each for each in self.tests(at.buffer, at.index) if not implied(each, facts)]
            self.count(tests)
            if not tests:
                return below
            args = (all_of(tests), below, zero_of(at.dtype))
            return Call("if_then_else", args, type=at.dtype, place=at.place)
        if isinstance(at, Call) and at.word == "if_then_else":
            condition = self.value(at.args[0], facts)
            chosen = self.value(at.args[1], (*facts, *conjuncts(at.args[0])))
            made = (condition, chosen, self.value(at.args[2], facts))
            return at if all(a is b for a, b in zip(made, at.args, strict=True)) else at.but(args=made)
        if isinstance(at, Region):
            return map_children(at, lambda each: self.value(each, facts))
        return map_children(at, lambda each: self.value(each, facts))

    # -- regions
    def copy(self, at: Copy, facts: tuple[Expr, ...]) -> Copy:
        src_extent, dst_extent = self.extents(at)
        src = self.region(at.src, src_extent, facts)
        dst = self.region(at.dst, dst_extent, facts)
        return at.but(src=src, dst=dst, src_within=self.within(src), dst_within=self.within(dst))

    def extents(self, at: Copy) -> tuple[tuple[int, ...], tuple[int, ...]]:
        src, dst = at.src.extent, at.dst.extent
        if src is None and dst is None:
            return (1,) * at.src.buffer.rank, (1,) * at.dst.buffer.rank
        if src is None:
            return self.aligned(dst or (), at.src, at), dst or ()
        return src, dst if dst is not None else self.aligned(src, at.dst, at)

    def aligned(self, extent: tuple[int, ...], head: Region, at: Copy) -> tuple[int, ...]:
        """The other side's extents, right-aligned to the rank of a head address."""
        rank = head.buffer.rank
        dropped = extent[: max(0, len(extent) - rank)]
        if any(each != 1 for each in dropped):
            raise ShapeError(
                "a tile of extents {extent} does not fit {name}, which has rank {rank}", at=at.place,
                extent=extent, name=head.buffer.name, rank=rank,
            )  # fmt: skip
        kept = extent[len(dropped) :]
        return (1,) * (rank - len(kept)) + kept

    def region(self, at: Region, extent: tuple[int, ...], facts: tuple[Expr, ...]) -> Region:
        start = tuple(self.value(each, facts) for each in at.start)
        return at.but(start=start, extent=extent)

    def within(self, at: Region) -> Within:
        """The bound of each dimension whose box may leave the buffer, None where it cannot."""
        out: list[int | None] = []
        for start, extent, limit in zip(at.start, at.extent or (), at.buffer.shape, strict=True):
            low, high = bounds(start, self.ranges)
            out.append(limit if low < 0 or high + extent > limit else None)
        found = any(each is not None for each in out)
        if found:
            self.tested += 1
        else:
            self.proved += 1
        return tuple(out) if found else None
