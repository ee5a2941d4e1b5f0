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
    return Layout(shape, _compact(shape, 1, first_fastest=True)[0])


def row_major(shape: IntTuple) -> Layout:
    """The compact layout whose last mode is the fastest (nested shapes likewise, leaf by leaf)."""
    return Layout(shape, _compact(shape, 1, first_fastest=False)[0])


def _compact(shape: IntTuple, start: int, *, first_fastest: bool) -> tuple[IntTuple, int]:
    """Strides without holes from `start` on, and the stride of what would come next."""
    if isinstance(shape, int):
        return start, start * shape
    strides: list[IntTuple] = []
    for part in shape if first_fastest else reversed(shape):
        stride, start = _compact(part, start, first_fastest=first_fastest)
        strides.append(stride)
    return tuple(strides if first_fastest else reversed(strides)), start


def offsets(layout: Layout) -> IntArray:
    """The offsets at all linear indices, in order. Shape `(size,)`, int64."""
    sums: IntArray = np.zeros(1, np.int64)
    for extent, stride in layout.modes:
        steps = np.arange(extent, dtype=np.int64) * stride
        sums = (steps[:, None] + sums[None, :]).ravel()
    return sums


def merge(modes: tuple[Mode, ...]) -> list[Mode]:
    """The fewest modes of the same function: those of extent 1 dropped, neighbours joined where they meet."""
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
    return from_modes(merge(layout.modes))
