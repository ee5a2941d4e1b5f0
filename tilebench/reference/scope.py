"""What is known while a function is prepared: the open parallel loop, and which values vary in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import Expr, Load, Var, substitute, walk
from ..ir.arith import linear


@dataclass(frozen=True)
class BoxAxis:
    """One dimension of an access: `start` alone, or `start` plus the index of an axis of the box."""

    start: Expr
    axis: int | None


@dataclass(eq=False)
class LoopScope:
    """Names of the open parallel loop by axis, its extents, and lets that index arithmetic sees through.

    `suspects` are the buffers whose accesses are compared for races when the loop ends.
    """

    axes: dict[str, int] = field(default_factory=dict[str, int])
    extents: tuple[int, ...] = ()
    varying: set[str] = field(default_factory=set[str])
    lets: dict[str, Expr] = field(default_factory=dict[str, Expr])
    suspects: frozenset[str] = frozenset()

    @property
    def parallel(self) -> bool:
        return bool(self.extents)

    def varies(self, expr: Expr) -> bool:
        """Whether the value may differ between elements of the box."""
        return any(isinstance(n, Load) or (isinstance(n, Var) and n.name in self.varying) for n in walk(expr))

    def let(self, name: str, value: Expr) -> None:
        """Note a let; integers without loads are seen through."""
        if self.parallel and self.varies(value):
            self.varying.add(name)
        if value.dtype.is_integer and not any(isinstance(n, Load) for n in walk(value)):
            self.lets[name] = self.inlined(value)

    def inlined(self, expr: Expr) -> Expr:
        values = {n.name: self.lets[n.name] for n in walk(expr) if isinstance(n, Var) and n.name in self.lets}
        return substitute(expr, values) if values else expr

    def box_of(self, index: Sequence[Expr]) -> tuple[BoxAxis, ...] | None:
        """The access as a box: each index a start plus at most one loop variable, each used once."""
        plan: list[BoxAxis] = []
        used: set[int] = set()
        for position in index:
            form = linear(self.inlined(position))
            axis: int | None = None
            for term, factor in form.terms:
                if isinstance(term, Var) and term.name in self.axes:
                    if factor != 1 or axis is not None:
                        return None
                    axis, form = self.axes[term.name], form.without(term)
                elif self.varies(term):
                    return None
            if axis is not None and axis in used:
                return None
            if axis is not None:
                used.add(axis)
            plan.append(BoxAxis(form.expr(), axis))
        return tuple(plan)
