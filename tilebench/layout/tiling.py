"""An instruction's fragment repeated over a tile: by groups of threads first, then by registers."""

from __future__ import annotations

from functools import lru_cache

from ..errors import LayoutError
from .fragment import REPLICATED, Fragment, FragmentMode


@lru_cache(maxsize=1024)
def split_groups(
    extents: tuple[int, int], atom: tuple[int, ...], groups: int, policy: str
) -> tuple[int, int]:
    """How many groups of threads share out the rows and the columns of a tile.

    `atom` is the part of the tile that one instruction covers. `full_row` puts all groups along the
    rows, `full_col` along the columns; `square` takes the split with the least work of a group and,
    of those, the one that reads the fewest rows and columns. Groups that are left over are idle.
    """
    if policy == "full_row":
        return groups, 1
    if policy == "full_col":
        return 1, groups
    counts = [-(-extent // size) for extent, size in zip(extents, atom, strict=True)]

    def key(rows: int) -> tuple[int, int, int]:
        columns = groups // rows
        deep, wide = -(-counts[0] // rows), -(-counts[1] // columns)
        return deep * wide, deep * atom[0] + wide * atom[1], -columns

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
    thread: list[FragmentMode] = list(atom.thread)
    reach = list(atom.extents)
    for count, dim in groups:
        if count == 1:
            continue
        thread.append((count, dim, reach[dim]) if dim != REPLICATED else (count, REPLICATED, 0))
        if dim != REPLICATED:
            reach[dim] *= count
    value: list[FragmentMode] = list(atom.value)
    for dim in reversed(range(len(extents))):
        repeats = -(-extents[dim] // reach[dim])
        if repeats > 1:
            value.append((repeats, dim, reach[dim]))
    return Fragment(extents, tuple(thread), tuple(value))
