"""Addresses of one thread: shared offsets with swizzle and version, registers of fragments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ...errors import LayoutError
from ...ir import Arith, Buffer, Call, Cast, Const, Expr, Let, Load, Node, Stmt, Store, Var, const_of, refold
from ...ir.arith import simplify_floordiv, simplify_mod
from ...layout import Fragment, FragmentMode, offset_expr, swizzle_expr
from .env import Env, Site


def coalesced(modes: tuple[FragmentMode, ...]) -> tuple[FragmentMode, ...]:
    """Modes of the same map with neighbours that count on along one dimension made one."""
    out: list[FragmentMode] = []
    for count, dim, step in modes:
        if count == 1:
            continue
        if out and out[-1][1] == dim and out[-1][2] * out[-1][0] == step and dim >= 0:
            out[-1] = (out[-1][0] * count, dim, out[-1][2])
        else:
            out.append((count, dim, step))
    return tuple(out)


def with_vector(fragment: Fragment, width: int) -> Fragment:
    """The same map with its value modes coalesced and the first cut to `width` (where it is longer)."""
    value = coalesced(fragment.value)
    if value and width > 1 and value[0][0] > width:
        count, dim, step = value[0]
        value = ((width, dim, step), (count // width, dim, step * width), *value[1:])
    return Fragment(fragment.extents, fragment.thread, value)


def _thread_set(fragment: Fragment, relabel: dict[int, int]) -> set[tuple[int, int, int, int]]:
    """Digits (divisor, count, dim, step) of the dimensions named by `relabel`, coalesced."""
    out: list[tuple[int, int, int, int]] = []
    for divisor, count, dim, step in fragment.thread_digits:
        if count == 1 or dim not in relabel:
            continue
        at = relabel[dim]
        if out:
            d, c, a, s = out[-1]
            if a == at and s * c == step and d * c == divisor:
                out[-1] = (d, c * count, a, s)
                continue
        out.append((divisor, count, at, step))
    return set(out)


@lru_cache(maxsize=4096)
def value_strides(site: Fragment, held: Fragment, dims: tuple[int | None, ...]) -> tuple[int, ...] | None:
    """What each value digit of `site` adds to the register number in `held`.

    `dims[k]` is the dimension of `site` that dimension k of `held` is indexed with, None for a
    dimension of extent 1. None when a thread of `site` lacks an element it asks for.
    """
    relabel = {dim: k for k, dim in enumerate(dims) if dim is not None}
    threads = _thread_set(held, {k: k for k, dim in enumerate(dims) if dim is not None})
    if _thread_set(site, relabel) != threads:
        return _strides_by_search(site, held, dims)
    digits: dict[int, list[tuple[int, int, int]]] = {}
    divisor = 1
    for count, dim, step in coalesced(held.value):
        digits.setdefault(dim, []).append((step, count, divisor))
        divisor *= count
    out: list[int] = []
    for _, count, dim, step in site.value_digits:
        if dim not in relabel or count == 1:
            out.append(0)
            continue
        found = [
            (step // s * d)
            for s, c, d in digits.get(relabel[dim], [])
            if step % s == 0 and step * count <= s * c
        ]
        if not found:
            return _strides_by_search(site, held, dims)
        out.append(found[0])
    return tuple(out)


def _strides_by_search(
    site: Fragment, held: Fragment, dims: tuple[int | None, ...]
) -> tuple[int, ...] | None:
    """The same by enumerating all threads and values, for maps whose modes are cut differently."""
    if None in dims or site.threads != held.threads:
        return None
    table = site.value_map(held, [each for each in dims if each is not None])
    if table is None:
        return None
    strides = tuple(table[d.divisor] - table[0] if d.modulus > 1 else 0 for d in site.value_digits)
    for v, found in enumerate(table):
        linear = sum(v // d.divisor % d.modulus * s for d, s in zip(site.value_digits, strides, strict=True))
        if linear + table[0] != found or table[0] != 0:
            return None
    return strides


def register_of(env: Env, buffer: Buffer, index: tuple[Expr, ...], site: Site, at: Node) -> Expr:
    """The number of the register that holds an element of a fragment in this thread.

    Raises `LayoutError` when the thread does not hold it, or its number differs from thread to thread.
    """
    tile = env.fragments[buffer.name]
    dims: list[int | None] = []
    for extent, each in zip(tile.layout.extents, index, strict=True):
        if isinstance(each, Var) and each.name in site.vars:
            dims.append(site.vars.index(each.name))
        elif extent == 1 and const_of(env.resolved(each)) == 0:
            dims.append(None)
        else:
            return _replicated_register(env, buffer, index, at)
    if site.map is None:
        return _replicated_register(env, buffer, index, at)
    strides = value_strides(site.map, tile.layout, tuple(dims))
    if strides is None:
        raise LayoutError(
            "the thread that computes an element does not hold the element of {name} it needs",
            at=at.place, name=buffer.name, loop=site.map, layout=tile.layout,
            expected="the layout of {name} and the thread mapping to agree",
            found="mapping {loop}, layout {layout}",
        )  # fmt: skip
    out: Expr = Const(0)
    for digit, stride in zip(site.digits, strides, strict=True):
        out = out + digit * stride
    return out


def _replicated_register(env: Env, buffer: Buffer, index: tuple[Expr, ...], at: Node) -> Expr:
    """The register of a fragment that every thread holds whole, at any index."""
    layout = env.fragments[buffer.name].layout
    if any(dim >= 0 and count > 1 for count, dim, _ in layout.thread):
        raise LayoutError(
            "{name} is spread over threads, and indexed by more than the variables of the loop",
            at=at.place, name=buffer.name, layout=layout,
            expected="a fragment that every thread holds whole, or one index variable a dimension",
            found="layout {layout}",
        )  # fmt: skip
    out: Expr = Const(0)
    for divisor, count, dim, step in layout.value_digits:
        part = env.resolved(index[dim])
        digit = simplify_mod(simplify_floordiv(part, step, env.ranges), count, env.ranges)
        out = out + digit * divisor
    return out


def shared_offset(
    env: Env, name: str, index: tuple[Expr, ...], version: Expr | None, out: list[Stmt], lead: int = 0
) -> Expr:
    """The element offset in the flat shared buffer; lets for swizzled ones are added to `out`."""
    tile = env.shared[name]
    total = offset_expr(tile.layout, index, env.ranges, env.resolved)
    swizzle = tile.layout.swizzle
    if swizzle is not None and swizzle.bits and isinstance(total, Const):
        total = swizzle_expr(swizzle, total)
    elif swizzle is not None and swizzle.bits:
        plain = Var(env.fresh(f"{name}_at"))
        out.append(env.bind(plain, total))
        folded = Var(env.fresh(f"{name}_at"))
        out.append(Let(folded, swizzle_expr(swizzle, plain)))
        env.ranges[folded.name] = (0, tile.layout.cosize - 1)
        total = folded
    if version is not None:
        total = total + version * tile.layout.cosize
    return total + lead


def flat_local(buffer: Buffer) -> Buffer:
    """A thread's own array with its dimensions made one, row-major."""
    return buffer if buffer.rank == 1 else Buffer(buffer.name, (buffer.size,), buffer.dtype, buffer.scope)


def flat_index(buffer: Buffer, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index of an element in `flat_local`."""
    total: Expr = Const(0)
    for each, stride in zip(index, buffer.element_strides, strict=True):
        total = total + each * stride
    return (total,)


def lower_target(
    env: Env, at: Load | Store, site: Site, out: list[Stmt], step: Callable[[Expr], Expr]
) -> tuple[Buffer, tuple[Expr, ...]]:
    """The buffer and index that an access of a tile buffer has in one thread; `step` lowers indices."""
    buffer = at.buffer
    if buffer.name in env.fragments:
        shifted = site.shift is not None and not all(isinstance(each, (Var, Const)) for each in at.index)
        index = tuple(step(each) for each in at.index) if shifted else at.index
        return env.fragments[buffer.name].local, (register_of(env, buffer, index, site, at),)
    index = tuple(step(each) for each in at.index)
    version = None if at.version is None else step(at.version)
    if buffer.name in env.shared:
        return env.shared[buffer.name].flat, (shared_offset(env, buffer.name, index, version, out),)
    if buffer.scope == "local" and buffer.rank != 1:
        return flat_local(buffer), flat_index(buffer, index)
    return buffer, index


def lower_expr(env: Env, expr: Expr, site: Site, out: list[Stmt]) -> Expr:
    """The expression with shared loads made flat and fragment loads made registers."""
    if isinstance(expr, (Const, Var)) and site.shift is None:
        return expr

    def step(at: Expr) -> Expr:
        if isinstance(at, Load):
            buffer, index = lower_target(env, at, site, out, step)
            return Load(buffer, index, place=at.place)
        if isinstance(at, Var) and site.shift is not None and at.name == site.shift[0]:
            return at + site.shift[1]
        if isinstance(at, (Arith, Call)):
            args = tuple([step(each) for each in at.args])
            if all(a is b for a, b in zip(args, at.args, strict=True)):
                return at
            return refold(at.but(args=args))
        if isinstance(at, Cast):
            value = step(at.value)
            return at if value is at.value else at.but(value=value)
        return at

    return step(expr)
