"""Bodies of a vector: wide loads in front, the elements unrolled, wide stores behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir import (
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
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
    zero_of,
)  # fmt: skip
from ...language.lowered.threads import VectorStore
from ...language.memory import AllocLocal
from ..fast_exprs import replaced
from ..inline_indices import is_small
from .access import lower_expr, lower_target
from .env import Env, Site
from .vector import MEMORY, MIXED, UNIFORM, Vector, fold_condition


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
                seen = vector.lets[each.var.name] = replaced(each.value, vector.lets)
                if not is_small(seen):
                    return 0  # what stands in it is not looked at, so nothing is known of neighbours
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
    from .loops import lower_body

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
