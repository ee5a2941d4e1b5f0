"""What a layout says, in words: for a reader who points at its name."""

from __future__ import annotations

from math import prod

from .algebra import Layout
from .fragment import REPLICATED, Fragment, FragmentMode
from .shared import SharedLayout
from .swizzle import Swizzle


def fragment_in_words(fragment: Fragment, warp: int) -> tuple[str, ...]:
    """Who holds what of a tile: how much a thread has, which elements, and how threads follow each other."""
    said = f"{_by(fragment.extents)} elements on {fragment.threads} threads, {fragment.values} a thread"
    if fragment.replicated_threads > 1:
        said += f"; {fragment.replicated_threads} threads hold each"
    if fragment.has_ghosts:
        said += f"; padded to {_by(fragment.padded)}, and what is outside is left alone"
    lines = [said]
    rank = len(fragment.extents)
    if fragment.values > 1:
        lines.append("a thread: " + _steps(fragment.value, rank))
    inside, across = _at_warp(fragment.thread, warp)
    if prod(count for count, _, _ in across) > 1:
        lines.append(f"the {warp} threads of a warp: " + _steps(inside, rank))
        lines.append("warps: " + _steps(across, rank))
    elif fragment.threads > 1:
        lines.append("threads: " + _steps(fragment.thread, rank))
    return tuple(lines)


def _by(extents: tuple[int, ...]) -> str:
    return " x ".join(str(extent) for extent in extents) or "1"


def _steps(modes: tuple[FragmentMode, ...], rank: int) -> str:
    """Modes from the fastest on: `2 columns side by side, 2 rows 8 apart`."""
    return ", then ".join(_step(mode, rank) for mode in modes if mode[0] > 1) or "one"


def _step(mode: FragmentMode, rank: int) -> str:
    count, dim, step = mode
    if dim == REPLICATED:
        return f"{count} with the same"
    names = {(1, 0): "elements", (2, 0): "rows", (2, 1): "columns"}
    what = names.get((rank, dim), f"along dimension {dim}")
    return f"{count} {what} " + ("side by side" if step == 1 else f"{step} apart")


def _at_warp(
    modes: tuple[FragmentMode, ...], warp: int
) -> tuple[tuple[FragmentMode, ...], tuple[FragmentMode, ...]]:
    """The modes of the threads of a warp and those of warps, where the threads are whole warps."""
    left = warp
    for k, (count, dim, step) in enumerate(modes):
        if left == 1:
            return modes[:k], modes[k:]
        if count >= left and count % left == 0:
            rest = (count // left, dim, step * left)
            return (*modes[:k], (left, dim, step)), (rest, *modes[k + 1 :])
        if left % count:
            break
        left //= count
    return (), ()


def shared_in_words(layout: SharedLayout, bits: int) -> tuple[str, ...]:
    """Where elements of `bits` bits lie: the memory taken, the order of rows, and who changes places."""
    used, taken = layout.size * bits // 8, -(-layout.cosize * bits // 8)
    unused = f", {taken - used} of them unused" if taken > used else ""
    lines = [f"{_by(layout.extents)} elements in {taken} bytes of shared memory{unused}"]
    order = [f"{_dimension(dim, k, layout, bits)}" for k, dim in enumerate(layout.dims) if dim.size > 1]
    lines.append(", ".join(order) or "one element")
    if layout.swizzle is not None and layout.swizzle.bits:
        lines += _exchange(layout.swizzle, bits)
    return tuple(lines)


def _dimension(dim: Layout, place: int, layout: SharedLayout, bits: int) -> str:
    rank = len(layout.dims)
    name = {(1, 0): "elements", (2, 0): "rows", (2, 1): "columns"}.get((rank, place), f"dimension {place}")
    steps = [_distance(step, bits) for _, step in dim.modes]
    inside = "".join(
        f" in groups of {prod(extent for extent, _ in dim.modes[:k])} that are {steps[k]}"
        for k in range(1, len(dim.modes))
    )
    return f"{name} {steps[0]}{inside}"


def _distance(step: int, bits: int) -> str:
    return "side by side" if step == 1 else f"{step * bits / 8:g} bytes apart"


def _exchange(swizzle: Swizzle, bits: int) -> list[str]:
    unit, count = (1 << swizzle.base) * bits / 8, 1 << swizzle.bits
    line = (1 << (swizzle.base + swizzle.shift)) * bits / 8
    exchange = f"in each {count * unit:g} bytes units of {unit:g} change places"
    return [
        f"swizzled: {exchange}, by another of {count} orders every {line:g} bytes",
        f"element n of the plain order lies at n ^ ((n & {swizzle.mask}) >> {swizzle.shift})",
    ]
