"""Where fragments and memory are touched together: what layout inference reasons about.

A site is one statement that works on many elements at once, seen as a box of indices: a
`T.Parallel`, or a copy or fill over its region. A touch is a fragment indexed by dimensions of
that box; an access is a place in memory indexed by an address that may move with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

from ...errors import LayoutError
from ...ir import (
    WORKS,
    Buffer,
    Expr,
    Function,
    Load,
    Node,
    OpStmt,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    effects_of,
    region_written,
    walk,
)
from ...ir.arith import NO_DIVISORS, Linear, linear
from ...ir.expr_walks import mentions
from ...ir.stmt import statements
from ...language.structure import Parallel
from ...layout import Fragment
from ...layout.fragment import REPLICATED, FragmentMode

BOX = "__box{}"
# Accesses of fewer bytes fill no transaction of a warp: 32 of 4 bytes are 128.
NARROW = 4


@dataclass(frozen=True)
class FragmentUse:
    """A fragment at a site: for each of its dimensions, the dimension of the box that indexes it.

    None stands for an index of zero into a dimension of extent 1.
    """

    buffer: Buffer
    dims: tuple[int | None, ...]
    written: bool
    node: Node


@dataclass(frozen=True)
class SiteAccess:
    """A place in global, shared or local memory that a site reads or writes."""

    buffer: Buffer
    index: tuple[Expr, ...]
    written: bool


@dataclass(frozen=True)
class Site:
    """One statement over a box of `extents`; `vars` name the box's dimensions in addresses."""

    node: Stmt
    extents: tuple[int, ...]
    vars: tuple[str, ...]
    touches: tuple[FragmentUse, ...]
    accesses: tuple[SiteAccess, ...]

    @property
    def elements(self) -> int:
        return prod(self.extents)


def sites_of(function: Function) -> list[Site]:
    """Every site of a function, in order."""
    return [site for node in statements(function.body) if (site := site_of(node)) is not None]


def site_of(node: Node) -> Site | None:
    """The site that a statement is; None for one that does not share a box out among threads."""
    match node:
        case Parallel():
            return _parallel(node)
        case OpStmt() if is_mapped(node):
            return _regions(node)
        case _:
            return None


def is_mapped(statement: Stmt) -> bool:
    """Whether an operation shares the elements of a box out among threads, by a mapping it names."""
    return any(mark.name == "map" for mark in statement.marks)


def box_of(region: Region) -> tuple[int, ...]:
    """The extents of a region without those of 1; (1,) when nothing is left."""
    return tuple(each for each in region.extent or () if each != 1) or (1,)


def _parallel(node: Parallel) -> Site:
    names = tuple(v.name for v in node.vars)
    touches: dict[tuple[str, tuple[int | None, ...], bool], FragmentUse] = {}
    accesses: list[SiteAccess] = []
    for access in walk(node):
        if not isinstance(access, (Load, Store)):
            continue
        written = isinstance(access, Store)
        if access.buffer.scope == "fragment":
            dims = loop_dims(access.buffer, access.index, names, access)
            touches[access.buffer.name, dims, written] = FragmentUse(access.buffer, dims, written, access)
        elif access.buffer.scope in ("global", "shared"):
            accesses.append(SiteAccess(access.buffer, access.index, written))
    return Site(node, node.extents, names, tuple(touches.values()), tuple(accesses))


def plain_dims(
    buffer: Buffer, index: Sequence[Expr], names: tuple[str, ...]
) -> tuple[int | None, ...] | None:
    """The dimensions of the loop over `names` that index a fragment; None where an index is another one."""
    dims: list[int | None] = []
    for position, extent in zip(index, buffer.shape, strict=True):
        if isinstance(position, Var) and position.name in names and names.index(position.name) not in dims:
            dims.append(names.index(position.name))
        elif const_of(position) == 0 and extent == 1:
            dims.append(None)
        else:
            return None
    return tuple(dims)


def loop_dims(
    buffer: Buffer, index: Sequence[Expr], names: tuple[str, ...], access: Node
) -> tuple[int | None, ...]:
    """The same, with a `LayoutError` for any other index."""
    dims = plain_dims(buffer, index, names)
    if dims is None:
        raise LayoutError(
            "the fragment {name} is indexed by more than the loop's own variables",
            at=access.place,
            name=buffer.name,
            expected="each index is another variable of the T.Parallel around it",
            hint="copy it to shared memory first, which can be read at any index",
        )
    return dims


def _regions(node: OpStmt) -> Site:
    extents = box_of(region_written(node))
    names = tuple(BOX.format(k) for k in range(len(extents)))
    touches: list[FragmentUse] = []
    accesses: list[SiteAccess] = []
    for effect in effects_of(node):
        region, written = effect.region, effect.writes
        if region is None or effect.kind == WORKS:
            continue
        if region.buffer.scope == "fragment":
            if not region.is_whole:
                raise LayoutError(
                    "a part of the fragment {name} is copied",
                    at=node.place,
                    name=region.buffer.name,
                    expected="the whole fragment",
                    hint="copy it whole to shared memory, and the part from there",
                )
            touches.append(FragmentUse(region.buffer, _box_dims(region), written, node))
        elif region.buffer.scope in ("global", "shared"):
            accesses.append(SiteAccess(region.buffer, box_index(region, names), written))
    return Site(node, extents, names, tuple(touches), tuple(accesses))


def _box_dims(region: Region) -> tuple[int | None, ...]:
    dims: list[int | None] = []
    moving = 0
    for extent in region.extent or ():
        dims.append(None if extent == 1 else moving)
        moving += extent != 1
    return tuple(dims)


def box_index(region: Region, names: tuple[str, ...]) -> tuple[Expr, ...]:
    """The index of a region's element, its moving dimensions named by the box's variables."""
    dims = _box_dims(region)
    return tuple(
        start if dim is None else start + Var(names[dim])
        for start, dim in zip(region.start, dims, strict=True)
    )


# -- fragments and boxes


def project(box: Fragment, dims: tuple[int | None, ...], shape: tuple[int, ...]) -> Fragment:
    """The layout of a fragment indexed by `dims` of a box that `box` maps: other threads replicate."""
    place = {dim: k for k, dim in enumerate(dims) if dim is not None}
    thread = tuple((c, place[d], s) if d in place else (c, REPLICATED, 0) for c, d, s in box.thread)
    value = tuple((c, place[d], s) for c, d, s in box.value if d in place)
    return Fragment(shape, thread, value)


def on_true_extents(layout: Fragment) -> Fragment:
    """The layout without modes along dimensions of extent 1, where all but one element are ghosts.

    Boxes leave such dimensions out, so a mode there would have nothing to correspond to.
    """
    real = {k for k, each in enumerate(layout.extents) if each != 1}
    thread = tuple(mode if mode[1] in real else (mode[0], REPLICATED, 0) for mode in layout.thread)
    return Fragment(layout.extents, thread, tuple(mode for mode in layout.value if mode[1] in real))


def extend(known: Fragment, dims: tuple[int | None, ...], extents: tuple[int, ...], vector: int) -> Fragment:
    """A mapping of the whole box that projects onto `known`.

    Threads that hold copies in `known` share the missing dimensions out; what is left of them
    repeats as values, a vector of `vector` innermost when the last dimension is missing.
    """
    missing = [k for k in range(len(extents)) if k not in dims]
    step = dict.fromkeys(missing, 1)
    value: list[tuple[int, int, int]] = []
    last = len(extents) - 1
    if last in missing:
        width = gcd(vector, extents[last])
        if width > 1:
            value.append((width, last, 1))
            step[last] = width
    thread: list[tuple[int, int, int]] = []
    for count, dim, size in known.thread:
        if dim != REPLICATED:
            # Along a dimension of extent 1 all but the first have ghosts, and get some here too.
            own = dims[dim]
            thread.append((count, _GHOSTS if own is None else own, size))
            continue
        open_dims = [k for k in reversed(missing) if step[k] < extents[k]]
        if open_dims:
            thread.append((count, open_dims[0], step[open_dims[0]]))
            step[open_dims[0]] *= count
        else:
            thread.append((count, REPLICATED, 0))
    value.extend((count, own, size) for count, dim, size in known.value if (own := dims[dim]) is not None)
    for k in reversed(missing):
        repeats = -(-extents[k] // step[k])
        if repeats > 1:
            value.append((repeats, k, step[k]))
    return Fragment(extents, _behind(tuple(thread), tuple(value)), tuple(value))


# Stands for a dimension of ghosts until it is known where the box ends.
_GHOSTS = -2


def _behind(thread: tuple[FragmentMode, ...], value: tuple[FragmentMode, ...]) -> tuple[FragmentMode, ...]:
    """The modes with those of ghosts behind all that the box's first dimension has."""
    reach = 1 + sum((count - 1) * step for count, dim, step in (*thread, *value) if dim == 0)
    placed: list[FragmentMode] = []
    for count, dim, step in thread:
        if dim == _GHOSTS:
            placed.append((count, 0, reach))
            reach *= count
        else:
            placed.append((count, dim, step))
    return tuple(placed)


# -- memory


def vector_of(access: SiteAccess, var: str, alignment: int, divisors: Mapping[str, int]) -> int:
    """Elements of one aligned access that are neighbours along `var`; 0 when it does not move.

    1 when they are not neighbours. `alignment` is the widest access, in bytes, and `divisors` what
    sizes are multiples of.
    """
    moving = [k for k, position in enumerate(access.index) if mentions(position, var)]
    if not moving:
        return 0
    last = len(access.index) - 1
    if moving != [last]:
        return 1
    form = linear(access.index[last])
    coordinate = Var(var)
    if form.coefficient(coordinate) != 1 or any(
        mentions(term, var) for term, _ in form.terms if term != coordinate
    ):
        return 1
    strides = access.buffer.element_strides
    if strides[last] != 1:
        return 1
    width = max(1, access.buffer.dtype.elements_in(min(alignment, access.buffer.align)))
    return max(1, gcd(width, row_offset(access.buffer, access.index, var).divisor(divisors)))


def row_offset(buffer: Buffer, index: Sequence[Expr], var: str) -> Linear:
    """How many elements into its buffer an access is where `var`, which its last index has once, is 0."""
    total = linear(index[-1]).without(Var(var))
    for position, stride in zip(index[:-1], buffer.element_strides[:-1], strict=True):
        if isinstance(stride, int):
            total = total.plus(linear(position), stride)
        else:
            total = total.plus(linear(position * stride))
    return total


def is_narrow(access: SiteAccess, var: str, alignment: int, divisors: Mapping[str, int]) -> bool:
    """Whether neighbours along `var` in global memory are reached in steps of few bytes: none is aligned."""
    buffer, last = access.buffer, access.index[-1:]
    if buffer.scope != "global" or buffer.dtype.per_byte > 1 or not mentions_last(access, var):
        return False
    width = vector_of(access, var, alignment, divisors)
    along = linear(last[0]).coefficient(Var(var)) == 1 and buffer.element_strides[-1] == 1
    return along and width > 0 and width * buffer.dtype.bits < 8 * NARROW


def mentions_last(access: SiteAccess, var: str) -> bool:
    """Whether an access moves with `var` along its last dimension alone."""
    moving = [k for k, position in enumerate(access.index) if mentions(position, var)]
    return bool(moving) and moving == [len(access.index) - 1]


def unaligned_vector(site: Site, loads: Sequence[int], alignment: int, divisors: Mapping[str, int]) -> int:
    """Elements of a load from any address, where that is how a site reads: 1 where it is not.

    `loads` are the bytes that such a load can have. A store has no such access.
    """
    if not loads or not site.extents or site_vector(site, alignment, (), divisors) > 1:
        return 1
    narrow = [each for each in site.accesses if is_narrow(each, site.vars[-1], alignment, divisors)]
    if not narrow or any(each.written for each in narrow):
        return 1
    width = gcd(max(loads) * 8 // max(each.buffer.dtype.bits for each in narrow), site.extents[-1])
    bits = min(each.buffer.dtype.bits for each in narrow)
    return width if width * bits // 8 in loads and width * bits > 8 * NARROW else 1


def site_vector(
    site: Site, alignment: int, caps: Sequence[int] = (), divisors: Mapping[str, int] = NO_DIVISORS
) -> int:
    """The widest access, in elements, that every contiguous access of the site can take.

    `alignment` is the widest access, in bytes, and `divisors` what sizes are multiples of.
    """
    if not site.extents:
        return 1
    widths = [vector_of(each, site.vars[-1], alignment, divisors) for each in site.accesses]
    moving = [each for each in widths if each > 1]
    if not moving or any(cap < 1 for cap in caps):
        return 1
    return max(1, min([*moving, *caps]))
