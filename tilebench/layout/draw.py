"""Layouts as plain text: who holds what, and in which bank it lies."""

from __future__ import annotations

import numpy as np

from ..errors import LayoutError
from .fragment import Fragment
from .shared import SharedLayout


def _table(cells: list[list[str]]) -> str:
    width = max((len(cell) for row in cells for cell in row), default=0)
    return "\n".join(" ".join(cell.rjust(width) for cell in row) for row in cells)


def _two(extents: tuple[int, ...]) -> tuple[int, int]:
    if len(extents) not in (1, 2):
        raise LayoutError(
            "a tile of extents {extents} cannot be drawn on a plane", extents=extents,
            expected="one or two dimensions",
        )  # fmt: skip
    return (1, extents[0]) if len(extents) == 1 else (extents[0], extents[1])


def draw_fragment(fragment: Fragment, limit: tuple[int, int] = (32, 32)) -> str:
    """A grid of `thread:value` of each element's owner; ghosts are dots. At most `limit` cells."""
    rows, columns = (min(a, b) for a, b in zip(_two(fragment.padded), limit, strict=True))
    i, j = np.indices((rows, columns))
    thread, value = fragment.owner_of((j,) if len(fragment.extents) == 1 else (i, j))
    true = _two(fragment.extents)
    cells = [
        [
            f"{int(thread[r, c])}:{int(value[r, c])}" if r < true[0] and c < true[1] else "."
            for c in range(columns)
        ]
        for r in range(rows)
    ]
    return _table(cells)


def draw_banks(
    layout: SharedLayout, element_bits: int, banks: int, bank_bytes: int, limit: tuple[int, int] = (32, 32)
) -> str:
    """A grid of the bank in which each element begins. At most `limit` cells."""
    rows, columns = (min(a, b) for a, b in zip(_two(layout.extents), limit, strict=True))
    i, j = np.indices((rows, columns))
    place = layout.offset((j,) if len(layout.extents) == 1 else (i, j)) * element_bits // 8
    return _table([[str(int(bank)) for bank in row] for row in place // bank_bytes % banks])
