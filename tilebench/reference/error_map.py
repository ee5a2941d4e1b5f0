"""Where a result is wrong, by the tiles that blocks made: a map to zoom into, and its pattern in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout import Fragment
from .patterns import Board, patterns_of

# What a cell of the map is: a step of the bound (0 exact to 4 just inside, 5 outside), or one of these.
STEPS = (0.0, 0.01, 0.1, 0.5, 1.0)
OUTSIDE, INFINITE, NOT_A_NUMBER, UNWRITTEN, NOT_COMPARED = 5, 6, 7, 8, 9
# How many cells a side an overview has at most, and how many elements are shown one by one.
OVERVIEW, DETAIL = 48, 128 * 128


@dataclass(frozen=True)
class ErrorDetail:
    """Elements of one part of a map, one by one: a digit each, in strings of a row."""

    top: int
    left: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class WrittenBy:
    """Which thread of a block writes which element of its tile: the sum of a row's and a column's number."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    warp: int


@dataclass(frozen=True)
class ErrorMap:
    """One plane of a result: `rows` by `columns` elements, of which `cells` (a digit each) have `patch` each.

    `plane` says in words which part of the array it is, `tile` the rows and columns that one block makes
    (0 where that is not known), `patterns` what is wrong in words, `details` the elements of the tiles where
    most is. A digit is a step of the bound, or one of the marks above.
    """

    rows: int
    columns: int
    patch: tuple[int, int]
    cells: tuple[str, ...]
    plane: str = ""
    tile: tuple[int, int] = (0, 0)
    patterns: tuple[str, ...] = ()
    details: tuple[ErrorDetail, ...] = ()
    threads: WrittenBy | None = None


def error_map(
    part: NDArray[np.float64], marks: NDArray[np.uint8], blocks: NDArray[np.int32] | None,
    fragment: Fragment | None = None, warp: int = 32,
) -> ErrorMap:  # fmt: skip
    """The map of `part`, the errors as parts of their bounds; `marks` are the digits of all elements.

    `blocks` are the numbers of the blocks that stored each element, `fragment` the threads of a block's tile.
    """
    axes = _axes(part.shape, blocks)
    planes, index = _planes(marks, axes)
    wrong: Any = (planes >= OUTSIDE) & (planes < NOT_COMPARED)
    counts = wrong.sum(axis=(1, 2))
    worst = int(np.argmax(counts)) if counts.any() else _worst_plane(part, axes)
    digits = planes[worst]
    owners = None if blocks is None else _planes(blocks, axes)[0][worst]
    tile = (0, 0) if owners is None else _tile(owners)
    threads = None if fragment is None else _written_by(fragment, tile, warp)
    numbers = None if threads is None else _numbers(threads)
    words = [*_words(digits, wrong[worst], tile, numbers, warp), *_of_planes(counts, len(planes))]
    cells, patch = _overview(digits, tile)
    rows, columns = (int(n) for n in digits.shape)
    plane = _named(index, worst, part.shape, axes)
    details = _details(digits, wrong[worst], tile)
    return ErrorMap(rows, columns, patch, cells, plane, tile, tuple(words), details, threads)


_KINDS = {OUTSIDE: "outside", INFINITE: "infinite", NOT_A_NUMBER: "no number", UNWRITTEN: "never written"}


def _words(digits: Any, wrong: Any, tile: tuple[int, int], threads: Any, warp: int) -> list[str]:
    """The pattern of all that is wrong; where it is wrong in several ways, of each."""
    kinds = [kind for kind in _KINDS if np.any(digits == kind)]
    if len(kinds) < 2:
        return patterns_of(Board(wrong, tile, threads, warp))
    found: list[str] = []
    for kind in kinds:
        each = patterns_of(Board(digits == kind, tile, threads, warp))
        found += [f"{_KINDS[kind]}: {words}" for words in each]
    return found


_step: Any = np.searchsorted


def digits_of(part: Any) -> Any:
    """The steps of parts of bounds, as numbers."""
    return _step(np.array(STEPS), part, side="left").astype(np.uint8)


def _axes(shape: Sequence[int], blocks: Any) -> tuple[int, int]:
    """The two axes along which a block's part of an array extends, or the last two."""
    rank = len(shape)
    if rank < 2:
        return (-1, rank - 1)
    if blocks is not None and blocks.size:
        own: Any = np.argwhere(blocks == blocks.reshape(-1)[0])
        long = [axis for axis in range(rank) if len(own) and np.ptp(own[:, axis]) > 0]
        if len(long) >= 2:
            return (long[-2], long[-1])
        if len(long) == 1 and long[0] < rank - 1:
            return (long[0], rank - 1)
    return (rank - 2, rank - 1)


def _planes(array: Any, axes: tuple[int, int]) -> tuple[Any, tuple[int, ...]]:
    """The array as planes of two axes, one after the other, and the extents of the other axes."""
    if array.ndim < 2:
        return array.reshape(1, 1, -1), ()
    moved = np.moveaxis(array, axes, (-2, -1))
    return moved.reshape(-1, *moved.shape[-2:]), moved.shape[:-2]


def _worst_plane(part: Any, axes: tuple[int, int]) -> int:
    planes = _planes(part, axes)[0]
    return int(np.argmax(planes.max(axis=(1, 2), initial=0.0)))


def _named(others: tuple[int, ...], number: int, shape: Sequence[int], axes: tuple[int, int]) -> str:
    """A plane as an index: `[0, :, 3, :]`; empty where there is one alone."""
    if not others or len(shape) <= 2:
        return ""
    place = iter(int(k) for k in np.unravel_index(number, others))
    return "[" + ", ".join(":" if axis in axes else str(next(place)) for axis in range(len(shape))) + "]"


def _of_planes(counts: Any, total: int) -> list[str]:
    some = int(np.count_nonzero(counts))
    return [f"in {some} of {total} such parts of the array"] if total > 1 and some else []


def _tile(owners: Any) -> tuple[int, int]:
    """Rows and columns of one block's part; (0, 0) where blocks have no equal parts side by side."""
    own: Any = np.argwhere(owners == owners[0, 0])
    rows, columns = (int(np.ptp(own[:, axis])) + 1 for axis in (0, 1))
    heads = owners[::rows, ::columns]
    tails = owners[rows - 1 :: rows, columns - 1 :: columns]
    inner = heads[: tails.shape[0], : tails.shape[1]]
    if not owners[0, 0] or len(own) != rows * columns or not np.array_equal(inner, tails):
        return (0, 0)
    return (rows, columns)


def _overview(digits: Any, tile: tuple[int, int]) -> tuple[tuple[str, ...], tuple[int, int]]:
    """Cells of whole tiles, or of tiles in equal parts: the worst digit in each."""
    patch = (_side(digits.shape[0], tile[0]), _side(digits.shape[1], tile[1]))
    # What was not compared is the least bad of a patch.
    ranked = np.where(digits == NOT_COMPARED, 0, digits + 1)
    if not digits.size:
        return (), patch
    rows = np.maximum.reduceat(ranked, list(range(0, digits.shape[0], patch[0])), axis=0)
    cells = np.maximum.reduceat(rows, list(range(0, digits.shape[1], patch[1])), axis=1)
    return _strings(np.where(cells == 0, NOT_COMPARED, cells - 1)), patch


def _side(extent: int, tile: int) -> int:
    """How many elements a cell has along one axis: one, an even part of a tile, or whole tiles."""
    least = max(1, ceil(extent / OVERVIEW))
    if least == 1 or not tile or tile >= extent:
        return least
    parts = [n for n in range(least, tile + 1) if tile % n == 0]
    return parts[0] if parts else tile * ceil(least / tile)


def _details(digits: Any, wrong: Any, tile: tuple[int, int]) -> tuple[ErrorDetail, ...]:
    """The elements of the parts where most is wrong, tiles where there are any."""
    rows, columns = digits.shape
    height, width = tile if tile[0] and tile[0] * tile[1] <= DETAIL else (min(rows, 64), min(columns, 128))
    count = max(1, min(3, DETAIL // max(1, height * width)))
    tops, lefts = range(0, rows, height), range(0, columns, width)
    if not digits.size:
        return ()
    sums: Any = np.add.reduceat(np.add.reduceat(wrong.astype(np.int64), tops, axis=0), lefts, axis=1)
    best = np.argsort(-sums, axis=None, kind="stable")[:count]
    places = [divmod(int(k), len(lefts)) for k in best if sums.flat[k]]
    return tuple(
        ErrorDetail(i * height, j * width, _strings(digits[i * height :, j * width :][:height, :width]))
        for i, j in places
    )


def _strings(digits: Any) -> tuple[str, ...]:
    text: Any = digits.astype(np.uint8) + ord("0")
    return tuple(bytes(row).decode("ascii") for row in text)


def _written_by(fragment: Fragment, tile: tuple[int, int], warp: int) -> WrittenBy | None:
    """The threads of a tile where they are a sum of a row's and a column's share, as most are."""
    long = [size for size in fragment.extents if size > 1]
    shape = (1, *long) if len(long) == 1 else tuple(long)
    if len(shape) != 2 or not all(t <= s for t, s in zip(tile, shape, strict=True)) or 0 in tile:
        return None
    coordinates = np.unravel_index(np.arange(fragment.elements), fragment.extents)
    numbers: Any = np.asarray(fragment.owner_of(coordinates)[0]).reshape(shape)[: tile[0], : tile[1]]
    rows, columns = numbers[:, 0], numbers[0] - numbers[0, 0]
    if not np.array_equal(rows[:, None] + columns[None, :], numbers):
        return None
    return WrittenBy(tuple(int(n) for n in rows), tuple(int(n) for n in columns), warp)


def _numbers(threads: WrittenBy) -> Any:
    return np.add.outer(np.array(threads.rows), np.array(threads.columns))
