"""The two kinds of things that a traced kernel handles: one value, or the many of a tile."""

from __future__ import annotations

from ...ir import Expr


class Scalar:
    """What stands for one value of a running kernel; `expr` computes it."""

    __slots__ = ()

    @property
    def expr(self) -> Expr:
        raise NotImplementedError


class Tile:
    """What stands for many elements of a buffer; `name` is the buffer's."""

    __slots__ = ()

    @property
    def name(self) -> str:
        raise NotImplementedError
