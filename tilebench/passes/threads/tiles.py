"""What the code of one thread knows of tiles: where they lie, and which element a statement is at."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import Place
from ...ir import Buffer, Expr
from ...layout import Fragment, SharedLayout


class SharedTile(NamedTuple):
    """A shared buffer flattened to one dimension: `layout` within a version, versions in a row."""

    flat: Buffer
    layout: SharedLayout


class FragmentTile(NamedTuple):
    """The registers of one thread that hold its part of a fragment, versions in a row."""

    local: Buffer
    layout: Fragment


class Coordinates(NamedTuple):
    """Where an element is computed: the mapping, the names of its coordinates, the value digits.

    `digits[k]` is the expression of the k-th value digit of `map`, a loop variable or a constant.
    `place` is that of the statement which has the mapping.
    `shift` is (name, e): inside a vector the coordinate of that name is its base, the element `e` on.
    """

    map: Fragment | None = None
    vars: tuple[str, ...] = ()
    digits: tuple[Expr, ...] = ()
    shift: tuple[str, Expr] | None = None
    place: Place | None = None


# Code of the block, at no element of a tile.
NOWHERE = Coordinates()
