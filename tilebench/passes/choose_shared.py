"""A layout for every shared buffer: the one whose accesses conflict least in the banks.

`A_s = T.alloc_shared((128, 32), T.float16)` -> the same with `layout=T.SharedLayout(...)`. Candidates
are row-major, XOR swizzles and padded rows; each is scored on the addresses that the lanes of a
warp form at every access, counted by the hardware's rules. A `swizzle=` choice narrows the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..ir import Function, Load, Region, Stmt, Store, map_children, walk
from ..ir.arith import evaluate
from ..language.copy import Copy, Fill
from ..language.gemm import Gemm
from ..language.memory import AllocFragment, AllocShared
from ..language.structure import Parallel
from ..layout import Fragment, SharedLayout
from ..layout.choose import Access as Pattern
from ..layout.choose import Choice, candidates, price
from ..machine import Machine
from .context import Context
from .sites import BOX, Access, box_index

NAME = "choose_shared"
# A gemm reads its operands once a step of k, a copy writes them once: how often a site repeats.
GEMM_WEIGHT = 8.0
VALUES_LOOKED_AT = 4


def choose_shared(function: Function, context: Context) -> Function:
    """The function with a layout on every shared buffer."""
    patterns = _patterns(function, context.machine)

    def step(at: Any) -> Any:
        if isinstance(at, AllocShared) and at.layout is None:
            return at.but(layout=_best(at, patterns.get(at.buffer.name, []), context))
        return map_children(at, step) if isinstance(at, Stmt) else at

    return step(function)


def _options(alloc: AllocShared, vector_bytes: int) -> list[SharedLayout]:
    """The layouts that the `swizzle=` choice leaves; `vector_bytes` is the widest access."""
    size = alloc.buffer.dtype.bytes
    found = candidates(alloc.buffer.shape, size, max(vector_bytes, size))
    if alloc.swizzle is None:
        return list(found)
    return [
        each
        for each in found
        if (each.swizzle is not None) == alloc.swizzle and (alloc.swizzle or each == found[0])
    ]


def _best(alloc: AllocShared, patterns: list[Pattern], context: Context) -> SharedLayout:
    size, shared, name = alloc.buffer.dtype.bytes, context.machine.shared, alloc.buffer.name
    options = _options(alloc, max(context.machine.vector_bytes))
    if not options:
        context.remark(
            NAME, "missed", f"{name} is not swizzled: its rows have no whole vectors to change places", alloc,
            row_bytes=alloc.buffer.shape[-1] * size,
        )  # fmt: skip
        options = [SharedLayout.ordered(alloc.buffer.shape)]
    plain = price(SharedLayout.ordered(alloc.buffer.shape), size, patterns, shared.banks, shared.bank_bytes)
    choice: Choice | None = None
    for each in options:
        found = (
            plain if each == plain.layout else price(each, size, patterns, shared.banks, shared.bank_bytes)
        )
        if choice is None or (found.wavefronts, found.bytes) < (choice.wavefronts, choice.bytes):
            choice = found
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


def _words(layout: SharedLayout) -> str:
    if layout.swizzle is not None:
        return f"swizzled {layout.swizzle!r}".replace("T.", "")
    return (
        "row-major"
        if layout == SharedLayout.ordered(layout.shape)
        else f"rows padded to {layout.strides[-2]} elements"
    )


# -- the addresses of a warp


def _patterns(function: Function, machine: Machine) -> dict[str, list[Pattern]]:
    out: dict[str, list[Pattern]] = {}
    fragments = {n.buffer.name: n.layout for n in walk(function) if isinstance(n, AllocFragment) and n.layout}
    for node in walk(function):
        for name, pattern in _of_node(node, fragments, machine):
            out.setdefault(name, []).append(pattern)
    return out


def _of_node(node: Any, fragments: dict[str, Fragment], machine: Machine) -> Iterable[tuple[str, Pattern]]:
    match node:
        case Copy() if node.map is not None:
            for region in (node.src, node.dst):
                if region.buffer.scope == "shared":
                    yield from _region(region, node.map, machine)
        case Fill() if node.map is not None and node.dst.buffer.scope == "shared":
            yield from _region(node.dst, node.map, machine)
        case Parallel() if node.map is not None:
            names = tuple(v.name for v in node.vars)
            for each in walk(node):
                if isinstance(each, (Load, Store)) and each.buffer.scope == "shared":
                    access = Access(each.buffer, each.index, isinstance(each, Store))
                    yield each.buffer.name, _pattern(access, names, node.map, node.vector or 1, machine)
        case Gemm():
            yield from _gemm(node, fragments, machine)
        case _:
            return


def _region(region: Region, box: Fragment, machine: Machine) -> Iterable[tuple[str, Pattern]]:
    names = tuple(BOX.format(k) for k in range(len(box.extents)))
    access = Access(region.buffer, box_index(region, names), False)
    most = max(1, max(machine.vector_bytes) // region.buffer.dtype.bytes)
    width = min(box.contiguous_values(len(box.extents) - 1), most)
    yield region.buffer.name, _pattern(access, names, box, width, machine)


def _pattern(access: Access, names: tuple[str, ...], box: Fragment, width: int, machine: Machine) -> Pattern:
    lanes = np.arange(min(machine.warp, box.threads))
    values = np.arange(0, box.values, max(1, width))[:VALUES_LOOKED_AT]
    where = dict(zip(names, box.coordinates(lanes[None, :], values[:, None]), strict=True))
    shape = (len(values), len(lanes))
    index = tuple(
        np.minimum(np.broadcast_to(evaluate(each, where), shape), limit - 1)
        for each, limit in zip(access.index, access.buffer.shape, strict=True)
    )
    return Pattern(index, max(1, width), 1.0)


def _gemm(node: Gemm, fragments: dict[str, Fragment], machine: Machine) -> Iterable[tuple[str, Pattern]]:
    """A step of a gemm by multiply-adds: each lane reads its rows of A and its columns of B."""
    layout = fragments.get(node.c.buffer.name)
    if layout is None:
        return
    lanes = np.arange(min(machine.warp, layout.threads))
    m, n = (np.asarray(each)[:, 0] for each in layout.coordinates(lanes[:, None], np.zeros((1, 1), np.int64)))
    sides = ((node.a, m, 0, node.transpose_A), (node.b, n, 1, node.transpose_B))
    for region, where, side, transposed in sides:
        if region.buffer.scope != "shared":
            continue
        # `where` runs along the first dimension for A as (m, k) and for B as (n, k).
        first = (side == 0) != transposed
        limit = region.buffer.shape[-2 if first else -1]
        moving = np.minimum(where, limit - 1)[None, :]
        steps = np.zeros_like(moving)
        last = region.buffer.shape[-1]
        width = max(w for w in (4, 2, 1) if last % w == 0)
        if not first:
            width = min(width, layout.contiguous_values(1) if side == 1 else layout.contiguous_values(0))
        index = (moving, steps) if first else (steps, moving)
        lead = (np.zeros_like(moving),) * (region.buffer.rank - 2)
        yield region.buffer.name, Pattern((*lead, *index), width, GEMM_WEIGHT)
