"""The pattern of wrong elements in words, where there is one: a set of rows and columns, tiles, or threads.

A pattern is said where the elements that it names are wrong and no others are, up to a share: a wrong kernel
is right here and there by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

# So much of what a pattern names has to be wrong, and so much of what is wrong has to be named by it.
FILLED, COVERED = 0.9, 0.98
# A period that is seen fewer times is none.
TIMES = 3
FEW = 3


@dataclass(frozen=True)
class Board:
    """Which elements of a plane are wrong, the tile of a block ((0, 0): not known), the threads of it."""

    wrong: Any
    tile: tuple[int, int] = (0, 0)
    threads: Any = None
    warp: int = 32


def patterns_of(board: Board) -> list[str]:
    """What is wrong, in words; several where several say the same elements."""
    wrong = board.wrong
    count = int(np.count_nonzero(wrong))
    if count <= 1:
        return ["one element by itself"] * count
    if count >= FILLED * wrong.size:
        return ["every element" if count == wrong.size else "nearly every element"]
    found = [*_of_tiles(board), *_in_tiles(board), *_of_array(wrong, board.tile), *_diagonal(wrong)]
    if found:
        return list(dict.fromkeys(found))
    where = f" in {_touched(board)}" if board.tile[0] else ""
    return [f"{count} elements by themselves{where}"]


def _matches(wrong: Any, named: Any) -> bool:
    """Whether the elements that a pattern names are those that are wrong."""
    both = np.count_nonzero(wrong & named)
    return bool(both >= FILLED * np.count_nonzero(named) and both >= COVERED * np.count_nonzero(wrong))


def _of_array(wrong: Any, tile: tuple[int, int]) -> list[str]:
    """Rows by columns of the array."""
    rows, columns = _lines(wrong, 1), _lines(wrong, 0)
    for these, those in ((np.ones_like(rows), columns), (rows, np.ones_like(columns)), (rows, columns)):
        if _matches(wrong, np.logical_and.outer(these, those)):
            return _said(_set(these, "row", tile[0]), _set(those, "column", tile[1]))
    return []


def _lines(wrong: Any, axis: int) -> Any:
    """The rows (or columns) with as many wrong elements as the fullest, roughly."""
    counts = np.count_nonzero(wrong, axis=axis)
    return counts > counts.max() / 2


def _said(rows: str | None, columns: str | None) -> list[str]:
    """Both sets in one phrase; an empty one is all of them, None one without a rule."""
    if rows is None or columns is None or not (rows or columns):
        return []
    return [rows or columns] if not (rows and columns) else [f"{columns} in {rows}"]


def _set(chosen: Any, word: str, tile: int = 0, of: str = "") -> str | None:
    """Which lines: nothing for all, None where they follow no rule."""
    places = np.flatnonzero(chosen)
    total = len(chosen)
    if len(places) == total:
        return ""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == len(places):
        return _run(first, last, total, word, tile, of)
    steps = np.diff(places)
    step = int(steps[0])
    if np.all(steps == step) and len(places) >= TIMES and first < step and last + step >= total:
        return f"every {_ordinal(step)} {word}{of}, from {word} {first} on"
    return None


def _run(first: int, last: int, total: int, word: str, tile: int, of: str) -> str:
    count = last - first + 1
    if tile > 1 and not of and first % tile == 0 and count == tile:
        return f"one {word} of blocks, number {first // tile}"
    if last == total - 1:
        return f"the last {word}{of}" if count == 1 else f"the last {count} {word}s{of}"
    if first == 0:
        return f"the first {word}{of}" if count == 1 else f"the first {count} {word}s{of}"
    return f"{word} {first}{of}" if count == 1 else f"{word}s {first} to {last}{of}"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number // 10 % 10 != 1 else "th"
    return f"{number}{ending}"


def _shares(board: Board) -> Any:
    """The share of each tile that is wrong; those at the edges are smaller."""
    (height, width), shape = board.tile, board.wrong.shape
    tops, lefts = range(0, shape[0], height), range(0, shape[1], width)
    sums = np.add.reduceat(np.add.reduceat(board.wrong.astype(np.int64), tops, axis=0), lefts, axis=1)
    sizes = np.outer(np.diff([*tops, shape[0]]), np.diff([*lefts, shape[1]]))
    return sums / sizes


def _of_tiles(board: Board) -> list[str]:
    """Whole tiles, each of one block."""
    if not board.tile[0]:
        return []
    shares = _shares(board)
    full = shares >= FILLED
    if full.size < 2 or not full.any() or np.sum(shares[full]) < COVERED * np.sum(shares):
        return []
    if np.count_nonzero(full) == 1:
        row, column = (int(k) for k in np.argwhere(full)[0])
        return [f"one whole block, row {row} and column {column} of the blocks"]
    rows, columns = full.any(1), full.any(0)
    said = ""
    if np.array_equal(np.logical_and.outer(rows, columns), full):
        sets = _said(_set(rows, "row", of=" of blocks"), _set(columns, "column", of=" of blocks"))
        said = f": {sets[0]}" if sets else ""
    return [f"{np.count_nonzero(full)} of {full.size} whole blocks{said}"]


def _folded(board: Board) -> Any | None:
    """How often each place of a tile is wrong, of the tiles that have it and anything wrong."""
    (height, width), shape = board.tile, board.wrong.shape
    rows, columns = -(-shape[0] // height), -(-shape[1] // width)
    if rows * columns < 2:
        return None
    wide = np.zeros((rows * height, columns * width), np.bool_)
    there = wide.copy()
    wide[: shape[0], : shape[1]] = board.wrong
    there[: shape[0], : shape[1]] = True
    parts, inside = (each.reshape(rows, height, columns, width) for each in (wide, there))
    some = parts.any(axis=(1, 3), keepdims=True)
    if np.count_nonzero(some) < 2:
        return None  # of one tile nothing repeats
    counts = (inside & some).sum(axis=(0, 2))
    return parts.sum(axis=(0, 2)) / np.maximum(counts, 1)


def _in_tiles(board: Board) -> list[str]:
    """The same places of every tile that has anything wrong: rows and columns, or what threads wrote."""
    share = _folded(board) if board.tile[0] else None
    if share is None:
        return _of_threads(board.wrong, board, "") if board.threads is not None else []
    named = share > 0.5
    if not named.any() or named.all() or np.any((share > 1 - FILLED) & (share < FILLED)):
        return []
    rows, columns = named.any(1), named.any(0)
    found: list[str] = []
    if np.array_equal(np.logical_and.outer(rows, columns), named):
        sets = _said(_set(rows, "row", of=" of each tile"), _set(columns, "column", of=" of each tile"))
        found += sets
    return [*found, *_of_threads(named, board, " of each block")]


def _of_threads(named: Any, board: Board, of: str) -> list[str]:
    """What some warps, or some lanes of all, wrote of a tile."""
    threads = board.threads
    if threads is None or threads.shape[0] < named.shape[0] or threads.shape[1] < named.shape[1]:
        return []
    threads = threads[: named.shape[0], : named.shape[1]]
    for numbers, word in (
        (threads // board.warp, "warp"),
        (threads % board.warp, "lane"),
        (threads, "thread"),
    ):
        chosen = np.unique(numbers[named])
        if len(chosen) < len(np.unique(numbers)) and _matches(named, np.isin(numbers, chosen)):
            return [f"what {_listed(chosen, word)}{_of_all(word, of)} wrote"]
    return []


def _of_all(word: str, of: str) -> str:
    return " of each warp" if word == "lane" else of


def _listed(chosen: Any, word: str) -> str:
    numbers = [int(each) for each in chosen]
    if len(numbers) == 1:
        return f"{word} {numbers[0]}"
    if numbers[-1] - numbers[0] + 1 == len(numbers):
        return f"{word}s {numbers[0]} to {numbers[-1]}"
    if len(numbers) > 2 * FEW:
        step = numbers[1] - numbers[0]
        if all(b - a == step for a, b in pairwise(numbers)):
            return f"every {_ordinal(step)} {word} from {numbers[0]} on"
        return f"{len(numbers)} {word}s"
    return f"{word}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _diagonal(wrong: Any) -> list[str]:
    """What lies on one side of the diagonal."""
    if min(wrong.shape) < 4:
        return []
    rows, columns = (int(n) for n in wrong.shape)
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    sides: Sequence[tuple[Any, str]] = (
        (column == row, "the diagonal"), (column > row, "above the diagonal"),
        (column < row, "below the diagonal"), (column >= row, "the diagonal and above it"),
        (column <= row, "the diagonal and below it"),
    )  # fmt: skip
    return [words for named, words in sides if _matches(wrong, named)][:1]


def _touched(board: Board) -> str:
    shares = _shares(board)
    some = int(np.count_nonzero(shares))
    return f"{some} of {shares.size} blocks" if some > 1 else "one block"
