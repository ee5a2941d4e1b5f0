"""Pipelined loops become plain ones around a ring of shared buffers.

`for k in T.Pipelined(n, plan=T.Plan(3))` -> a prologue that fills two versions, and
`for k in T.serial(n)`, which fills version `(k + 2) % 3` for a later step while it computes on
version `k % 3`. Copies are synchronous for now: the ring saves barriers, one a step instead of
two. A loop of one stage becomes a serial loop.
"""

from __future__ import annotations

from typing import Any

from ..ir import (
    ONE,
    ZERO,
    Const,
    Expr,
    Function,
    If,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    map_children,
    rewrite,
    substitute,
)
from ..language.copy import Copy
from ..language.memory import AllocShared
from ..language.structure import Pipelined, Serial, Unroll
from .context import Context
from .names import Names

NAME = "make_ring"


def make_ring(function: Function, context: Context) -> Function:
    """The function without pipelined loops."""
    rings: dict[str, int] = {}
    names = Names(function)

    def step(at: Any) -> Any:
        below = map_children(at, step) if isinstance(at, Stmt) else at
        if isinstance(below, Pipelined):
            return _ring(below, rings, names, context)
        return below

    made = step(function)

    def versions(at: Any) -> Any:
        if isinstance(at, AllocShared) and at.buffer.name in rings:
            return at.but(versions=rings[at.buffer.name])
        return map_children(at, versions) if isinstance(at, Stmt) else at

    return versions(made)


def _ring(loop: Pipelined, rings: dict[str, int], free: Names, context: Context) -> Any:
    stages = loop.plan.stages if loop.plan else 1
    copies = [
        each for each in loop.body if isinstance(each, Copy) and each.at_stage and each.at_stage.number == 0
    ]
    if stages < 2 or not copies:
        body = tuple(_at_version(each, set(), ZERO) for each in loop.body)
        return Serial(loop.stop, loop.vars, body, start=loop.start, place=loop.place)
    names = {each.dst.buffer.name for each in copies}
    for name in names:
        # Loops in turn may share a buffer: it has the versions of the deepest.
        rings[name] = max(stages, rings.get(name, 0))
    var, step = loop.vars[0], loop.vars[0] - loop.start
    ahead = var + (stages - 1)
    ahead_step = step + (stages - 1)
    fetch = tuple(_at_version(substitute(c, {var.name: ahead}), names, ahead_step % stages) for c in copies)
    # A ring outlives an iteration, so what is allocated inside moves in front of the prologue.
    allocated = tuple(e for e in loop.body if isinstance(e, AllocShared) and e.buffer.name in names)
    moved = {id(each) for each in (*copies, *allocated)}
    compute = tuple(_at_version(each, names, step % stages) for each in loop.body if id(each) not in moved)
    later = If(ahead.compare("<", loop.stop), fetch, (), place=loop.place)
    body = (later, *compute)
    main = Serial(loop.stop, loop.vars, body, start=loop.start, place=loop.place)
    context.remark(
        NAME, "applied", f"{', '.join(sorted(names))}: {stages} versions", loop, stages=stages,
        bytes=stages * sum(each.dst.buffer.bytes for each in copies),
    )  # fmt: skip
    return (*allocated, *_prologue(loop, copies, names, stages, free), main)


def _prologue(
    loop: Pipelined, copies: list[Copy], names: set[str], stages: int, free: Names
) -> tuple[Stmt, ...]:
    """The first `stages - 1` fills; fewer when the loop is shorter."""
    start, stop = const_of(loop.start), const_of(loop.stop)
    count = stages - 1
    if start is not None and stop is not None:
        count = min(count, max(0, stop - start))
    if not count:
        return ()
    name = free.fresh(f"{loop.vars[0].name}_first")
    first = Var(name)
    index: Expr = loop.start + first
    body: tuple[Stmt, ...] = tuple(
        _at_version(substitute(each, {loop.vars[0].name: index}), names, first) for each in copies
    )
    if start is None or stop is None:
        body = (If(index.compare("<", loop.stop), body, (), place=loop.place),)
    if count == 1:
        return tuple(substitute(each, {name: ZERO}) for each in body)
    return (Unroll(Const(count), (first,), body, start=ZERO, step=ONE, place=loop.place),)


def _at_version(node: Any, names: set[str], version: Expr) -> Any:
    """The node with every ringed buffer pointed at one version, and its stage of the plan used up."""

    def change(at: Any) -> Any:
        if getattr(at, "at_stage", None) is not None:
            return at.but(at_stage=None)
        if isinstance(at, (Region, Load, Store)) and at.buffer.name in names:
            return at.but(version=version)
        return at

    return rewrite(node, change)
