"""Composition of layouts: one taken at the offsets of another."""

from __future__ import annotations

from typing import TypeAlias, cast

from ..errors import LayoutError
from .algebra import IntTuple, Layout, Mode, from_modes, join, merge


class _Composer:
    """Composition with one left side. Keeps the greatest digit reached in each of its modes."""

    def __init__(self, a: Layout, b: Layout) -> None:
        self.a, self.b = a, b
        self.modes = merge(a.modes) or [(1, 0)]
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
