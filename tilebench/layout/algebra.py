"""The CuTe layout algebra: a layout is a function from coordinates to offsets, as shape and stride.

Shapes and strides are integers or nested tuples of integers of the same profile. A linear index
walks the coordinates colexicographically (the first mode is the fastest), as CuTe does. Every
operation here is exact: where a result would need rounding, or where composition mode by mode
would differ from composition of the functions, it raises `LayoutError` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
IntArray: TypeAlias = npt.NDArray[np.int64]
Mode: TypeAlias = tuple[int, int]


def _leaves(tree: IntTuple) -> tuple[int, ...]:
    """The integers of a nested tuple, left to right."""
    if isinstance(tree, int):
        return (tree,)
    leaves: list[int] = []
    for part in tree:
        leaves.extend(_leaves(part))
    return tuple(leaves)


def _congruent(shape: IntTuple, stride: IntTuple) -> bool:
    if isinstance(shape, int) or isinstance(stride, int):
        return isinstance(shape, int) and isinstance(stride, int)
    return len(shape) == len(stride) and all(_congruent(a, b) for a, b in zip(shape, stride, strict=True))


def product(numbers: tuple[int, ...]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


@dataclass(frozen=True)
class Layout:
    """A layout `shape : stride`. Strides and offsets count elements, never bytes.

    Raises `LayoutError` when the profiles differ, an extent is below 1 or a stride is negative.
    """

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        if not _congruent(self.shape, self.stride):
            raise LayoutError(
                "shape and stride of a layout do not have the same profile",
                expected="a stride for each extent, nested alike",
                found="shape {shape}, stride {stride}",
                shape=self.shape,
                stride=self.stride,
            )
        if any(n < 1 for n in _leaves(self.shape)) or any(d < 0 for d in _leaves(self.stride)):
            raise LayoutError(
                "a layout needs extents of at least 1 and strides of at least 0",
                found="shape {shape}, stride {stride}",
                shape=self.shape,
                stride=self.stride,
            )

    def __repr__(self) -> str:
        return f"T.Layout({self.shape!r}, {self.stride!r})"

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The flat (extent, stride) pairs, fastest first."""
        return tuple(zip(_leaves(self.shape), _leaves(self.stride), strict=True))

    @cached_property
    def size(self) -> int:
        """How many coordinates the layout has."""
        return product(_leaves(self.shape))

    @cached_property
    def cosize(self) -> int:
        """One more than the greatest offset."""
        return 1 + sum((n - 1) * d for n, d in self.modes)

    @property
    def rank(self) -> int:
        """The number of top-level modes; 1 for an integer shape."""
        return 1 if isinstance(self.shape, int) else len(self.shape)

    @property
    def depth(self) -> int:
        """How deep the shape is nested; 0 for an integer shape."""
        return _depth(self.shape)

    def mode(self, index: int) -> Layout:
        """The top-level mode `index` as a layout of its own."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            if index == 0:
                return self
        elif 0 <= index < len(self.shape):
            return Layout(self.shape[index], self.stride[index])
        raise LayoutError(
            "the layout {layout} has no mode {index}",
            layout=self,
            index=index,
            expected="0 to {last}",
            last=self.rank - 1,
        )

    def __call__(self, *coord: Any) -> Any:
        """The offset at a linear index, or at a coordinate (several arguments, or a nested tuple).

        Indices may be integers (checked against the extents) or integer arrays, which are
        broadcast against each other and not checked.
        """
        return _evaluate(coord[0] if len(coord) == 1 else coord, self.shape, self.stride)

    def flatten(self) -> Layout:
        """The same function with all nesting removed."""
        return from_modes(self.modes) if self.rank > 1 or self.depth > 0 else self

    def coalesce(self) -> Layout:
        return coalesce(self)


def _depth(tree: IntTuple) -> int:
    return 0 if isinstance(tree, int) else 1 + max((_depth(each) for each in tree), default=0)


def _evaluate(coord: Any, shape: IntTuple, stride: IntTuple) -> Any:
    if isinstance(coord, tuple):
        parts = cast("tuple[Any, ...]", coord)
        if isinstance(shape, int) or isinstance(stride, int) or len(parts) != len(shape):
            raise LayoutError(
                "the coordinate {coord} does not fit the shape {shape}", coord=parts, shape=shape
            )
        return sum(_evaluate(c, n, d) for c, n, d in zip(parts, shape, stride, strict=True))
    extents, strides = _leaves(shape), _leaves(stride)
    last = product(extents) - 1
    rest: Any = coord
    if isinstance(rest, int) and not 0 <= rest <= last:
        raise LayoutError(
            "index {coord} is outside the shape {shape}",
            coord=rest,
            shape=shape,
            expected="0 to {last}",
            last=last,
        )
    total: Any = 0
    rest = cast(Any, rest)
    for k, (extent, step) in enumerate(zip(extents, strides, strict=True)):
        # The last mode takes what is left: it needs no remainder.
        digit: Any = rest if k == len(extents) - 1 else rest % extent
        total = total + digit * step
        rest = rest // extent
    return total


def from_modes(modes: tuple[Mode, ...] | list[Mode]) -> Layout:
    """A flat layout of (extent, stride) pairs; an integer shape for one pair, `1 : 0` for none."""
    if not modes:
        return Layout(1, 0)
    if len(modes) == 1:
        return Layout(modes[0][0], modes[0][1])
    return Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))


def join(*parts: Layout) -> Layout:
    """The layout whose top-level modes are `parts`."""
    return Layout(tuple(each.shape for each in parts), tuple(each.stride for each in parts))


def column_major(shape: IntTuple) -> Layout:
    """The compact layout whose first mode is the fastest."""
    return Layout(shape, _compact(shape, 1)[0])


def _compact(shape: IntTuple, start: int) -> tuple[IntTuple, int]:
    if isinstance(shape, int):
        return start, start * shape
    strides: list[IntTuple] = []
    for part in shape:
        stride, start = _compact(part, start)
        strides.append(stride)
    return tuple(strides), start


def row_major(shape: IntTuple) -> Layout:
    """The compact layout whose last mode is the fastest (nested shapes likewise, leaf by leaf)."""
    return Layout(shape, _compact_row(shape, 1)[0])


def _compact_row(shape: IntTuple, start: int) -> tuple[IntTuple, int]:
    if isinstance(shape, int):
        return start, start * shape
    strides: list[IntTuple] = []
    for part in reversed(shape):
        stride, start = _compact_row(part, start)
        strides.append(stride)
    return tuple(reversed(strides)), start


def offsets(layout: Layout) -> IntArray:
    """The offsets at all linear indices, in order. Shape `(size,)`, int64."""
    sums: IntArray = np.zeros(1, np.int64)
    for extent, stride in layout.modes:
        steps = np.arange(extent, dtype=np.int64) * stride
        sums = (steps[:, None] + sums[None, :]).ravel()
    return sums


def _merge(modes: tuple[Mode, ...]) -> list[Mode]:
    merged: list[Mode] = []
    for extent, stride in modes:
        if extent == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return merged


def coalesce(layout: Layout) -> Layout:
    """The same function of a linear index with the fewest flat modes."""
    return from_modes(_merge(layout.modes))


class _Composer:
    """Composition with one left side. Keeps the greatest digit reached in each of its modes."""

    def __init__(self, a: Layout, b: Layout) -> None:
        self.a, self.b = a, b
        self.modes = _merge(a.modes) or [(1, 0)]
        self.reach = [0] * len(self.modes)

    def fail(self, why: str, extent: int, stride: int) -> LayoutError:
        return LayoutError(
            "{a} cannot be composed with {b}: " + why, a=self.a, b=self.b, n=extent, d=stride,
            hint="tile by extents that divide, or pad the layout to the tile first",
        )  # fmt: skip

    def leaf(self, extent: int, stride: int) -> list[Mode]:
        """The modes of `a` taken `extent` times in steps of `stride`."""
        if extent == 1 or stride == 0:
            return [(extent, 0)]
        modes: list[Mode] = []
        left, step = extent, stride
        for k, (n, d) in enumerate(self.modes):
            if (left - 1) * step < n:
                modes.append((left, step * d))
                self.reach[k] += (left - 1) * step
                return modes
            if step % n == 0:
                step //= n
            elif n % step == 0 and left % (n // step) == 0:
                part = n // step
                modes.append((part, step * d))
                self.reach[k] += (part - 1) * step
                left, step = left // part, 1
            else:
                raise self.fail("{n} steps of {d} do not divide its modes", extent, stride)
        raise self.fail("{n} steps of {d} reach outside", extent, stride)

    def tree(self, shape: IntTuple, stride: IntTuple) -> Layout:
        if isinstance(shape, int) or isinstance(stride, int):
            return from_modes(self.leaf(cast(int, shape), cast(int, stride)))
        return join(*(self.tree(n, d) for n, d in zip(shape, stride, strict=True)))


Tiler: TypeAlias = "int | Layout | tuple[Tiler, ...]"


def compose(a: Layout, b: Layout | tuple[Tiler, ...]) -> Layout:
    """The layout with `compose(a, b)(i) == a(b(i))` for every `i`; a tuple composes mode by mode.

    Raises `LayoutError` where no layout congruent to `b` is that function: extents that do not
    divide, offsets of `b` outside `a`, and sums of `b`'s modes that carry between modes of `a`.
    """
    if isinstance(b, tuple):
        check_rank(a, b)
        return join(*(compose(a.mode(k), _as_tiler(tiler)) for k, tiler in enumerate(b)))
    work = _Composer(a, b)
    composed = work.tree(b.shape, b.stride)
    # Mode by mode is the composition only if digits add without a carry; `reach` is their maximum.
    for k, (n, _) in enumerate(work.modes):
        if work.reach[k] >= n:
            raise work.fail("its modes together step past an extent of {n}", n, 0)
    return composed


def _as_tiler(tiler: Tiler) -> Layout | tuple[Tiler, ...]:
    return Layout(tiler, 1) if isinstance(tiler, int) else tiler


def check_rank(layout: Layout, tiler: tuple[Tiler, ...]) -> None:
    if len(tiler) > layout.rank:
        raise LayoutError(
            "a tiler of {k} modes does not fit {layout}", k=len(tiler), layout=layout,
            expected="at most {rank} modes", rank=layout.rank,
        )  # fmt: skip


def gaps_of(layout: Layout) -> tuple[list[Mode], int]:
    """The modes between those of `layout`, and the frontier behind its last."""
    frontier = 1
    gaps: list[Mode] = []
    for stride, extent in sorted((d, n) for n, d in layout.modes if n > 1 and d > 0):
        if stride % frontier:
            raise LayoutError(
                "{layout} has no complement: the stride {stride} is not a multiple of {frontier}",
                layout=layout, stride=stride, frontier=frontier,
            )  # fmt: skip
        gaps.append((stride // frontier, frontier))
        frontier = stride * extent
    return gaps, frontier


def complement(layout: Layout, size: int | None = None) -> Layout:
    """The layout of what `layout` leaves out of `size` offsets: together they meet each once.

    Without `size` only the gaps between its modes. Stride-0 modes count once. Raises
    `LayoutError` when strides do not divide or `size` is not a multiple of the layout's span.
    """
    gaps, frontier = gaps_of(layout)
    if size is not None:
        if size % frontier:
            raise LayoutError(
                "{layout} has no complement in {size}: it spans {frontier}, which does not divide {size}",
                layout=layout, size=size, frontier=frontier,
            )  # fmt: skip
        gaps.append((size // frontier, frontier))
    return coalesce(from_modes(gaps))


def right_inverse(layout: Layout) -> Layout:
    """R with `layout(R(i)) == i` for the run of offsets from 0 that modes reach, taken by stride."""
    frontier, index, ordered = 1, 1, list[tuple[int, int, int]]()
    for extent, stride in layout.modes:
        ordered.append((stride, extent, index))
        index *= extent
    modes: list[Mode] = []
    for stride, extent, unit in sorted(ordered):
        if stride < frontier:
            continue  # a mode inside the run so far: its digit stays 0
        if stride > frontier:
            break
        modes.append((extent, unit))
        frontier *= extent
    return coalesce(from_modes(modes))


def left_inverse(layout: Layout) -> Layout:
    """An R with `R(layout(i)) == i`; of a stride-0 mode it gives digit 0, the owner.

    Raises `LayoutError` when offsets overlap or a stride does not divide the next.
    """
    index, ordered = 1, list[tuple[int, int, int]]()
    for extent, stride in _merge(layout.modes):
        if stride:
            ordered.append((stride, extent, index))
        index *= extent
    ordered.sort()
    modes: list[Mode] = [(ordered[0][0], 0)] if ordered else []
    for k, (stride, extent, unit) in enumerate(ordered):
        if k + 1 == len(ordered):
            modes.append((extent, unit))
            continue
        following = ordered[k + 1][0]
        if following % stride or following < stride * extent:
            raise LayoutError(
                "{layout} has no left inverse: strides {low} and {high} overlap or do not divide",
                layout=layout, low=stride, high=following,
            )  # fmt: skip
        modes.append((following // stride, unit))
    return coalesce(from_modes(modes))
