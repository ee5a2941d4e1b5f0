"""Extents of every region, and a test for every access that is not proved inside its buffer.

`T.copy(A[m, k], A_s)` -> `T.copy(A[m : m + 128, k : k + 32], A_s, src_within=(1000, None))`;
`C[i, j] = A[i, j]` -> `if i < 1000: C[i, j] = A[i, j]`; a load no guard implies becomes
`T.if_then_else(i < 1000, A[i, j], 0)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...ir import (
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
from ...ir.facts import Facts, conjuncts
from ...ir.names import Names
from ...ir.stmt import statements
from ...language.copy import Copy, Fill, Within
from ...language.promises import Assume, SafeValue
from ...language.scopes import entered, entry_facts
from ...language.structure import KernelLaunch, StageGroup, ThreadGroup
from ..context import Context
from .element_loops import copy_loop

NAME = "bound_accesses"


def bound_accesses(function: Function, context: Context) -> Function:
    """The function with extents on every region and a guard on every access that needs one."""
    work = _Bounder(function, context)
    bounded = work.statement(function, entry_facts(function))
    context.remark(
        NAME, "note", f"{work.proved} accesses proved inside, {work.tested} tested", function,
        proved=work.proved, tested=work.tested,
    )  # fmt: skip
    return bounded


class _Bounder:
    """One function on its way: what is known at each place goes down with the walk, as `Facts`."""

    def __init__(self, function: Function, context: Context) -> None:
        self.proved = 0
        self.tested = 0
        self.context = context
        self.names = Names(function)
        # What reads outside of arrays give, where a kernel says it.
        said = [stmt for stmt in statements(function.body) if isinstance(stmt, SafeValue)]
        self.safe: dict[str, Expr] = {stmt.of.name: stmt.value for stmt in said}

    def promised(self, stmt: Assume) -> list[Expr]:
        """What a kernel says that holds: the parts of it that no store can change."""
        unused = self.context.machine.why_unused("assume")
        if unused:
            self.context.remark(NAME, "note", f"T.assume is {unused}", stmt)
            return []
        parts = conjuncts(stmt.condition)
        return [part for part in parts if not any(isinstance(node, Load) for node in walk(part))]

    # -- tests
    def tests(self, buffer: Buffer, index: Sequence[Expr], facts: Facts) -> list[Expr]:
        """What must hold for an element access, proofs left out."""
        wanted: list[Expr] = []
        for position, limit in zip(index, buffer.shape, strict=True):
            wanted += [position.compare("<", limit), position.compare(">=", 0)]
        tests = [test for test in wanted if not facts.proves(test)]
        if tests:
            self.tested += 1
        else:
            self.proved += 1
        return tests

    # -- statements
    def statement(self, stmt: Any, facts: Facts) -> Any:
        match stmt:
            case Store():
                return self.store(stmt, facts)
            case Copy():
                return self.copy(stmt, facts)
            case Fill():
                dst = self.region(stmt.dst, stmt.dst.extent or (1,) * stmt.dst.buffer.rank, facts)
                within = self.within(dst, facts)
                return stmt.but(dst=dst, value=self.value(stmt.value, facts), dst_within=within)
            case If():
                condition = self.value(stmt.condition, facts)
                then = self.body(stmt.then, facts.assuming(*_lasting(stmt.condition, stmt.then)))
                return stmt.but(condition=condition, then=then, orelse=self.body(stmt.orelse, facts))
            case Let():
                value = self.value(stmt.value, facts)
                return stmt if value is stmt.value else stmt.but(value=value)
            case ThreadGroup() | StageGroup():
                return stmt.but(body=self.body(stmt.body, facts))
            case KernelLaunch() | LoopStmt():
                return stmt.but(body=self.body(stmt.body, entered(stmt, facts)))
            case Function():
                return stmt.but(body=self.body(stmt.body, facts))
            case _:
                return map_children(stmt, lambda part: self.value(part, facts))

    def body(self, body: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, (Assume, SafeValue)):
                if isinstance(stmt, Assume):
                    facts = facts.assuming(*self.promised(stmt))
                continue
            bounded = self.statement(stmt, facts)
            statements.append(bounded)
            if isinstance(bounded, Let):
                facts = facts.with_let(bounded.var, bounded.value)
        return tuple(statements)

    def store(self, access: Store, facts: Facts) -> Stmt:
        tests = self.tests(access.buffer, access.index, facts)
        inside = facts.assuming(*tests)
        index = tuple(self.value(part, inside) for part in access.index)
        store = access.but(index=index, value=self.value(access.value, inside))
        return If(all_of(tests), (store,), (), place=access.place) if tests else store

    # -- expressions
    def value(self, expr: Any, facts: Facts) -> Any:
        """An expression with its unproved loads guarded."""
        if isinstance(expr, Load):
            load: Load = map_children(expr, lambda part: self.value(part, facts))
            tests = self.tests(expr.buffer, expr.index, facts)
            if not tests:
                return load
            args = (all_of(tests), load, self.safe.get(expr.buffer.name) or zero_of(expr.dtype))
            return Call("if_then_else", args, type=expr.dtype, place=expr.place)
        if isinstance(expr, Call) and expr.word == "if_then_else":
            condition = self.value(expr.args[0], facts)
            chosen = self.value(expr.args[1], facts.assuming(expr.args[0]))
            args = (condition, chosen, self.value(expr.args[2], facts))
            return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.but(args=args)
        return map_children(expr, lambda part: self.value(part, facts))

    # -- regions
    def copy(self, copy: Copy, facts: Facts) -> Stmt:
        src_extent, dst_extent = self.extents(copy)
        src = self.region(copy.src, src_extent, facts)
        dst = self.region(copy.dst, dst_extent, facts)
        within = self.within(src, facts), self.within(dst, facts)
        if within[0] is not None and copy.src.buffer.name in self.safe:
            # An element that lies outside has a value of its own: a copy knows zero alone.
            self.context.remark(
                NAME, "note", f"outside {src.buffer.name} is a value of its own: a loop over elements", copy
            )
            loop = copy_loop(copy.but(src=copy.src.but(extent=src_extent), dst=dst), self.names)
            return self.statement(loop, facts)
        return copy.but(src=src, dst=dst, src_within=within[0], dst_within=within[1])

    def extents(self, copy: Copy) -> tuple[tuple[int, ...], tuple[int, ...]]:
        src, dst = copy.src.extent, copy.dst.extent
        if src is None and dst is None:
            return (1,) * copy.src.buffer.rank, (1,) * copy.dst.buffer.rank
        if src is None:
            return self.aligned(dst or (), copy.src, copy), dst or ()
        return src, dst if dst is not None else self.aligned(src, copy.dst, copy)

    def aligned(self, extent: tuple[int, ...], head: Region, copy: Copy) -> tuple[int, ...]:
        """The other side's extents, right-aligned to the rank of a head address."""
        rank = head.buffer.rank
        dropped = extent[: max(0, len(extent) - rank)]
        if any(each != 1 for each in dropped):
            raise ShapeError(
                "a tile of extents {extent} does not fit {name}, which has rank {rank}", at=copy.place,
                extent=extent, name=head.buffer.name, rank=rank,
            )  # fmt: skip
        kept = extent[len(dropped) :]
        return (1,) * (rank - len(kept)) + kept

    def region(self, region: Region, extent: tuple[int, ...], facts: Facts) -> Region:
        start = tuple(self.value(part, facts) for part in region.start)
        return region.but(start=start, extent=extent)

    def within(self, region: Region, facts: Facts) -> Within:
        """The bound of each dimension whose box may leave the buffer, None where it cannot."""
        limits: list[int | Expr | None] = []
        for start, extent, limit in zip(region.start, region.extent or (), region.buffer.shape, strict=True):
            inside = facts.proves((start + (extent - 1)).compare("<", limit))
            limits.append(None if inside and facts.proves(start.compare(">=", 0)) else limit)
        leaves = any(limit is not None for limit in limits)
        if leaves:
            self.tested += 1
        else:
            self.proved += 1
        return tuple(limits) if leaves else None


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
