"""Tiles of which each thread has a row become arrays of that thread, before layouts are thought about.

`x = T.alloc_fragment((128, 4), T.float32, of_threads=True)` -> `x = T.alloc_local((4,), T.float32)`, and in
loops over threads `x[tx, k]` -> `x[k]`. What is read of another thread's row is that thread's by a shuffle.
"""

from __future__ import annotations

from typing import Any

from ..ir import (
    AllocStmt,
    Buffer,
    Call,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    Stmt,
    Store,
    Var,
    map_children,
)
from ..ir.names import Names
from ..language.memory import AllocFragment, AllocLocal, AllocVar
from ..language.structure import Parallel
from .analysis.launches import launch_of
from .context import Context


def own_rows(function: Function, context: Context) -> Function:
    """The function in which what is a thread's own is in its own memory."""
    loops = [s for s in _parallel(function) if s.of_threads]
    if not loops:
        return function
    return _Rows(function, context).function()


def _parallel(function: Function) -> list[Parallel]:
    from ..ir.stmt import statements

    return [statement for statement in statements(function.body) if isinstance(statement, Parallel)]


class _Rows:
    """`own` are the arrays of threads by the name of their tile."""

    def __init__(self, function: Function, context: Context) -> None:
        self.old = function
        self.names = Names(function)
        self.warp = context.machine.warp
        self.threads = launch_of(function).threads
        self.own: dict[str, Buffer] = {}

    def function(self) -> Function:
        return self.outside(self.old)

    def outside(self, node: Any) -> Any:
        """A statement of the block."""
        if isinstance(node, AllocFragment) and node.of_threads:
            return self.allocation(node)
        if isinstance(node, Parallel):
            return node.but(body=self.body(node.body, node.vars)) if node.of_threads else node
        return map_children(node, self.outside) if isinstance(node, Stmt) else node

    def allocation(self, node: AllocFragment) -> AllocStmt:
        old = node.buffer
        rank = next(k for k in range(1, 4) if _product(old.extents[:k]) == self.threads)
        shape = old.extents[rank:]
        self.own[old.name] = Buffer(old.name, shape, old.dtype, "local" if shape else "var")
        kind: Any = AllocLocal if shape else AllocVar
        return kind(self.own[old.name], place=node.place)

    def body(self, body: tuple[Stmt, ...], numbers: tuple[Var, ...]) -> tuple[Stmt, ...]:
        """Statements of one thread; what it has of others comes before the statement that needs it."""
        lowered: list[Stmt] = []
        for statement in body:
            before: list[Stmt] = []

            def step(node: Any, before: list[Stmt] = before) -> Any:
                if isinstance(node, Stmt):
                    return node
                below = map_children(node, step)
                return self.load(below, numbers, before) if isinstance(below, Load) else below

            changed: Any = map_children(statement, step)
            if isinstance(statement, (If, LoopStmt)):
                fields = {
                    mark.name: self.body(getattr(statement, mark.name), numbers)
                    for mark in statement.marks if mark.mark == "body"
                }  # fmt: skip
                changed = changed.but(**fields)
            if isinstance(changed, Store) and changed.buffer.name in self.own:
                own = self.own[changed.buffer.name]
                changed = changed.but(buffer=own, index=changed.index[len(numbers) :])
            lowered += [*before, changed]
        return tuple(lowered)

    def load(self, load: Load, numbers: tuple[Var, ...], before: list[Stmt]) -> Node:
        own = self.own.get(load.buffer.name)
        if own is None:
            return load
        who, index = load.index[: len(numbers)], load.index[len(numbers) :]
        mine = Load(own, index, place=load.place)
        if who == numbers:
            return mine
        lane: Expr = Const(0)
        for part, extent in zip(who, load.buffer.extents, strict=False):
            lane = lane * extent + part
        name = Var(self.names.fresh("other"), type=own.dtype, place=load.place)
        value = Call("shfl", (mine, lane % self.warp), type=own.dtype, place=load.place)
        before.append(Let(name, value, place=load.place))
        return name


def _product(extents: tuple[int, ...]) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total
