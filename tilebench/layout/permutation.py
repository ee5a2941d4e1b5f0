"""Orders of an array's elements in memory: index expressions that have to be a permutation.

Element (i, j) lies at the row-major number of (`index[0]`, `index[1]`, ...). Where the parts of an index
are sums over variables that stand apart, which they nearly always are, each variable's share is a set of
digits, and the digits of all have to fill the numbers from 0 on without a hole: so a permutation of any
size is proved without a table of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..ir import Arith, Cast, Const, Expr, Var, int32, lift, show, substitute, walk
from ..ir.arith import evaluate, linear
from ..ir.dtypes import ALL
from ..ir.expr import add
from .fitted import digits

# Elements of variables that stand in one term together: their table has to be looked at.
MOST_LISTED = 1 << 25
Size = int | Expr


def refuse_strange(sizes: Mapping[str, Size], index: Sequence[Expr]) -> None:
    """Raise `LayoutError` for an index that is no whole-number arithmetic of variables with these extents."""
    for part in index:
        for node in walk(part):
            if isinstance(node, Var) and node.name in sizes:
                if node is part or isinstance(sizes[node.name], int):
                    continue
                raise LayoutError(
                    "the extent of {name} is known only at a launch, and the layout takes it apart: {part}",
                    name=node.name, part=show(part), expected="{name} as an index of its own",
                    hint="give the array a constant extent there",
                )  # fmt: skip
            if not isinstance(node, (Const, Arith)) or not node.dtype.is_integer:
                raise LayoutError(
                    "a layout is whole-number arithmetic of the element's indices, found {part}",
                    part=show(node), hint="+ - * // % and bitwise operators",
                )  # fmt: skip


def values_of(part: Expr, names: Sequence[str], extents: Sequence[int]) -> Any:
    """The values of an index at all values of variables with these extents, an axis a variable."""
    axes = np.ix_(*(np.arange(extent, dtype=np.int64) for extent in extents)) if extents else ()
    found = evaluate(part, dict(zip(names, axes, strict=True)))
    return np.broadcast_to(np.asarray(found, np.int64), tuple(extents))


class Permutation:
    """The order that index expressions give an array of `shape`. Raises `LayoutError` where it is none.

    `extents` are those of the expressions, one for each; a size that is known only at a launch may only
    change its place as a whole.
    """

    def __init__(self, shape: Sequence[Size], names: Sequence[str], index: Sequence[Expr]) -> None:
        self.shape, self.names, self.index = tuple(shape), tuple(names), tuple(index)
        self.sizes: Mapping[str, Size] = dict(zip(self.names, self.shape, strict=True))
        refuse_strange(self.sizes, self.index)
        self.extents = tuple(self.extent(part) for part in self.index)
        self.check()

    def table(self, part: Expr, names: Sequence[str]) -> Any:
        """The values of an expression at all values of its variables, an axis a variable."""
        extents = [int(self.sizes[name]) for name in names]  # type: ignore[arg-type]
        if prod(extents) > MOST_LISTED:
            raise LayoutError(
                "whether the layout is a permutation cannot be checked: {part} depends on {count} elements",
                part=show(part), count=prod(extents), most=MOST_LISTED, expected="at most {most}",
            )  # fmt: skip
        return values_of(part, names, extents)

    def apart(self, part: Expr) -> list[tuple[tuple[str, ...], Expr]]:
        """The terms of a sum, gathered by the variables that they share."""
        groups: list[tuple[set[str], list[Expr]]] = []
        form = linear(part)
        for term, factor in form.terms:
            names = {node.name for node in walk(term) if isinstance(node, Var)}
            _join(groups, names, [term * factor])
        if form.constant:
            groups.append((set(), [Const(form.constant)]))
        return [
            (tuple(name for name in self.names if name in names), reduce(add, terms))
            for names, terms in groups
        ]

    def extent(self, part: Expr) -> Size:
        """How many values an index has, from 0 on."""
        if isinstance(part, Var) and not isinstance(self.sizes[part.name], int):
            return self.sizes[part.name]
        least = most = 0
        for names, total in self.apart(part):
            values = self.table(total, names)
            least += int(values.min(initial=2**62)) if values.size else 0
            most += int(values.max(initial=0)) if values.size else 0
        if least < 0:
            raise LayoutError("an index of the layout is below zero: {part}", part=show(part))
        return most + 1

    def check(self) -> None:
        """What has a constant extent is a permutation by itself: the rest changes its place as a whole."""
        fixed = [(e, part) for e, part in zip(self.extents, self.index, strict=True) if isinstance(e, int)]
        moved = sorted(part.name for part in self.index if isinstance(part, Var) and self.open(part.name))
        elements = prod(extent for extent in self.sizes.values() if isinstance(extent, int))
        places = prod(extent for extent, _ in fixed)
        whole = moved == sorted(name for name in self.names if self.open(name))
        if not elements:
            return
        if not whole or places != elements or not self.fills([e for e, _ in fixed], [p for _, p in fixed]):
            raise LayoutError(
                "this layout is no permutation of the array: two elements in one place, or there are gaps",
                shape=show(self.shape), extents=show(self.extents),
                expected="each element of {shape} in a place of its own, without gaps",
                found="places in {extents}",
            )  # fmt: skip

    def open(self, name: str) -> bool:
        """Whether a variable's extent is known only at a launch."""
        return not isinstance(self.sizes[name], int)

    def fills(self, extents: Sequence[int], index: Sequence[Expr]) -> bool:
        """Whether the numbers of all elements are those from 0 on, each once."""
        step, groups = 1, list[tuple[set[str], list[tuple[int, Expr]]]]()
        for extent, part in zip(reversed(extents), reversed(index), strict=True):
            for names, total in self.apart(part):
                _join(groups, set(names), [(step, total)])
            step *= extent
        reach = 1
        for by, count in sorted(digit for group in groups for digit in self.share(*group)):
            if by != reach:
                return False
            reach *= count
        return True

    def share(self, names: set[str], parts: Sequence[tuple[int, Expr]]) -> list[tuple[int, int]]:
        """What variables add to an element's number, as digits (step, count); (0, 1) where it is none."""
        order = [name for name in self.names if name in names]
        table = np.sort(sum(step * self.table(part, order) for step, part in parts), axis=None)
        found = digits(table - table[0])
        fits = found is not None and prod(count for count, _ in found) == table.size
        return [(by, count) for count, by in found or ()] if fits else [(0, 1)]


def _join(groups: list[tuple[set[str], list[Any]]], names: set[str], parts: list[Any]) -> None:
    """Adds parts of these variables to the group that has some of them, which may make one of several."""
    for group in [group for group in groups if group[0] & names]:
        groups.remove(group)
        names, parts = names | group[0], parts + group[1]
    groups.append((names, parts))


def placed(permutation: Permutation, element: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index, in the array's own shape and row-major, of the place where an element lies."""
    values = dict(zip(permutation.names, element, strict=True))
    parts = [substitute(part, values) for part in permutation.index]
    places = _Places(permutation, list(zip(permutation.extents, parts, strict=True)))
    inner = [places.take(extent) for extent in reversed(permutation.shape[1:])]
    return (places.rest(), *reversed(inner)) if permutation.shape else ()


class _Places:
    """A row of (extent, index), row-major, off whose end digits are taken. None is the rest's extent."""

    def __init__(self, permutation: Permutation, row: list[tuple[Size | None, Expr]]) -> None:
        self.row = row
        sizes = [size for size in permutation.shape if isinstance(size, int)]
        # What numbers its places past int32 does so in 64 bits; sizes of a launch may.
        large = len(sizes) < len(permutation.shape) or prod(sizes) >= 2**31
        self.dtype = ALL["int64"] if large else int32

    def take(self, extent: Size) -> Expr:
        """The last digits, those that number `extent` places: whole ones where they fit."""
        total, step = Const(0), 1
        while step != extent and self.row:
            size, part = self.row[-1]
            if step == 1 and size == extent:
                self.row.pop()
                return part
            if not isinstance(extent, int) or not isinstance(size, int) or extent % step:
                break
            left = extent // step
            if left % size and size % left:
                break
            self.row.pop()
            if left % size == 0:
                total, step = total + part * step, step * size
                continue
            self.row.append((size // left, part // left))
            return total + part % left * step
        return total if step == extent or not self.row else self.divided(total, step, extent)

    def divided(self, total: Expr, step: int, extent: Size) -> Expr:
        """Where digits and dimensions do not fit into one another: by the number of the place."""
        number = self.wide(total) + self.number() * step
        by = self.wide(lift(extent))
        self.row[:] = [(None, number // by)]
        return self.narrow(number % by)

    def number(self) -> Expr:
        """All of the row as one number."""
        total: Expr = self.wide(Const(0))
        for size, part in self.row:
            if size is not None:
                total = total * self.wide(lift(size))
            total = total + self.wide(part)
        return total

    def rest(self) -> Expr:
        """What is left of the row, as an index."""
        return (
            self.row[0][1]
            if len(self.row) == 1 and self.row[0][0] is not None
            else self.narrow(self.number())
        )

    def wide(self, part: Expr) -> Expr:
        if part.dtype == self.dtype:
            return part
        return Const(part.value, type=self.dtype) if isinstance(part, Const) else Cast(part, type=self.dtype)

    def narrow(self, part: Expr) -> Expr:
        return part if part.dtype == int32 else Cast(part, type=int32)


def offsets(permutation: Permutation) -> Any:
    """The row-major number of the place of each element of an array whose sizes are known, in its shape."""
    number: Any = 0
    for extent, part in zip(permutation.extents, permutation.index, strict=True):
        number = number * extent + permutation.table(part, permutation.names)
    return number
