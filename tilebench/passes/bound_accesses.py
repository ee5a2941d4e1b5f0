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
    effects_in,
    map_children,
    walk,
    zero_of,
)
from ..ir.facts import Facts, conjuncts
from ..language.copy import Copy, Fill, Within
from ..language.structure import KernelLaunch, ThreadGroup
from .context import Context
from .scopes import entered, entry_facts

NAME = "bound_accesses"


def bound_accesses(function: Function, context: Context) -> Function:
    """The function with extents on every region and a guard on every access that needs one."""
    work = _Bounder()
    out = work.statement(function, entry_facts(function))
    context.remark(
        NAME, "note", f"{work.proved} accesses proved inside, {work.tested} tested", function,
        proved=work.proved, tested=work.tested,
    )  # fmt: skip
    return out


class _Bounder:
    """One function on its way: what is known at each place goes down with the walk, as `Facts`."""

    def __init__(self) -> None:
        self.proved = 0
        self.tested = 0

    # -- tests
    def tests(self, buffer: Buffer, index: Sequence[Expr], facts: Facts) -> list[Expr]:
        """What must hold for an element access, proofs left out."""
        wanted: list[Expr] = []
        for at, limit in zip(index, buffer.shape, strict=True):
            wanted += [at.compare("<", limit), at.compare(">=", 0)]
        out = [test for test in wanted if not facts.proves(test)]
        if out:
            self.tested += 1
        else:
            self.proved += 1
        return out

    # -- statements
    def statement(self, at: Any, facts: Facts) -> Any:
        match at:
            case Store():
                return self.store(at, facts)
            case Copy():
                return self.copy(at, facts)
            case Fill():
                dst = self.region(at.dst, at.dst.extent or (1,) * at.dst.buffer.rank, facts)
                within = self.within(dst, facts)
                return at.but(dst=dst, value=self.value(at.value, facts), dst_within=within)
            case If():
                condition = self.value(at.condition, facts)
                then = self.body(at.then, facts.assuming(*_lasting(at.condition, at.then)))
                return at.but(condition=condition, then=then, orelse=self.body(at.orelse, facts))
            case Let():
                value = self.value(at.value, facts)
                return at if value is at.value else at.but(value=value)
            case ThreadGroup():
                return at.but(body=self.body(at.body, facts))
            case KernelLaunch() | LoopStmt():
                return at.but(body=self.body(at.body, entered(at, facts)))
            case Function():
                return at.but(body=self.body(at.body, facts))
            case _:
                return map_children(at, lambda part: self.value(part, facts))

    def body(self, body: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            bounded = self.statement(stmt, facts)
            out.append(bounded)
            if isinstance(bounded, Let):
                facts = facts.with_let(bounded.var, bounded.value)
        return tuple(out)

    def store(self, at: Store, facts: Facts) -> Stmt:
        tests = self.tests(at.buffer, at.index, facts)
        inside = facts.assuming(*tests)
        index = tuple(self.value(part, inside) for part in at.index)
        store = at.but(index=index, value=self.value(at.value, inside))
        return If(all_of(tests), (store,), (), place=at.place) if tests else store

    # -- expressions
    def value(self, at: Any, facts: Facts) -> Any:
        """An expression with its unproved loads guarded."""
        if isinstance(at, Load):
            load: Load = map_children(at, lambda part: self.value(part, facts))
            tests = self.tests(at.buffer, at.index, facts)
            if not tests:
                return load
            args = (all_of(tests), load, zero_of(at.dtype))
            return Call("if_then_else", args, type=at.dtype, place=at.place)
        if isinstance(at, Call) and at.word == "if_then_else":
            condition = self.value(at.args[0], facts)
            chosen = self.value(at.args[1], facts.assuming(at.args[0]))
            args = (condition, chosen, self.value(at.args[2], facts))
            return at if all(a is b for a, b in zip(args, at.args, strict=True)) else at.but(args=args)
        return map_children(at, lambda part: self.value(part, facts))

    # -- regions
    def copy(self, at: Copy, facts: Facts) -> Copy:
        src_extent, dst_extent = self.extents(at)
        src = self.region(at.src, src_extent, facts)
        dst = self.region(at.dst, dst_extent, facts)
        within = self.within(src, facts), self.within(dst, facts)
        return at.but(src=src, dst=dst, src_within=within[0], dst_within=within[1])

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

    def region(self, at: Region, extent: tuple[int, ...], facts: Facts) -> Region:
        start = tuple(self.value(each, facts) for each in at.start)
        return at.but(start=start, extent=extent)

    def within(self, at: Region, facts: Facts) -> Within:
        """The bound of each dimension whose box may leave the buffer, None where it cannot."""
        out: list[int | Expr | None] = []
        for start, extent, limit in zip(at.start, at.extent or (), at.buffer.shape, strict=True):
            inside = facts.proves((start + (extent - 1)).compare("<", limit))
            out.append(None if inside and facts.proves(start.compare(">=", 0)) else limit)
        found = any(limit is not None for limit in out)
        if found:
            self.tested += 1
        else:
            self.proved += 1
        return tuple(out) if found else None


def _lasting(condition: Expr, body: tuple[Stmt, ...]) -> list[Expr]:
    """The parts of a condition that hold all through a body: those whose memory it does not write."""
    parts = conjuncts(condition)
    if not any(isinstance(node, Load) for node in walk(condition)):
        return list(parts)
    written = {effect.buffer.name for stmt in body for effect in effects_in(stmt) if effect.writes}
    return [
        part
        for part in parts
        if not any(isinstance(node, Load) and node.buffer.name in written for node in walk(part))
    ]
