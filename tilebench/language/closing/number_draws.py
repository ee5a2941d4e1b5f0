"""Random numbers of a parallel loop get their places: those that its elements would draw one after the other.

    for i, j in T.Parallel(m, n):              for i, j in T.Parallel(m, n):
        a = number rng_next + slot        ->       a = number rng_next + (i * n + j) * 2
        b = number rng_next + slot__2              b = number rng_next + (i * n + j) * 2 + 1
                                               rng_next = rng_next + m * n * 2

In a loop inside each turn has its own; of a branch both sides have theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ...errors import LanguageError
from ...ir import (
    Buffer,
    Cast,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    const_of,
    map_bodies,
    substitute,
    walk,
)
from ...ir.dtypes import uint64
from ..structure import Parallel, Vectorized

# Above this an element's number among those of its loop has no room in an index.
MOST = 2**31 - 1


def number_draws(function: Function, draws: Mapping[str, Buffer]) -> Function:
    """The function in which no slot is left. `draws` are the counters by their slots.

    Raises `LanguageError` where nobody knows how many numbers a parallel loop draws.
    """

    def step(node: Any) -> Any:
        return _numbered(node, draws) if isinstance(node, Parallel) else map_bodies(node, step)

    return step(function)


@dataclass
class _Slots:
    """Where slots stand among the numbers of their element, by their names."""

    draws: Mapping[str, Buffer]
    places: dict[str, tuple[Buffer, Expr]] = field(default_factory=dict[str, "tuple[Buffer, Expr]"])

    def body(self, body: tuple[Stmt, ...], first: Mapping[str, Expr]) -> dict[str, int]:
        """Number the slots of a body, from `first` on by counter; how many each counter has."""
        count: dict[str, int] = {}
        for statement in body:
            found = self.statement(statement, {
                buffer.name: first.get(buffer.name, Const(0)) + count.get(buffer.name, 0)
                for buffer in self.draws.values()
            })  # fmt: skip
            for name, number in found.items():
                count[name] = count.get(name, 0) + number
        return count

    def statement(self, statement: Stmt, first: Mapping[str, Expr]) -> dict[str, int]:
        if isinstance(statement, Let):
            slots = [p.name for p in walk(statement.value) if isinstance(p, Var) and p.name in self.draws]
            for name in slots:
                buffer = self.draws[name]
                self.places[name] = buffer, first[buffer.name]
            return {self.draws[name].name: 1 for name in slots}
        if isinstance(statement, If):
            yes = self.body(statement.then, first)
            after = {name: start + yes.get(name, 0) for name, start in first.items()}
            no = self.body(statement.orelse, after)
            return {name: yes.get(name, 0) + no.get(name, 0) for name in {*yes, *no}}
        if isinstance(statement, LoopStmt):
            return self.loop(statement, first)
        return {}

    def loop(self, loop: LoopStmt, first: Mapping[str, Expr]) -> dict[str, int]:
        inner = _Slots(self.draws).body(loop.body, {})
        if not inner:
            return {}
        trips, turn = _turns(loop)
        if trips is None or turn is None:
            raise LanguageError(
                "how many random numbers this loop draws depends on the running kernel", at=loop.place,
                hint="draw them in a loop of constant length, or work on threads instead of T.Parallel",
            )  # fmt: skip
        self.body(loop.body, {name: start + turn * inner.get(name, 0) for name, start in first.items()})
        return {name: number * trips for name, number in inner.items()}


def _turns(loop: LoopStmt) -> tuple[int | None, Expr | None]:
    """How often a loop turns, and the number of a turn."""
    if isinstance(loop, Vectorized):
        return loop.extent, loop.vars[0]
    ends = [const_of(getattr(loop, name, Const(None))) for name in ("start", "stop", "step")]
    if loop.condition is not None or not loop.vars or None in ends:
        return None, None
    start, stop, step = (int(end or 0) for end in ends)
    return max(0, -((start - stop) // step)), (loop.vars[0] - start) // step


def _numbered(loop: Parallel, draws: Mapping[str, Buffer]) -> Stmt | tuple[Stmt, ...]:
    slots = _Slots(draws)
    count = slots.body(loop.body, {})
    if not count:
        return loop
    elements = prod(loop.extents)
    linear: Expr = Const(0)
    for var, extent in zip(loop.vars, loop.extents, strict=True):
        linear = linear * extent + var
    if elements * max(count.values()) > MOST:
        raise LanguageError(
            "this loop draws {count} random numbers", count=elements * max(count.values()), at=loop.place,
            expected="at most {most}", most=MOST,
        )  # fmt: skip
    values = {
        name: Cast(linear * count[buffer.name] + place, type=uint64)
        for name, (buffer, place) in slots.places.items()
    }
    counters = {buffer.name: buffer for buffer in draws.values()}
    after = [_advanced(counters[name], elements * n).at(loop.place) for name, n in count.items()]
    return (substitute(loop, values), *after)


def _advanced(counter: Buffer, count: int) -> Store:
    return Store(counter, (), Load(counter, ()) + Const(count, type=uint64))


__all__ = ["number_draws"]
