"""What is known of the iterations of one parallel loop: which elements several of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import Arith, Const, Expr, Let, Load, Var, walk
from ...ir.arith import evaluate, linear
from ...ir.expr import COMPARE, LOGIC
from ...ir.expr_walks import mentions, replaced
from ...ir.facts import MOST_NODES
from ..structure import Parallel

# Iterations of a loop that are looked at for two that meet; of more, those with the first indices.
_MOST = 1 << 16
_INDEX = frozenset(("+", "-", "*", "//", "%", "^", "&", "|", "<<", ">>"))
_DECIDED = frozenset((*_INDEX, *COMPARE, *LOGIC))


class Iterations:
    """One parallel loop. `short` are the values of its names that indices are seen through to, `loads` what
    elements of memory went into each of its names."""

    def __init__(self, loop: Parallel) -> None:
        self.extents = {var.name: extent for var, extent in zip(loop.vars, loop.extents, strict=True)}
        self.short: dict[str, Expr] = {}
        self.loads: dict[str, frozenset[Load]] = {}

    def name(self, let: Let) -> None:
        self.loads[let.var.name] = self.read(let.value)
        value = replaced(let.value, self.short)
        if value.dtype.is_integer and len(walk(value)) <= MOST_NODES and not self.loads[let.var.name]:
            self.short[let.var.name] = value

    def read(self, value: Expr) -> frozenset[Load]:
        """The elements of memory that go into a value."""
        found: set[Load] = set()
        for node in walk(value):
            if isinstance(node, Load):
                found.add(Load(node.buffer, tuple(replaced(each, self.short) for each in node.index)))
            elif isinstance(node, Var):
                found |= self.loads.get(node.name, frozenset())
        return frozenset(found)

    def one_each(self, index: Sequence[Expr]) -> bool:
        """Whether each variable of the loop alone moves a position of its own: the usual index."""
        moved: set[str] = set()
        for position in index:
            names = [name for name in self.extents if mentions(position, name)]
            if len(names) == 1 and linear(position).coefficient(Var(names[0])):
                moved.add(names[0])
        return all(extent == 1 or name in moved for name, extent in self.extents.items())

    def meet(self, index: Sequence[Expr], tests: Sequence[Expr]) -> bool:
        """Whether two iterations surely have one index."""
        import numpy as np

        moving = [self.moving(position) for position in index]
        if None in moving or not all(self.may_leave_many(test) for test in tests):
            return False
        extents = dict(self.extents)
        while np.prod(list(extents.values())) > _MOST:
            longest = max(extents, key=lambda name: extents[name])
            extents[longest] = -(-extents[longest] // 2)
        grid = np.indices(tuple(extents.values())).reshape(len(extents), -1)
        values = dict(zip(extents, grid, strict=True))
        here = np.ones(grid.shape[1], bool)
        for test in tests:
            if self.decides(test):
                here &= _holds(test, values)
        places = [
            np.broadcast_to(evaluate(each, values), here.shape)[here] for each in moving if each is not None
        ]
        return np.unique(np.stack(places), axis=1).shape[1] < int(here.sum())

    def moving(self, index: Expr) -> Expr | None:
        """The part of an index that changes from one iteration to another; None where data decides it."""
        form = linear(index)
        for term, _ in form.terms:
            form = form if self.concerns(term) else form.without(term)
        moving = form.expr()
        return moving if self.decides(moving) else None

    def concerns(self, expr: Expr) -> bool:
        """Whether a value may be another one in another iteration."""
        names = self.extents.keys() | self.loads.keys()
        return any(
            isinstance(node, Load) or (isinstance(node, Var) and node.name in names) for node in walk(expr)
        )

    def decides(self, expr: Expr) -> bool:
        """Whether the number of the iteration alone decides a value."""
        return all(
            isinstance(node, Const)
            or (isinstance(node, Var) and node.name in self.extents)
            or (isinstance(node, Arith) and node.op in _DECIDED)
            for node in walk(expr)
        )

    def may_leave_many(self, test: Expr) -> bool:
        """Whether a condition is not one that picks out a single iteration, as `i == k` does."""
        if self.decides(test) or not self.concerns(test) or isinstance(test, Load):
            return True
        if not isinstance(test, Arith):
            return False
        if test.op == "not":
            inner = test.args[0]
            return isinstance(inner, Load) or (isinstance(inner, Arith) and inner.op in COMPARE[:5])
        return test.op in COMPARE and test.op != "=="


def _holds(test: Expr, values: Mapping[str, Any]) -> Any:
    """Where a condition on the number of the iteration alone holds."""
    import numpy as np

    if isinstance(test, Arith) and test.op in LOGIC:
        parts = [_holds(each, values) for each in test.args]
        if test.op == "not":
            return np.logical_not(parts[0])
        return np.all(parts, axis=0) if test.op == "and" else np.any(parts, axis=0)
    if isinstance(test, Arith) and test.op in COMPARE:
        a, b = (evaluate(each, values) for each in test.args)
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[test.op]
    return bool(getattr(test, "value", True))
