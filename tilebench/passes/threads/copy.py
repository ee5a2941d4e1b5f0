"""`T.copy` and `T.fill` as element loops: the box becomes coordinates, tests and casts become the body."""

from __future__ import annotations

from ...errors import ShapeError
from ...ir import Call, Cast, Const, Expr, If, Load, Node, Region, Stmt, Store, Var, all_of, zero_of
from ...ir.arith import bounds
from ...language.copy import Copy, Fill, Within
from ...layout import Fragment
from .access import lower_expr
from .env import NOWHERE, Env, missing_map, written_out
from .loops import element_loops


def box_of(region: Region) -> tuple[int, ...]:
    """The extents of a region without its dimensions of extent 1; (1,) when nothing is left."""
    if region.extent is None:
        raise ShapeError("the region of {name} has no extents yet", at=region.place, name=region.buffer.name)
    return tuple(each for each in region.extent if each != 1) or (1,)


def element_of(region: Region, names: tuple[Var, ...]) -> tuple[Expr, ...]:
    """The index of an element of a region at the coordinates `names` of its box."""
    left = list(names if any(each != 1 for each in region.extent or ()) else ())
    out: list[Expr] = []
    for start, extent in zip(region.start, region.extent or (), strict=True):
        out.append(start + left.pop(0) if extent != 1 else start)
    return tuple(out)


def inside(
    env: Env, region: Region, index: tuple[Expr, ...], within: Within, box: dict[str, int]
) -> list[Expr]:
    """The tests of the dimensions that are not proved to be inside the buffer."""
    if within is None:
        return []
    out: list[Expr] = []
    ranges = {**env.ranges, **{name: (0, extent - 1) for name, extent in box.items()}}
    for each, start, bound in zip(index, region.start, within, strict=True):
        if bound is None:
            continue
        out.append(each.compare("<", bound))
        if bounds(env.resolved(start), ranges)[0] < 0:
            out.append(each.compare(">=", 0))
    return out


def _names(env: Env, rank: int) -> tuple[Var, ...]:
    # Coordinates of a copy have no names in the source: i, j, k, l as far as they are free.
    return tuple(Var(env.name(("i", "j", "k", "l")[k] if k < 4 else f"i{k}")) for k in range(rank))


def copy_loops(env: Env, stmt: Copy) -> list[Stmt]:
    """The loops of one thread that move its part of the box."""
    box = box_of(stmt.dst)
    if box_of(stmt.src) != box:
        raise ShapeError(
            "the two sides of a copy have boxes of {a} and {b}", at=stmt.place, a=box_of(stmt.src), b=box
        )
    names = _names(env, len(box))
    extents = {name.name: extent for name, extent in zip(names, box, strict=True)}
    source, target = element_of(stmt.src, names), element_of(stmt.dst, names)
    value: Expr = Load(stmt.src.buffer, source, version=stmt.src.version, place=stmt.src.place)
    tests = inside(env, stmt.src, source, stmt.src_within, extents)
    if tests:
        value = Call("if_then_else", (all_of(tests), value, zero_of(value.dtype)), type=value.dtype)
    if value.dtype != stmt.dst.buffer.dtype:
        value = Cast(value, type=stmt.dst.buffer.dtype)
    body: Stmt = Store(stmt.dst.buffer, target, value, version=stmt.dst.version)
    tests = inside(env, stmt.dst, target, stmt.dst_within, extents)
    if tests:
        body = If(all_of(tests), (body,), ())
    fragment = _map(env, stmt, stmt.map, box, (stmt.src, stmt.dst))
    return element_loops(env, stmt, fragment, names, (body,), _hint(stmt), True)


def _hint(stmt: Copy) -> int:
    """The cap of a vector in elements: the instruction's bytes of the side in memory."""
    hint = 0
    if stmt.by is not None and stmt.by.bytes:
        sides = [each.buffer for each in (stmt.src, stmt.dst) if each.buffer.scope in ("global", "shared")]
        sides.sort(key=lambda each: each.scope != "global")
        hint = max(1, sides[0].dtype.elements_in(stmt.by.bytes)) if sides else 0
    if stmt.coalesced_width:
        hint = min(hint or stmt.coalesced_width, stmt.coalesced_width)
    return hint


def _map(
    env: Env, stmt: Node, given: Fragment | None, box: tuple[int, ...], sides: tuple[Region, ...]
) -> Fragment:
    """The mapping; where a side is a thread's own array, every thread does the whole box by itself."""
    if given is not None:
        return given
    if any(each.buffer.scope in ("local", "var") for each in sides):
        steps = tuple((extent, dim, 1) for dim, extent in reversed(list(enumerate(box))))
        return Fragment(box, ((env.threads, -1, 0),), steps)
    raise missing_map(stmt, getattr(stmt, "word", "copy"))


def fill_loops(env: Env, stmt: Fill) -> list[Stmt]:
    """The loops of one thread that set its part of the box."""
    held = env.fragments.get(stmt.dst.buffer.name)
    if held is not None and stmt.dst.is_whole:
        out: list[Stmt] = []
        value = lower_expr(env, stmt.value, NOWHERE, out)
        var = env.loop_var("r0", held.layout.values)
        word = written_out(held.layout.values)
        return [*out, word(Const(held.layout.values), (var,), (Store(held.local, (var,), value),))]
    box = box_of(stmt.dst)
    names = _names(env, len(box))
    target = element_of(stmt.dst, names)
    body: Stmt = Store(stmt.dst.buffer, target, stmt.value, version=stmt.dst.version)
    extents = {name.name: extent for name, extent in zip(names, box, strict=True)}
    tests = inside(env, stmt.dst, target, stmt.dst_within, extents)
    if tests:
        body = If(all_of(tests), (body,), ())
    fragment = _map(env, stmt, stmt.map, box, (stmt.dst,))
    return element_loops(env, stmt, fragment, names, (body,), 0, True)
