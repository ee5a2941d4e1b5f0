"""Tiles of which each thread has a row become arrays of that thread, before layouts are thought about.

`x = T.alloc_fragment((128, 4), T.float32, of_threads=True)` -> `x = T.alloc_local((4,), T.float32)`, and in
loops over threads `x[tx, k]` -> `x[k]`. What is read of another thread's row is that thread's by a shuffle.
Where threads along a dimension all store to one element, the first of those that come there does: what they
store is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ...errors import LanguageError
from ...ir import (
    AllocStmt,
    Arith,
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
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    children,
    map_bodies,
    map_children,
    walk,
)
from ...ir.names import Names
from ...ir.stmt import statements
from ...language.memory import AllocFragment, AllocLocal, AllocVar
from ...language.structure import Parallel
from ...language.threads.conditions import holds
from ...language.votes import WarpVote
from ..analysis.launches import launch_of
from ..context import Context


def own_rows(function: Function, context: Context) -> Function:
    """The function in which what is a thread's own is in its own memory."""
    loops = [s for s in _parallel(function) if s.of_threads]
    if not loops:
        return function
    return _Rows(function, context).function()


def _parallel(function: Function) -> list[Parallel]:
    return [statement for statement in statements(function.body) if isinstance(statement, Parallel)]


@dataclass(frozen=True)
class _Alike:
    """`numbers` are those whose threads may do a statement alike, `names` the names of the run.

    `tests` are the conditions around that `extents`, the threads by their numbers, decide.
    """

    extents: dict[str, int]
    numbers: frozenset[str]
    names: frozenset[str]
    tests: tuple[Expr, ...] = ()

    def under(self, statement: LoopStmt) -> _Alike:
        """What is left inside a loop."""
        parts = [part for part in children(statement) if isinstance(part, Expr)]
        return replace(self, numbers=self.numbers.difference(*map(self.told, parts)))

    def where(self, condition: Expr) -> _Alike:
        """What is left where a condition holds."""
        if isinstance(condition, Arith) and condition.op == "and":
            found = self
            for part in condition.args:
                found = found.where(part)
            return found
        told = self.told(condition)
        used = {part.name for part in walk(condition) if isinstance(part, Var)}
        if told and used <= self.extents.keys() and holds(condition, dict.fromkeys(used, 0)) is not None:
            return replace(self, tests=(*self.tests, condition))
        return replace(self, numbers=self.numbers - told)

    def told(self, expr: Expr) -> frozenset[str]:
        """The numbers that an expression may depend on."""
        found: set[str] = set()
        for part in walk(expr):
            if isinstance(part, Load) or (isinstance(part, Var) and part.name in self.names):
                return self.numbers
            if isinstance(part, Var):
                found.add(part.name)
        return self.numbers & found

    def once(self, store: Store) -> Stmt:
        """A store that threads do alike, by one of them."""
        if store.buffer.scope not in ("shared", "global"):
            return store
        others = self.numbers.difference(*map(self.told, store.index))
        tests = [Var(name).compare("==", number) for name, number in self.first(others)]
        return If(all_of(tests), (store,), (), place=store.place) if tests else store

    def first(self, others: frozenset[str]) -> list[tuple[str, int]]:
        """The first of the threads that come there, by those of their numbers that conditions leave open."""
        if not others:
            return []
        names = sorted(self.extents.keys() - others) + sorted(others)
        extents = [self.extents[name] for name in names]
        grid: Any = np.indices(extents)
        chosen: Any = np.ones(extents, bool)
        for test in self.tests:
            chosen = chosen & holds(test, dict(zip(names, grid, strict=True)))
        lines = chosen.reshape(-1, prod(extents[-len(others) :]))  # those of each line store alike
        found = np.unique(lines.argmax(axis=1)[lines.any(axis=1)])
        if len(found) != 1 or lines.sum(axis=1).max() == 1:
            return []  # nobody comes, or one of each line, or not the same one of each
        hits: Any = grid[len(names) - len(others) :].reshape(len(others), *lines.shape)[:, lines]
        open_ = [(name, every) for name, every in zip(sorted(others), hits, strict=True) if np.ptp(every)]
        # In every line the first is at one place, so it is the first that is hit in the first line too.
        return [(name, int(every[0])) for name, every in open_]


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
            return self.loop(node) if node.of_threads else node
        if isinstance(node, WarpVote):
            return self.vote(node)
        return map_bodies(node, self.outside)

    def loop(self, loop: Parallel) -> Parallel:
        numbers = zip(loop.vars, loop.extents, strict=True)
        alike = frozenset(var.name for var, extent in numbers if extent > 1)
        names = frozenset(node.var.name for node in statements(loop.body) if isinstance(node, Let))
        extents = {var.name: extent for var, extent in zip(loop.vars, loop.extents, strict=True)}
        return loop.but(body=self.body(loop.body, loop.vars, _Alike(extents, alike, names)))

    def allocation(self, node: AllocFragment) -> AllocStmt:
        old = node.buffer
        rank = next(k for k in range(1, 4) if _product(old.extents[:k]) == self.threads)
        shape = old.extents[rank:]
        self.own[old.name] = Buffer(old.name, shape, old.dtype, "local" if shape else "var")
        kind: Any = AllocLocal if shape else AllocVar
        return kind(self.own[old.name], place=node.place)

    def vote(self, vote: WarpVote) -> Parallel:
        """What each lane knows of its warp, by one instruction."""
        src, dst = vote.src.buffer, vote.dst.buffer
        names = tuple(Var(self.names.fresh(f"t{axis}"), place=vote.place) for axis in range(src.rank))
        mine = Load(self.own[src.name], (), place=vote.place)
        word = f"vote_{vote.kind}"
        value = Call(word, (mine,), type=dst.dtype, place=vote.place)
        store = Store(self.own[dst.name], (), value, place=vote.place)
        return Parallel(src.extents, names, (store,), of_threads=True, place=vote.place)

    def body(self, body: tuple[Stmt, ...], numbers: tuple[Var, ...], alike: _Alike) -> tuple[Stmt, ...]:
        """Statements of one thread; what it has of others comes before the statement that needs it."""
        lowered: list[Stmt] = []
        for statement in body:
            before: list[Stmt] = []

            def step(node: Any, before: list[Stmt] = before) -> Any:
                if isinstance(node, Stmt):
                    return node
                below = map_children(node, step)
                if isinstance(below, Region):
                    return self.region(below, numbers)
                return self.load(below, numbers, before) if isinstance(below, Load) else below

            changed: Any = map_children(statement, step)
            if isinstance(statement, If):
                otherwise = Arith("not", (statement.condition,))
                then = self.body(statement.then, numbers, alike.where(statement.condition))
                changed = changed.but(
                    then=then, orelse=self.body(statement.orelse, numbers, alike.where(otherwise))
                )
            elif isinstance(statement, LoopStmt):
                inner = alike.under(statement)
                fields = {
                    mark.name: self.body(getattr(statement, mark.name), numbers, inner)
                    for mark in statement.marks if mark.mark == "body"
                }  # fmt: skip
                changed = changed.but(**fields)
            if isinstance(changed, Store) and changed.buffer.name in self.own:
                own = self.own[changed.buffer.name]
                changed = changed.but(buffer=own, index=changed.index[len(numbers) :])
            elif isinstance(changed, Store) and changed.plain:
                changed = alike.once(changed)
            lowered += [*before, changed]
        return tuple(lowered)

    def region(self, region: Region, numbers: tuple[Var, ...]) -> Region:
        """The row of a thread that a pointer is to; of no other thread's there is an address."""
        own = self.own.get(region.buffer.name)
        if own is None:
            return region
        who, start = region.start[: len(numbers)], region.start[len(numbers) :]
        if who != numbers:
            raise LanguageError(
                "{name} of another thread has no address", name=region.buffer.name, at=region.place,
                hint="exchange its elements by shuffles, or in shared memory",
            )  # fmt: skip
        return region.but(buffer=own, start=start, extent=(region.extent or ())[len(numbers) :])

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
