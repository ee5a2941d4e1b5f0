"""Where an element or a box of a view lies in the buffer whose memory it is.

Both shapes count the same elements in the same order. They are cut into groups of dimensions with equal
products: within one a number is made of the view's indices, and of that the indices of the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..ir import Expr, lift
from ..ir.arith import linear
from ..ir.facts import Facts

Size = int | Expr


def product(sizes: Sequence[Size]) -> Size:
    """The product, an int where all sizes are."""
    whole = 1
    parts: list[Expr] = []
    for size in sizes:
        if isinstance(size, int):
            whole *= size
        else:
            parts.append(size)
    return whole if not parts else reduce(lambda a, b: a * b, parts) * whole


def same_size(a: Size, b: Size) -> bool:
    """Whether two sizes are equal, whatever their names stand for."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return linear(lift(a)) == linear(lift(b))


@dataclass(frozen=True)
class SameProduct:
    """Dimensions of the view and of the buffer with one product, from and to a number."""

    view: tuple[int, int]
    root: tuple[int, int]


def groups(view: Sequence[Size], root: Sequence[Size]) -> list[SameProduct]:
    """The finest groups, from the first dimension on; what is left at the end belongs to the last one."""
    found: list[SameProduct] = []
    i = j = 0
    while i < len(view) and j < len(root):
        p, q = i + 1, j + 1
        while not same_size(product(view[i:p]), product(root[j:q])):
            a, b = product(view[i:p]), product(root[j:q])
            smaller = isinstance(a, int) and isinstance(b, int) and a < b
            if p < len(view) and (smaller or q == len(root)):
                p += 1
            elif q < len(root):
                q += 1
            else:
                break
        if not same_size(product(view[i:p]), product(root[j:q])):
            p, q = len(view), len(root)
        found.append(SameProduct((i, p), (j, q)))
        i, j = p, q
    last = found[-1]
    return [*found[:-1], SameProduct((last.view[0], len(view)), (last.root[0], len(root)))]


@dataclass(frozen=True)
class Mapped:
    """An index of the buffer, and what has to hold for the view to have the element."""

    index: tuple[Expr, ...]
    tests: tuple[Expr, ...]


def mapped(index: Sequence[Expr], view: Sequence[Size], root: Sequence[Size], facts: Facts) -> Mapped:
    """An element of the view in the buffer.

    An index outside the group's first dimension is outside the buffer too; the others are tested, where facts
    do not prove them.
    """
    out: list[Expr] = []
    tests: list[Expr] = []
    for group in groups(view, root):
        (i, p), (j, q) = group.view, group.root
        if p - i == q - j == 1:
            out.append(index[i])
            continue
        for position, size in zip(index[i + 1 : p], view[i + 1 : p], strict=True):
            tests += [
                test
                for test in (position.compare(">=", 0), position.compare("<", lift(size)))
                if not facts.proves(test)
            ]
        number: Expr = index[i]
        for position, size in zip(index[i + 1 : p], view[i + 1 : p], strict=True):
            number = number * lift(size) + position
        out += _digits(number, root[j:q], facts)
    return Mapped(tuple(out), tuple(tests))


def _digits(number: Expr, sizes: Sequence[Size], facts: Facts) -> list[Expr]:
    """The indices of a number in a row-major box; the first one is not cut, so that outside stays outside."""
    found: list[Expr] = []
    for axis, size in enumerate(sizes):
        upper = _over(number, product(sizes[axis + 1 :]), facts)
        if axis > 0:
            upper = facts.mod(upper, size) if isinstance(size, int) else upper % size
        found.append(upper)
    return found


def _over(number: Expr, size: Size, facts: Facts) -> Expr:
    if isinstance(size, int):
        return number if size == 1 else facts.floordiv(number, size)
    return number // size


@dataclass(frozen=True)
class BoxBehind:
    """A box of the buffer."""

    start: tuple[Expr, ...]
    extent: tuple[int, ...]


def box_of_view(
    start: Sequence[Expr], extent: Sequence[int], view: Sequence[Size], root: Sequence[Size], facts: Facts
) -> BoxBehind | None:
    """A box of the view as one of the buffer, its extents apart from ones the same; None where it is none."""
    starts: list[Expr] = []
    extents: list[int] = []
    for group in groups(view, root):
        (i, p), (j, q) = group.view, group.root
        if p - i == q - j == 1:
            starts.append(start[i])
            extents.append(extent[i])
            continue
        # One row of the view's last dimension, within one row of the buffer's.
        row = extent[p - 1]
        if any(size != 1 for size in extent[i : p - 1]) or not _stays(start, row, view, group, facts):
            return None
        if row > 1 and not _in_one_row(start[p - 1], row, root[q - 1], group, facts):
            return None
        found = mapped(start[i:p], view[i:p], root[j:q], facts)
        if found.tests:
            return None
        starts += found.index
        extents += [*[1] * (q - j - 1), row]
    return BoxBehind(tuple(starts), tuple(extents))


def _stays(start: Sequence[Expr], row: int, view: Sequence[Size], group: SameProduct, facts: Facts) -> bool:
    """Whether a row does not leave the view's last dimension, where that is not the group's first."""
    i, p = group.view
    if p - i == 1:
        return True
    end = start[p - 1] + row
    return facts.proves(end.compare("<=", lift(view[p - 1])))


def _in_one_row(first: Expr, row: int, size: Any, group: SameProduct, facts: Facts) -> bool:
    """Whether a row from `first` on lies within one row of the buffer's last dimension of the group."""
    i, p = group.view
    j, q = group.root
    if q - j == 1:
        return True
    return p - i == 1 and isinstance(size, int) and size % row == 0 and facts.divides(row, first)


__all__ = ["BoxBehind", "Mapped", "Size", "box_of_view", "groups", "mapped", "product", "same_size"]
