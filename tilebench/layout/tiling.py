"""An instruction's fragment repeated over a tile: by groups of threads first, then by registers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..errors import LayoutError
from .fragment import REPLICATED, Fragment, FragmentMode


@lru_cache(maxsize=1024)
def split_groups(
    extents: tuple[int, int], atom: tuple[int, ...], groups: int, policy: str, *, rows_first: bool = False
) -> tuple[int, int]:
    """How many groups of threads share out the rows and the columns of a tile.

    `atom` is the part of the tile that one instruction covers. `full_row` puts all groups along the
    rows, `full_col` along the columns, `4x2` four along the rows and two along the columns; `square` takes
    the split with the least work of a group and, of those, the one that reads the fewest rows and columns, or
    with `rows_first` the one with most groups along the rows, and none that cuts columns into odd numbers of
    parts where another is left. Groups that are left over are idle. Raises `LayoutError` where a split in
    numbers is one of others.
    """
    if policy == "full_row":
        return groups, 1
    if policy == "full_col":
        return 1, groups
    if policy != "square":
        rows, columns = (int(number) for number in policy.split("x"))
        if rows * columns != groups:
            raise LayoutError(
                "{groups} groups of threads cannot split a tile {policy}", groups=groups, policy=policy,
                expected="two numbers whose product is {groups}",
            )  # fmt: skip
        return rows, columns
    counts = [-(-extent // size) for extent, size in zip(extents, atom, strict=True)]

    def key(rows: int) -> tuple[bool, int, int, int]:
        columns = groups // rows
        deep, wide = -(-counts[0] // rows), -(-counts[1] // columns)
        read = -rows if rows_first else deep * atom[0] + wide * atom[1]
        odd = rows_first and columns > 1 and wide % 2 == 1
        return odd, deep * wide, read, -columns

    divisors = [rows for rows in range(1, groups + 1) if groups % rows == 0]
    best = min(divisors, key=key)
    return best, groups // best


@lru_cache(maxsize=1024)
def tile_fragment(atom: Fragment, extents: tuple[int, ...], groups: tuple[tuple[int, int], ...]) -> Fragment:
    """`atom` repeated over a tile of `extents`.

    `groups` are digits of the group's number, fastest first: (count, dimension that they run along, or
    `REPLICATED` for groups that hold the same). What the groups leave is covered by the registers of
    each. A tile that the atom does not divide is padded.

    Raises `LayoutError` where the numbers of dimensions differ.
    """
    if len(atom.extents) != len(extents):
        raise LayoutError(
            "an instruction's tile of extents {atom} cannot be repeated over {extents}",
            atom=atom.extents, extents=extents,
        )  # fmt: skip
    counts = [1] * len(extents)
    for count, dim in groups:
        if dim != REPLICATED:
            counts[dim] *= count
    repeats = [
        -(-extent // (size * count))
        for extent, size, count in zip(extents, atom.extents, counts, strict=True)
    ]
    thread: list[FragmentMode] = list(atom.thread)
    # A group's part is one block of the tile, behind that of the group before it.
    reach = [size * count for size, count in zip(atom.extents, repeats, strict=True)]
    for count, dim in groups:
        if count == 1:
            continue
        thread.append((count, dim, reach[dim]) if dim != REPLICATED else (count, REPLICATED, 0))
        if dim != REPLICATED:
            reach[dim] *= count
    value: list[FragmentMode] = list(atom.value)
    for dim in reversed(range(len(extents))):
        if repeats[dim] > 1:
            value.append((repeats[dim], dim, atom.extents[dim]))
    return Fragment(extents, tuple(thread), coalesced(value))


def coalesced(modes: Sequence[FragmentMode]) -> tuple[FragmentMode, ...]:
    """Modes of the same map with neighbours that count on along one dimension made one.

    So the result of one instruction and the operand of the next are told to lie alike.
    """
    merged: list[FragmentMode] = []
    for count, dim, step in modes:
        if count == 1:
            continue
        if merged and merged[-1][1] == dim and merged[-1][2] * merged[-1][0] == step and dim >= 0:
            merged[-1] = (merged[-1][0] * count, dim, merged[-1][2])
        else:
            merged.append((count, dim, step))
    return tuple(merged)


def turned_over(fragment: Fragment) -> Fragment:
    """The fragment of the transposed tile."""

    def turned(modes: Sequence[FragmentMode]) -> tuple[FragmentMode, ...]:
        return tuple((count, dim if dim == REPLICATED else 1 - dim, step) for count, dim, step in modes)

    return Fragment(fragment.extents[::-1], turned(fragment.thread), turned(fragment.value))


class PlacedAtoms(NamedTuple):
    """Where an instruction's fragment lies in a tile that repeats it, for each of the two dimensions.

    `counts` are the repeats of one group, `strides` how far apart they lie, `numbers` how many registers.
    """

    counts: tuple[int, int]
    strides: tuple[int, int]
    numbers: tuple[int, int]


@lru_cache(maxsize=1024)
def placed_atoms(tile: Fragment, atom: Fragment) -> PlacedAtoms | None:
    """How `tile` repeats `atom`; None where it does not, in steps of one width a dimension."""
    inner = atom.value_offsets
    if tile.thread[: len(atom.thread)] != atom.thread or tile.values % len(inner):
        return None
    offsets = tile.value_offsets
    bases = offsets[:: len(inner)]
    whole = tuple((m + i, n + j) for m, n in bases for i, j in inner)
    (rows, row_step, row_number), (columns, column_step, column_number) = (
        _steps(bases, dim, len(inner)) for dim in (0, 1)
    )
    grid = {
        (m * row_number + n * column_number): (m * row_step, n * column_step)
        for m in range(rows) for n in range(columns)
    }  # fmt: skip
    if whole != offsets or grid != {k * len(inner): base for k, base in enumerate(bases)}:
        return None
    return PlacedAtoms((rows, columns), (row_step, column_step), (row_number, column_number))


def _steps(bases: Sequence[tuple[int, ...]], dim: int, values: int) -> tuple[int, int, int]:
    """Along one dimension: how many places there are, and the first step in elements and registers."""
    places = sorted({base[dim] for base in bases})
    if len(places) == 1:
        return 1, 0, 0
    first = next(k for k, base in enumerate(bases) if base[dim] == places[1] and base[1 - dim] == 0)
    return len(places), places[1], first * values
