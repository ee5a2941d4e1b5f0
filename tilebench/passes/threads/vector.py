"""Vectors of one thread: which accesses of an element body are one wide access, and under which test."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any

from ...ir import (
    Arith,
    Buffer,
    Call,
    Const,
    Expr,
    If,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    zero_of,
)  # fmt: skip
from ...ir.arith import Linear, bounds, divisor, linear
from ...ir.expr import COMPARE
from ...language.lowered.threads import VectorLoad
from ...language.structure import Unroll
from ...layout import SharedLayout
from ..fast_exprs import mentions, replaced
from .access import lower_expr, shared_offset
from .env import NOWHERE, Env, Site

MEMORY = ("global", "shared")
UNIFORM, ENDS, MIXED = "uniform", "ends", "mixed"


@dataclass
class Vector:
    """`width` elements in a row along the coordinate `var`, which names the first of them."""

    env: Env
    site: Site
    var: Var
    width: int
    lets: dict[str, Expr] = field(default_factory=dict[str, Expr])
    # By identity; the expression is kept with the answer, so that its identity stays its own.
    _spelled: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, "tuple[Expr, Expr]"])
    _kinds: dict[int, tuple[Expr, str]] = field(default_factory=dict[int, "tuple[Expr, str]"])
    _widths: dict[int, tuple[Any, int]] = field(default_factory=dict[int, "tuple[Any, int]"])

    # -- analysis
    def spelled(self, expr: Expr) -> Expr:
        """All names resolved but the vector's own coordinate."""
        held = self._spelled.get(id(expr))
        if held is None:
            known = dict(self.env.lets)
            known.pop(self.var.name, None)
            made = replaced(replaced(expr, self.lets) if self.lets else expr, known)
            held = self._spelled[id(expr)] = expr, made
        return held[1]

    def _varies(self, expr: Expr) -> bool:
        return mentions(expr, self.var.name)

    def _form(self, expr: Expr) -> tuple[Linear, int] | None:
        """The linear form and the factor of the coordinate, None where it is not linear in it."""
        form = linear(self.spelled(expr))
        factor = form.coefficient(self.var)
        if any(self._varies(term) for term, _ in form.terms if term != self.var):
            return None
        return form, factor

    def access_width(self, at: Load | Store) -> int:
        """The elements one aligned access can take; 1 where the elements are not neighbours."""
        held = self._widths.get(id(at))
        if held is None:
            held = self._widths[id(at)] = at, self._access_width(at.buffer, at.index, at.version)
        return held[1]

    def _access_width(self, buffer: Buffer, index: tuple[Expr, ...], version: Expr | None) -> int:
        width = min(self.width, max(1, buffer.dtype.elements_in(self.env.machine.vector_bytes[0])))
        tile = self.env.shared.get(buffer.name)
        if tile is not None:
            width = width if version is None else gcd(width, tile.layout.cosize)
            return self._shared_width(tile.layout, index, width)
        step = 0
        for k, (coordinate, stride) in enumerate(zip(index, buffer.element_strides, strict=True)):
            found = self._form(coordinate)
            if found is None:
                return 1
            step += found[1] * stride
            if found[1] and (stride != 1 or k != len(index) - 1):
                return 1
            width = gcd(width, divisor(self.env.resolved(found[0].expr())) * stride)
        return width if step == 1 else 1

    def _shared_width(self, layout: SharedLayout, index: tuple[Expr, ...], width: int) -> int:
        """The same in a shared tile: what the layout keeps together, along the dimension that moves."""
        moved = False
        for dim, coordinate in enumerate(index):
            found = self._form(coordinate)
            if found is None:
                return 1
            form, factor = found
            if factor and (moved or factor != 1 or layout.run(dim) == 1):
                return 1
            if factor:
                moved = True
                width = gcd(width, layout.vector, divisor(self.env.resolved(form.expr())))
        return width if moved else 1

    def kind(self, condition: Expr) -> str:
        """Whether a condition holds for all elements of a vector alike, or is told by its two ends."""
        held = self._kinds.get(id(condition))
        if held is None:
            held = self._kinds[id(condition)] = condition, self._kind(condition)
        return held[1]

    def _kind(self, condition: Expr) -> str:
        if not self._varies(self.spelled(condition)):
            return UNIFORM
        if isinstance(condition, Arith) and condition.op == "and":
            kinds = {self.kind(each) for each in condition.args}
            return MIXED if MIXED in kinds else ENDS if ENDS in kinds else UNIFORM
        if not (
            isinstance(condition, Arith)
            and condition.op in COMPARE[:4]
            and condition.args[0].dtype.is_integer
        ):
            return MIXED
        found = self._form(condition.args[0] - condition.args[1])
        if found is None:
            return MIXED
        edge = 1 if condition.op in ("<=", ">") else 0
        start = self.env.resolved((found[0].expr()) - edge)
        return UNIFORM if found[1] == 1 and divisor(start) % self.width == 0 else ENDS

    def all_inside(self, condition: Expr) -> Expr:
        """The condition for all elements of the vector: a linear comparison is told by one end."""
        step = {self.var.name: self.var + (self.width - 1)}
        out: list[Expr] = []
        for each in _parts(condition):
            if self.kind(each) == UNIFORM:
                out.append(each)
                continue
            assert isinstance(each, Arith)
            found = self._form(each.args[0] - each.args[1])
            rising = found is None or found[1] > 0
            out.append(replaced(each, step) if rising == (each.op in ("<", "<=")) else each)
        return all_of(out)

    # -- emission
    def element_loop(self, body: list[Stmt]) -> Unroll:
        return Unroll(Const(self.width), (self.e,), tuple(body))

    def chunks(self, width: int) -> range:
        return range(0, self.width, width)

    def memory(self, at: Load | Store, width: int, lead: int, out: list[Stmt]) -> Region:
        """The region of one access, `lead` elements into the vector."""
        flat_site = Site(self.site.map, self.site.vars, self.site.digits)
        if at.buffer.name in self.env.shared:
            index = tuple(lower_expr(self.env, each, flat_site, out) for each in at.index)
            fast = _fast_dim(index, self.env.shared[at.buffer.name].layout, self.var)
            index = tuple(each + lead if k == fast else each for k, each in enumerate(index))
            offset = shared_offset(self.env, at.buffer.name, index, at.version, out)
            return Region(self.env.shared[at.buffer.name].flat, (offset,), extent=(width,))
        index = tuple(lower_expr(self.env, each, flat_site, out) for each in at.index)
        start = (*index[:-1], index[-1] + lead)
        return Region(at.buffer, start, extent=(1,) * (len(start) - 1) + (width,))

    def load(self, at: Load, width: int, registers: Buffer, guards: tuple[Expr, ...]) -> list[Stmt]:
        """Fill `registers` with a vector of memory; elements outside `guards` become zero."""
        inside: list[Stmt] = []
        for lead in self.chunks(width):
            source = self.memory(at, width, lead, inside)
            inside.append(VectorLoad(Region(registers, (Const(lead),), extent=(width,)), source))
        condition = fold_condition(self.env, all_of(list(guards)), self.site)
        if condition == all_of([]):
            return inside
        e = self.e
        zero = zero_of(at.dtype)
        out: list[Stmt] = []
        if self.kind(condition) == UNIFORM:
            fill: Stmt = Store(registers, (e,), zero)
            test = condition
        else:
            lets: list[Stmt] = []
            single = lower_expr(self.env, at, self.site, lets)
            shifted = lower_expr(self.env, condition, self.site, lets)
            picked = Call("if_then_else", (shifted, single, zero), type=at.dtype)
            out_of_line: list[Stmt] = [*lets, Store(registers, (e,), picked)]
            base = lower_expr(self.env, self.all_inside(condition), Site(self.site.map, self.site.vars), out)
            return [*out, If(base, tuple(inside), (self.element_loop(out_of_line),))]
        base = lower_expr(self.env, test, Site(self.site.map, self.site.vars), out)
        return [*out, If(base, tuple(inside), (self.element_loop([fill]),))]

    @property
    def e(self) -> Var:
        """The number of an element in its vector."""
        assert self.site.shift is not None
        assert isinstance(self.site.shift[1], Var)
        return self.site.shift[1]


def _parts(condition: Expr) -> tuple[Expr, ...]:
    return condition.args if isinstance(condition, Arith) and condition.op == "and" else (condition,)


def _fast_dim(index: tuple[Expr, ...], layout: SharedLayout, var: Var) -> int | None:
    """The dimension the vector runs along: of stride 1, indexed with the vector's coordinate."""
    for dim, coordinate in enumerate(index):
        if layout.run(dim) > 1 and mentions(coordinate, var.name):
            return dim
    return layout.contiguous_dim


def fold_condition(env: Env, condition: Expr, site: Site = NOWHERE) -> Expr:
    """The condition without the comparisons that the ranges of the variables prove.

    Inside a vector the coordinate names the first element, and all of them must pass.
    """
    shift = {} if site.shift is None else {site.shift[0]: Var(site.shift[0]) + site.shift[1]}
    kept: list[Expr] = []
    for each in _parts(condition):
        if isinstance(each, Arith) and each.op in COMPARE[:4] and each.args[0].dtype.is_integer:
            difference = replaced(each.args[0] - each.args[1], shift)
            low, high = bounds(env.resolved(difference), env.ranges)
            true = {"<": high < 0, "<=": high <= 0, ">": low > 0, ">=": low >= 0}[each.op]
            if true:
                continue
        kept.append(each)
    return all_of(kept)
