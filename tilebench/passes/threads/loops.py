"""Element loops: a body over the coordinates of a tile becomes the loops of one thread over its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from ...errors import IRError, LayoutError
from ...ir import Const, Expr, If, Let, Load, Node, Stmt, Store, Var, all_of, children, substitute
from ...ir.arith import bounds
from ...ir.rewrite import rewrite
from ...language.memory import AllocLocal, AllocVar
from ...language.structure import Serial, Unroll, Vectorized
from ...layout import Fragment
from ..fast_exprs import parts_of
from .access import flat_local, lower_expr, lower_target, with_vector
from .env import MOST_REGISTERS, Env, Site
from .groups import vector_body, widest
from .vector import MEMORY, Vector, fold_condition

# Repeats that are written out where no register is indexed by them: enough for the loads of a
# thread to be in flight together, and the text stays short beyond.
UNROLLED = 16


def lower_body(env: Env, body: tuple[Stmt, ...], site: Site) -> list[Stmt]:
    """Statements of one element or of one thread, each access on its own."""
    out: list[Stmt] = []
    for each in body:
        out += lower_one(env, each, site)
    return out


def lower_one(env: Env, stmt: Stmt, site: Site) -> list[Stmt]:
    """One scalar statement; lets for addresses come before it."""
    out: list[Stmt] = []

    def value(expr: Expr) -> Expr:
        return lower_expr(env, expr, site, out)

    match stmt:
        case Let():
            made = value(stmt.value)
            out.append(env.bind(stmt.var, made).at(stmt.place))
        case Store():
            buffer, index = lower_target(env, stmt, site, out, value)
            out.append(Store(buffer, index, value(stmt.value), place=stmt.place))
        case If():
            condition = fold_condition(env, stmt.condition, site)
            if condition == all_of([]):
                return lower_body(env, stmt.then, site)
            then, orelse = lower_body(env, stmt.then, site), lower_body(env, stmt.orelse, site)
            out.append(If(value(condition), tuple(then), tuple(orelse), place=stmt.place))
        case Serial() | Unroll():
            out.append(serial_loop(env, stmt, value, lambda: lower_body(env, stmt.body, site)))
        case Vectorized():
            env.ranges[stmt.vars[0].name] = (0, stmt.extent - 1)
            inner = tuple(lower_body(env, stmt.body, site))
            out.append(Unroll(Const(stmt.extent), stmt.vars, inner, place=stmt.place))
        case AllocVar():
            out.append(stmt if stmt.init is None else stmt.but(init=value(stmt.init)))
        case AllocLocal():
            out.append(stmt.but(buffer=flat_local(stmt.buffer)))
        case _:
            word = getattr(stmt, "word", type(stmt).__name__)
            raise IRError("T.{word} cannot stand inside T.Parallel", at=stmt.place, word=word)
    return out


def serial_loop(
    env: Env, stmt: Serial | Unroll, value: Callable[[Expr], Expr], body: Callable[[], Sequence[Stmt]]
) -> Stmt:
    """A loop of the user's, with its bounds lowered and its variable's range known to the body."""
    start, stop, step = value(stmt.start), value(stmt.stop), value(stmt.step)
    low = bounds(env.resolved(start), env.ranges)[0]
    high = bounds(env.resolved(stop), env.ranges)[1]
    env.ranges[stmt.vars[0].name] = (low, max(low, high - 1))
    return stmt.but(start=start, stop=stop, step=step, body=tuple(body()))


@dataclass
class Touched:
    """The accesses of a body, by what they do and where."""

    memory: list[Load | Store] = field(default_factory=list["Load | Store"])
    stores: set[str] = field(default_factory=set[str])
    registers: bool = False

    @staticmethod
    def of(body: tuple[Stmt, ...]) -> Touched:
        """One walk; `stores` are the scopes that are written."""
        out = Touched()
        stack: list[Node] = list(body)
        while stack:
            at = stack.pop()
            if isinstance(at, (Load, Store)):
                out.registers = out.registers or at.buffer.scope == "fragment"
                if at.buffer.scope in MEMORY:
                    out.memory.append(at)
                if isinstance(at, Store):
                    out.stores.add(at.buffer.scope)
            stack.extend(parts_of(at) if isinstance(at, Expr) else children(at))
        return out


def _owned(
    env: Env, fragment: Fragment, body: tuple[Stmt, ...], touched: Touched
) -> tuple[tuple[Stmt, ...], list[Expr]]:
    """The body whose stores to memory only owners do, and the condition that stands outside all loops."""
    owner = env.owner(fragment)
    if not owner or not touched.stores.intersection(MEMORY):
        return body, []
    if touched.stores <= set(MEMORY):
        return body, owner

    def guard(at: Node) -> Node:
        if isinstance(at, Store) and at.buffer.scope in MEMORY:
            return If(all_of(owner), (at,), (), place=at.place)
        return at

    return tuple(rewrite(each, guard) for each in body), []


def _width(fragment: Fragment, touched: Touched, hint: int, most: int) -> int:
    """The elements of a vector step: neighbours along the last dimension, a power of two of them."""
    last = len(fragment.extents) - 1
    run = with_vector(fragment, 1).value[:1]
    if not run or run[0][1] != last or run[0][2] != 1:
        return 1
    sizes = [each.buffer.dtype.bits for each in touched.memory]
    if not sizes:
        return 1
    width = gcd(gcd(run[0][0], fragment.extents[last]), 16)
    cap = hint or most * 8 // min(sizes)
    while width > cap:
        width //= 2
    return width


def element_loops(
    env: Env, node: Node, fragment: Fragment, names: tuple[Var, ...], body: tuple[Stmt, ...], hint: int = 0,
    ours: bool = False,
) -> list[Stmt]:  # fmt: skip
    """The loops of one thread over its part of a tile.

    `names` are the coordinates that `body` uses, one a dimension of `fragment`; `hint` caps the
    vector in elements; `ours` says that the names are not the user's. Ghosts and threads that do not
    own what they would write are masked.
    """
    if len(names) != len(fragment.extents):
        raise LayoutError(
            "the thread mapping has {a} dimensions, the box {b}",
            at=node.place,
            a=len(fragment.extents),
            b=len(names),
        )
    touched = Touched.of(body)
    body, owner = _owned(env, fragment, body, touched)
    ghosts = [
        name.compare("<", extent)
        for name, extent, padded in zip(names, fragment.extents, fragment.padded, strict=True)
        if padded > extent
    ]
    if ghosts and touched.memory:
        body = (If(all_of(ghosts), body, (), place=node.place),)
    width = _width(fragment, touched, hint, env.machine.vector_bytes[0])
    made = _nest(env, fragment, names, body, width, ours, touched)
    if made is None:
        made = _nest(env, fragment, names, body, 1, ours, touched)
        assert made is not None
    return [If(all_of(owner), tuple(made), ())] if owner else made


def _nest(
    env: Env,
    fragment: Fragment,
    names: tuple[Var, ...],
    body: tuple[Stmt, ...],
    width: int,
    ours: bool,
    touched: Touched,
) -> list[Stmt] | None:  # fmt: skip
    """Loops over value digits around the body; None when no access is as wide as a vector."""
    cut = with_vector(fragment, width)
    digits: list[Expr] = []
    loops: list[tuple[Var, int]] = []
    part = env.thread_part(cut)
    total = prod(count for count, _, _ in cut.value)
    rolled = total > (MOST_REGISTERS if touched.registers else UNROLLED * width)
    for k, (_, count, dim, step) in enumerate(cut.value_digits):
        if k == 0 and width > 1:
            digits.append(env.loop_var("e", width))
            continue
        at: Expr = Const(0)
        for unit, steps in _split(count, rolled and not loops):
            var = env.loop_var(f"r{len(loops)}", steps)
            loops.append((var, steps))
            at = at + var * unit
        digits.append(at)
        part[dim] = part[dim] + at * step
    env.begin(open=not loops)
    names, body = _renamed(env, names, body, ours and not loops)
    if not loops:
        env.opened.update(each.name for each in names)
    inner: list[Stmt] = [env.bind(name, each) for name, each in zip(names, part, strict=True)]
    shift = (names[-1].name, digits[0]) if width > 1 else None
    site = Site(cut, tuple(each.name for each in names), tuple(digits), shift)
    if width > 1:
        vector = Vector(env, site, names[-1], width)
        if widest(vector, body) <= 1:
            return None
        inner += vector_body(vector, body)
    else:
        inner += lower_body(env, body, site)
    return _loops(loops, _used_lets(inner), rolled)


def _renamed(
    env: Env, names: tuple[Var, ...], body: tuple[Stmt, ...], every: bool
) -> tuple[tuple[Var, ...], tuple[Stmt, ...]]:
    """The body with new names for coordinates that are still bound.

    Without a loop as a scope around them names stay bound: ours must be new there (`every`), and a
    later use of the user's (a text may repeat a name in separate loops) gets another one.
    """
    new = {each.name: Var(env.fresh(each.name)) for each in names if every or each.name in env.opened}
    if not new:
        return names, body
    return tuple(new.get(each.name, each) for each in names), tuple(substitute(each, new) for each in body)


def _split(count: int, rolled: bool) -> list[tuple[int, int]]:
    """(unit, steps) of the loops over a digit: of a long one a short run is written out inside."""
    short = next((each for each in (4, 3, 2, 5, 7) if count % each == 0), 0)
    if not rolled or count <= 8 or not short:
        return [(1, count)]
    return [(1, short), (short, count // short)]


def _used_lets(body: list[Stmt]) -> list[Stmt]:
    """The body without coordinates that nothing uses."""
    used: set[str] = set()
    stack: list[Node] = list(body)
    while stack:
        at = stack.pop()
        if isinstance(at, Var):
            used.add(at.name)
        else:
            stack.extend(parts_of(at) if isinstance(at, Expr) else children(at))
    return [each for each in body if not (isinstance(each, Let) and each.var.name not in used)]


def _loops(loops: list[tuple[Var, int]], body: list[Stmt], rolled: bool) -> list[Stmt]:
    """The loops around the body, innermost first; of rolled ones only a short innermost is written out."""
    for k, (var, count) in enumerate(loops):
        word = Serial if rolled and (k > 0 or count > 8) else Unroll
        body = [word(Const(count), (var,), tuple(body))]
    return body
