"""A layout for every shared buffer: the one whose accesses conflict least in the banks.

`A_s = T.alloc_shared((128, 32), T.float16)` -> the same with `layout=T.SharedLayout(...)`. Candidates
are row-major, XOR swizzles and padded rows; each is scored on the addresses that the lanes of a
warp form at every access, counted by the hardware's rules. A `swizzle=` choice narrows the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...errors import LayoutError
from ...ir import Expr, Function, Load, OpStmt, Region, Store, effects_of, map_bodies, walk
from ...ir.arith import evaluate
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.extern import ExternCall
from ...language.gemm import Gemm
from ...language.memory import AllocFragment, AllocShared
from ...language.structure import Parallel
from ...layout import Fragment, SharedLayout, atom_layout
from ...layout.choose import ATOMS, AccessPattern, PricedLayout, candidates, price
from ...machine import Machine, MatrixLoad
from ..analysis.boxes import Cut, boxes_of, cut, sides
from ..analysis.matrix_rows import matrix_rows
from ..analysis.sites import BOX, SiteAccess, box_index, is_mapped, vector_of
from ..context import Context
from .choose_instructions import row_of

NAME = "choose_shared"
# Instructions of a site that are looked at; they stand for all that it issues.
INSTRUCTIONS_LOOKED_AT = 4


def choose_shared(function: Function, context: Context) -> Function:
    """The function with a layout on every shared buffer."""
    patterns, pointed = patterns_of(function, context.machine), _pointed(function)
    boxed = _for_boxes(function, context.machine)

    def step(node: Any) -> Any:
        if isinstance(node, AllocShared):
            name = node.buffer.name
            chosen = node.layout or (_rows(node, context) if name in pointed else None)
            layout = chosen or _best(node, patterns.get(name, []), boxed.get(name, []), context)
            return node.but(layout=layout, swizzle=None)
        return map_bodies(node, step)

    return step(function)


def _options(alloc: AllocShared, vector_bytes: int) -> list[SharedLayout]:
    """The layouts that the `swizzle=` choice leaves; `vector_bytes` is the widest access."""
    bits = alloc.buffer.dtype.bits
    layouts = candidates(alloc.buffer.extents, bits, max(vector_bytes, bits // 8))
    if alloc.swizzle is None:
        return list(layouts)
    return [
        layout
        for layout in layouts
        if (layout.swizzle is not None) == alloc.swizzle and (alloc.swizzle or layout == layouts[0])
    ]


def layouts_for_boxes(alloc: AllocShared, machine: Machine) -> list[SharedLayout]:
    """The layouts that a tile may have and that copies in boxes may fill: rows, and panels of each atom."""
    bits, extents = alloc.buffer.dtype.bits, alloc.buffer.extents
    options = _options(alloc, max(machine.vector_bytes))
    panels: list[SharedLayout] = []
    for atom in ATOMS if alloc.swizzle is not False else ():
        with suppress(LayoutError):
            panels.append(atom_layout(extents, bits, atom))
    return list(dict.fromkeys([*options, *panels]))


def _for_boxes(function: Function, machine: Machine) -> dict[str, list[Copy]]:
    """The copies in boxes of each tile that they fill or store."""
    found: dict[str, list[Copy]] = {}
    for node in statements(function.body):
        if isinstance(node, Copy) and boxes_of(node, machine) is not None:
            found.setdefault(sides(node)[1].buffer.name, []).append(node)
    return found


def _pointed(function: Function) -> frozenset[str]:
    """The buffers that functions of the kernel's own text get pointers to: they see rows."""
    calls = [node for node in statements(function.body) if isinstance(node, ExternCall)]
    return frozenset(region.buffer.name for call in calls for region in call.regions)


def _rows(alloc: AllocShared, context: Context) -> SharedLayout:
    """The layout that a function of the kernel's own text sees."""
    said = f"{alloc.buffer.name} lies in rows: a function of the kernel's own text gets a pointer to it"
    context.remark(NAME, "missed", said, alloc)
    return SharedLayout.rows(alloc.buffer.extents, alloc.buffer.dtype.per_byte)


def _best(
    alloc: AllocShared, patterns: list[AccessPattern], boxed: list[Copy], context: Context
) -> SharedLayout:
    dtype, shared, name = alloc.buffer.dtype, context.machine.shared, alloc.buffer.name
    rows = SharedLayout.rows(alloc.buffer.extents, dtype.per_byte)
    if alloc.of_fragment:
        context.remark(
            NAME, "note", f"the fragment {name} is kept in shared memory: elements of it are used outside "
            "T.Parallel, and every thread needs them", alloc, bytes=alloc.buffer.bytes,
        )  # fmt: skip
    options = _options(alloc, max(context.machine.vector_bytes))
    if boxed:
        options = [
            layout
            for layout in layouts_for_boxes(alloc, context.machine)
            if _takes_boxes(boxed, layout, context)
        ]
    if not options:
        context.remark(
            NAME, "missed", f"{name} is not swizzled: its rows have no whole vectors to change places", alloc,
            row_bytes=alloc.buffer.row_elements * dtype.bits // 8,
        )  # fmt: skip
        options = [rows]
    plain = price(rows, dtype.bits, patterns, shared.banks, shared.bank_bytes)
    choice: PricedLayout | None = None
    for layout in options:
        priced = (
            plain
            if layout == plain.layout
            else price(layout, dtype.bits, patterns, shared.banks, shared.bank_bytes)
        )
        if choice is None or (priced.wavefronts, priced.bytes) < (choice.wavefronts, choice.bytes):
            choice = priced
        if choice.wavefronts <= choice.ideal:
            break  # Candidates come in order of preference: none can be better than the ideal.
    assert choice is not None
    ratio = choice.wavefronts / choice.ideal if choice.ideal else 1.0
    before = plain.wavefronts / plain.ideal if plain.ideal else 1.0
    context.remark(
        NAME,
        "applied",
        f"{name}: {_words(choice.layout)}, {ratio:.2f} wavefronts for each ideal one "
        f"(row-major {before:.2f})",
        alloc,
        wavefronts=round(ratio, 3),
        row_major=round(before, 3),
        candidates=len(options),
    )
    return choice.layout


def _takes_boxes(boxed: list[Copy], layout: SharedLayout, context: Context) -> bool:
    """Whether boxes give a layout, for each copy of the tile by them."""
    found = [(copy, boxes_of(copy, context.machine)) for copy in boxed]
    return all(
        boxes is not None and isinstance(cut(*sides(copy), layout, boxes), Cut) for copy, boxes in found
    )


def _words(layout: SharedLayout) -> str:
    if layout.swizzle is not None:
        panels = next((f"in panels of {d.modes[0][0]}, " for d in layout.dims if len(d.modes) > 1), "")
        return f"{panels}swizzled {layout.swizzle!r}".replace("T.", "")
    return (
        "row-major"
        if layout == SharedLayout.ordered(layout.extents)
        else f"rows padded to {layout.strides[-2]} elements"
    )


# -- the addresses of a warp


def patterns_of(function: Function, machine: Machine) -> dict[str, list[AccessPattern]]:
    patterns: dict[str, list[AccessPattern]] = {}
    body = statements(function.body)
    fragments = {n.buffer.name: n.layout for n in body if isinstance(n, AllocFragment) and n.layout}
    for node in body:
        for name, pattern in _of_node(node, fragments, machine):
            patterns.setdefault(name, []).append(pattern)
    return patterns


def _of_node(
    node: Any, fragments: dict[str, Fragment], machine: Machine
) -> Iterable[tuple[str, AccessPattern]]:
    match node:
        case Parallel() if node.map is not None:
            names = tuple(v.name for v in node.vars)
            for access in walk(node):
                if isinstance(access, (Load, Store)) and access.buffer.scope == "shared":
                    extents, width = access.buffer.extents, _width(access, node, machine)
                    pattern = _pattern(access.index, extents, names, node.map, width, machine.warp)
                    yield access.buffer.name, pattern
        case Gemm():
            yield from _gemm(node, fragments, machine)
        case Copy() if boxes_of(node, machine) is not None:
            return  # no thread fills the tile
        case OpStmt() if is_mapped(node) and node.map is not None:  # type: ignore[attr-defined]
            for effect in effects_of(node):
                if effect.region is not None and effect.buffer.scope == "shared":
                    yield from _region(effect.region, node.map, machine)  # type: ignore[attr-defined]
        case _:
            return


def _width(access: Load | Store, loop: Parallel, machine: Machine) -> int:
    """The elements of one access: the loop's vector where it runs along the tile's rows, else one alone."""
    place = SiteAccess(access.buffer, access.index, isinstance(access, Store))
    return min(loop.vector, max(1, vector_of(place, loop.vars[-1].name, max(machine.vector_bytes), {})))


def _region(region: Region, box: Fragment, machine: Machine) -> Iterable[tuple[str, AccessPattern]]:
    names = tuple(BOX.format(k) for k in range(len(box.extents)))
    most = max(1, region.buffer.dtype.elements_in(max(machine.vector_bytes)))
    width = min(box.contiguous_values(len(box.extents) - 1), most)
    index = box_index(region, names)
    yield region.buffer.name, _pattern(index, region.buffer.extents, names, box, width, machine.warp)


@lru_cache(maxsize=1024)
def _pattern(
    place: tuple[Expr, ...],
    extents: tuple[int, ...],
    names: tuple[str, ...],
    box: Fragment,
    width: int,
    warp: int,
) -> AccessPattern:
    """The first instructions of a warp at a site, weighed by how many it issues.

    Kept, as the two below are: tiles of one shape are filled and read alike, and their layouts are priced
    by what lies under the pattern.
    """
    width = max(1, width)
    lanes = np.arange(min(warp, box.threads))
    firsts = np.arange(0, box.values, width)
    values = firsts[:INSTRUCTIONS_LOOKED_AT]
    where = dict(zip(names, box.coordinates(lanes[None, :], values[:, None]), strict=True))
    shape = (len(values), len(lanes))
    index = tuple(
        np.minimum(np.broadcast_to(evaluate(position, where), shape), limit - 1)
        for position, limit in zip(place, extents, strict=True)
    )
    return AccessPattern(index, width, len(firsts) / len(values))


def _gemm(
    gemm: Gemm, fragments: dict[str, Fragment], machine: Machine
) -> Iterable[tuple[str, AccessPattern]]:
    """How the lanes of a warp read the operands that a gemm has in shared memory."""
    layout = fragments.get(gemm.c.buffer.name)
    if layout is None:
        return
    row = row_of(gemm, machine)
    for region, side, transposed in ((gemm.a, 0, gemm.transpose_A), (gemm.b, 1, gemm.transpose_B)):
        if region.buffer.scope != "shared":
            continue
        form = row.operand("ab"[side])
        extents, bits = region.buffer.extents, region.buffer.dtype.bits
        pattern = None
        if form.fragment is None:
            pattern = _multiply_add_operand(extents, gemm.mnk[2], side, transposed, layout, machine.warp)
        else:
            steps = prod(-(-extent // size) for extent, size in zip(gemm.mnk, row.shape, strict=True))
            if form.load is not None:
                pattern = _matrix_operand(extents, bits, steps, side, transposed, form.fragment, form.load)
            pattern = pattern or _atom_operand(extents, steps, transposed, form.fragment)
        yield region.buffer.name, pattern


@lru_cache(maxsize=1024)
def _multiply_add_operand(
    extents: tuple[int, ...], k: int, side: int, transposed: bool, layout: Fragment, warp: int
) -> AccessPattern:
    """A step of k: each lane reads its rows of A (side 0) or its columns of B (side 1)."""
    lanes = np.arange(min(warp, layout.threads))
    where = np.asarray(layout.coordinates(lanes[:, None], np.zeros((1, 1), np.int64))[side])[:, 0]
    # `where` runs along the first dimension for A as (m, k) and for B as (n, k).
    first = (side == 0) != transposed
    moving = np.minimum(where, extents[-2 if first else -1] - 1)[None, :]
    steps = np.zeros_like(moving)
    width = max(w for w in (4, 2, 1) if extents[-1] % w == 0)
    if not first:
        width = min(width, layout.contiguous_values(side))
    index = (moving, steps) if first else (steps, moving)
    lead = (np.zeros_like(moving),) * (len(extents) - 2)
    own = prod(count for count, dim, _ in layout.value if dim == side)
    return AccessPattern((*lead, *index), width, k * own / width)


@lru_cache(maxsize=1024)
def _atom_operand(extents: tuple[int, ...], steps: int, transposed: bool, atom: Fragment) -> AccessPattern:
    """The reads of one instruction of a group, one register at a time, weighed by the steps it takes."""
    coordinates = atom.coordinates(np.arange(atom.threads)[None, :], np.arange(atom.values)[:, None])
    index = coordinates[::-1] if transposed else coordinates
    inside = tuple(np.minimum(place, limit - 1) for place, limit in zip(index, extents[-2:], strict=True))
    lead = (np.zeros_like(inside[0]),) * (len(extents) - 2)
    return AccessPattern((*lead, *inside), 1, float(steps))


@lru_cache(maxsize=1024)
def _matrix_operand(
    extents: tuple[int, ...], bits: int, steps: int, side: int, transposed: bool, atom: Fragment,
    load: MatrixLoad,
) -> AccessPattern | None:  # fmt: skip
    """The rows that the lanes of a warp name for one load of whole matrices; None without such a load.

    The rows of matrices run along the last dimension, in which neighbours lie together.
    """
    turned = (side == 0) == transposed
    rows = matrix_rows(atom, load, 1 - side, bits, turned=turned, repeats=2, stride=atom.extents[side])
    if rows is None or extents[-1] % rows.chunk:
        return None
    place = rows.places(atom.threads)
    index = place[::-1] if transposed else place
    inside = [np.minimum(part, limit - 1)[None, :] for part, limit in zip(index, extents[-2:], strict=True)]
    inside[1] = np.minimum(inside[1], extents[-1] - rows.chunk)
    lead = (np.zeros_like(inside[0]),) * (len(extents) - 2)
    return AccessPattern((*lead, *inside), rows.chunk, float(steps) / rows.together)
