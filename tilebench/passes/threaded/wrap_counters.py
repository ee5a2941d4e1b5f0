"""Versions of a ring are counted, not divided out: `(ko + 2) % 3` in each step becomes a counter that wraps.

`A_s[... + ko % 3 * 4096]` -> `A_s[... + ko_slot * 4096]`, with `ko_slot = T.alloc_var(T.int32, init=0)` in
front of the loop and `ko_slot = T.if_then_else(ko_slot == 2, 0, ko_slot + 1)` at the end of a step. A
remainder by a power of two is one instruction and stays. Only loops in which threads meet, or wait for a
phase of a barrier, have a ring; others may be written out by the target's compiler, where a remainder is a
number.
"""

from __future__ import annotations

from typing import Any

from ...ir import (
    Arith,
    Buffer,
    Call,
    Const,
    Expr,
    Function,
    Let,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    WithStmt,
    const_of,
    int32,
)
from ...ir.arith import Linear, linear
from ...ir.expr_walks import mentions, seen
from ...ir.names import Names
from ...ir.node import map_bodies, map_children
from ...ir.stmt import statements
from ...language.lowered.mbarriers import MbarrierWait
from ...language.lowered.threads import SyncThreads
from ...language.memory import AllocVar
from ...language.structure import Serial
from ..context import Context

NAME = "wrap_counters"
MEETINGS = (SyncThreads, MbarrierWait)


def wrap_counters(function: Function, context: Context) -> Function:
    """The function whose rolled loops divide by no number of versions."""
    names = Names(function)

    def step(node: Any) -> Any:
        node = map_bodies(node, step)
        return _wrapped(node, names) if isinstance(node, Serial) and _has_ring(node) else node

    return step(function)


def _has_ring(loop: Serial) -> bool:
    return const_of(loop.step) == 1 and any(isinstance(inner, MEETINGS) for inner in statements(loop.body))


class _Counters:
    """The remainders of one loop, each by where it starts and what it is divided by."""

    def __init__(self, loop: Serial, names: Names) -> None:
        self.loop, self.names = loop, names
        self.var = loop.vars[0]
        self.found: dict[tuple[Linear, int], Buffer] = {}
        # What is computed inside is not there in front of the loop.
        self.inside = {name for inner in statements(loop.body) for name in _bound(inner)}

    def replaced(self, node: Any) -> Any:
        """A statement or expression with its remainders counted."""
        if isinstance(node, Expr):
            if self.var.name not in seen(node).names:
                return node
            if type(node) is Arith and node.op == "%" and (counter := self.counter(*node.args)) is not None:
                return Load(counter, ())
        return map_children(node, self.replaced)

    def counter(self, value: Expr, by: Expr) -> Buffer | None:
        """The counter of a remainder; None where it is no matter of this loop's steps."""
        number = const_of(by)
        if number is None or number < 3 or number & (number - 1) == 0 or value.dtype != int32:
            return None
        form = linear(value)
        rest = form.without(self.var)
        if form.coefficient(self.var) != 1 or not self._is_outside(rest):
            return None
        key = Linear(rest.terms, rest.constant % number), number
        if key not in self.found:
            self.found[key] = Buffer(self.names.fresh(f"{self.var.name}_slot"), (), int32, "var")
        return self.found[key]

    def _is_outside(self, rest: Linear) -> bool:
        names = (self.var.name, *self.inside)
        terms = [term for term, _ in rest.terms]
        return not any(isinstance(term, Load) or any(mentions(term, n) for n in names) for term in terms)


def _bound(statement: Stmt) -> list[str]:
    variables: list[Var] = []
    if isinstance(statement, Let):
        variables.append(statement.var)
    elif isinstance(statement, (LoopStmt, WithStmt)):
        variables += statement.vars
    return [variable.name for variable in variables]


def _wrapped(loop: Serial, names: Names) -> Any:
    counters = _Counters(loop, names)
    body = tuple(counters.replaced(statement) for statement in loop.body)
    if not counters.found:
        return loop
    before: list[Stmt] = []
    after: list[Stmt] = []
    for (rest, number), counter in counters.found.items():
        first = (loop.start + rest.expr()) % number
        before.append(AllocVar(counter, init=first, place=loop.place))
        now = Load(counter, ())
        following = Call("if_then_else", (now.compare("==", number - 1), Const(0), now + 1), type=int32)
        after.append(Store(counter, (), following, place=loop.place))
    return (*before, loop.but(body=(*body, *after)))
