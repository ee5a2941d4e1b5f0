"""Vectors of one thread: which accesses of an element body are one wide access, and under which test."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any

from ..ir import (
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    map_children,
    refold,
)  # fmt: skip
from ..ir.arith import Linear, bounds, divisor, linear
from ..ir.expr import COMPARE
from ..language.memory import AllocLocal
from ..language.structure import Unroll
from ..language.threads import VectorLoad, VectorStore
from .fast_exprs import mentions, replaced
from .threads_access import lower_expr, lower_target, shared_offset
from .threads_env import NOWHERE, Env, Site

MEMORY = ("global", "shared")
UNIFORM, ENDS, MIXED = "uniform", "ends", "mixed"


def zero_of(dtype: DType) -> Const:
    """The neutral literal that a masked load gives."""
    return Const(0.0 if dtype.is_float else False if dtype.kind == "bool" else 0, type=dtype)


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
        tile = self.env.shared.get(buffer.name)
        strides = tile.layout.strides if tile is not None else buffer.element_strides
        width = min(self.width, max(1, self.env.machine.vector_bytes[0] // buffer.dtype.bytes))
        if tile is not None:
            width = gcd(width, tile.layout.vector)
            if version is not None:
                width = gcd(width, tile.layout.cosize)
        step = 0
        for k, (each, stride) in enumerate(zip(index, strides, strict=True)):
            found = self._form(each)
            if found is None:
                return 1
            step += found[1] * stride
            if found[1] and (stride != 1 or (tile is None and k != len(index) - 1)):
                return 1
            width = gcd(width, divisor(self.env.resolved(found[0].expr())) * stride)
        return width if step == 1 else 1

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
        """The condition at both ends of the vector: for linear comparisons, at every element."""
        last = replaced(condition, {self.var.name: self.var + (self.width - 1)})
        return all_of([*_parts(condition), *_parts(last)])

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
            fast = _fast_dim(index, self.env.shared[at.buffer.name].layout.strides, self.var)
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


def _fast_dim(index: tuple[Expr, ...], strides: tuple[int, ...], var: Var) -> int:
    """The dimension the vector runs along: of stride 1, indexed with the vector's coordinate."""
    for k, (each, stride) in enumerate(zip(index, strides, strict=True)):
        if stride == 1 and mentions(each, var.name):
            return k
    return max(k for k, stride in enumerate(strides) if stride == 1)


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


# -- straight groups of stores and lets


@dataclass
class _Group:
    """One run of stores and lets: the vectors its loads come from and its stores go to."""

    vector: Vector
    loads: dict[tuple[Load, tuple[Expr, ...]], Buffer] = field(
        default_factory=dict[tuple[Load, tuple[Expr, ...]], Buffer]
    )
    before: list[Stmt] = field(default_factory=list[Stmt])


def guarded_loads(expr: Expr, guards: tuple[Expr, ...] = ()) -> list[tuple[Load, tuple[Expr, ...]]]:
    """Each load of memory with the conditions under which it is evaluated."""
    out: list[tuple[Load, tuple[Expr, ...]]] = []
    if isinstance(expr, Call) and expr.word == "if_then_else":
        condition, a, b = expr.args
        out += guarded_loads(condition, guards) + guarded_loads(a, (*guards, condition))
        return out + guarded_loads(b, (*guards, Arith("not", (condition,))))
    if isinstance(expr, Load):
        if expr.buffer.scope in MEMORY:
            out.append((expr, guards))
        for each in expr.index:
            out += guarded_loads(each, guards)
        return out
    parts: tuple[Expr, ...] = ()
    if isinstance(expr, (Arith, Call)):
        parts = expr.args
    elif isinstance(expr, Cast):
        parts = (expr.value,)
    for each in parts:
        out += guarded_loads(each, guards)
    return out


def scalar_buffers(group: list[Let | Store]) -> set[str]:
    """Buffers that a group reads after it wrote them: their accesses keep their order, one by one."""
    written: set[str] = set()
    out: set[str] = set()
    for each in group:
        out |= {load.buffer.name for load, _ in guarded_loads(each.value)} & written
        if isinstance(each, Store):
            written.add(each.buffer.name)
    return out


def widest(vector: Vector, body: tuple[Stmt, ...]) -> int:
    """The widest access that a body has; 0 when it is no body for vectors at all."""
    lets = any(isinstance(each, Let) for each in body)
    best = 1
    for each in body:
        if isinstance(each, If):
            if lets or vector.kind(each.condition) == MIXED:
                return 0
            inner = [widest(vector, part) for part in (each.then, each.orelse) if part]
            if 0 in inner:
                return 0
            best = max([best, *inner])
        elif isinstance(each, (Store, Let)):
            if isinstance(each, Let):
                vector.lets[each.var.name] = replaced(each.value, vector.lets)
            for load, _ in guarded_loads(each.value):
                best = max(best, vector.access_width(load))
            if isinstance(each, Store) and each.buffer.scope in MEMORY:
                best = max(best, vector.access_width(each))
        else:
            return 0
    return best


def vector_body(vector: Vector, body: tuple[Stmt, ...]) -> list[Stmt]:
    """The statements of one vector: `widest` has said that the body allows it."""
    out: list[Stmt] = []
    group: list[Let | Store] = []
    for each in body:
        if isinstance(each, If):
            out += straight(vector, group)
            group = []
            out += _branch(vector, each)
        else:
            assert isinstance(each, (Let, Store))
            group.append(each)
    return out + straight(vector, group)


def _branch(vector: Vector, stmt: If) -> list[Stmt]:
    condition = fold_condition(vector.env, stmt.condition, vector.site)
    if condition == all_of([]):
        return vector_body(vector, stmt.then)
    plain = Site(vector.site.map, vector.site.vars)
    out: list[Stmt] = []
    then = vector_body(vector, stmt.then)
    if vector.kind(condition) == UNIFORM:
        base = lower_expr(vector.env, condition, plain, out)
        return [*out, If(base, tuple(then), tuple(vector_body(vector, stmt.orelse)))]
    base = lower_expr(vector.env, vector.all_inside(condition), plain, out)
    single = element_body(vector.env, (stmt.but(condition=condition),), vector.site)
    return [*out, If(base, tuple(then), (vector.element_loop(single),))]


def element_body(env: Env, body: tuple[Stmt, ...], site: Site) -> list[Stmt]:
    """Statements of one element, every access on its own."""
    from .threads_loops import lower_body

    return lower_body(env, body, site)


def straight(vector: Vector, group: list[Let | Store]) -> list[Stmt]:
    """Vector loads, the unrolled elements, vector stores."""
    if not group:
        return []
    env, e = vector.env, vector.e
    alone = scalar_buffers(group)
    made = _Group(vector)
    inner: list[Stmt] = []
    after: list[Stmt] = []
    for each in group:
        value = _with_vectors(made, each.value, alone, inner)
        if isinstance(each, Let):
            inner.append(env.bind(each.var, value).at(each.place))
            continue
        width = 1
        if each.buffer.scope in MEMORY and each.buffer.name not in alone:
            width = vector.access_width(each)
        if width == 1:
            buffer, index = lower_target(
                env, each, vector.site, inner, lambda x: lower_expr(env, x, vector.site, inner)
            )
            inner.append(Store(buffer, index, value, place=each.place))
            continue
        source = value.buffer if isinstance(value, Load) and value.index == (e,) else None
        if source is None or source not in made.loads.values():
            source = Buffer(env.scoped(f"{each.buffer.name}_w"), (vector.width,), each.buffer.dtype, "local")
            made.before.append(AllocLocal(source))
            inner.append(Store(source, (e,), value, place=each.place))
        for lead in vector.chunks(width):
            target = vector.memory(each, width, lead, after)
            after.append(VectorStore(target, Region(source, (Const(lead),), extent=(width,))))
    loop: list[Stmt] = [vector.element_loop(inner)] if inner else []
    return [*made.before, *loop, *after]


def _with_vectors(group: _Group, expr: Expr, alone: set[str], inner: list[Stmt]) -> Expr:
    """The value of element `e`, with wide loads read from their registers."""
    vector = group.vector
    e = vector.e

    def registers(load: Load, guards: tuple[Expr, ...]) -> Buffer | None:
        if load.buffer.scope not in MEMORY or load.buffer.name in alone:
            return None
        if any(vector.kind(each) == MIXED for each in guards):
            return None
        width = vector.access_width(load)
        if width == 1:
            return None
        held = group.loads.get((load, guards))
        if held is None:
            env = vector.env
            held = Buffer(env.scoped(f"{load.buffer.name}_v"), (vector.width,), load.dtype, "local")
            group.before.append(AllocLocal(held))
            group.before += vector.load(load, width, held, guards)
            group.loads[load, guards] = held
        return held

    def step(at: Expr, guards: tuple[Expr, ...]) -> Expr:
        if isinstance(at, Call) and at.word == "if_then_else":
            condition, a, b = at.args
            yes = step(a, (*guards, condition))
            if isinstance(yes, Load) and yes.buffer in group.loads.values() and b == zero_of(a.dtype):
                return yes
            no = step(b, (*guards, Arith("not", (condition,))))
            return at.but(args=(step(condition, guards), yes, no))
        if isinstance(at, Load):
            held = registers(at, guards)
            return Load(held, (e,)) if held is not None else lower_expr(vector.env, at, vector.site, inner)
        if isinstance(at, Var):
            return lower_expr(vector.env, at, vector.site, inner)
        below = map_children(at, lambda child: step(child, guards))
        return refold(below) if below is not at else at

    return step(expr, ())
