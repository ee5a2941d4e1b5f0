"""The two kinds of things that a traced kernel handles: one value, or the many of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


class SideBySide:
    """Several values side by side: a key of a buffer, or what is stored in a box of one."""

    __slots__ = ()

    def load(self, view: Any, key: Sequence[Any]) -> Any:
        raise NotImplementedError

    def store(self, view: Any, key: Sequence[Any], value: Any) -> None:
        raise NotImplementedError
