"""What statements of `loops` do to memory, element by element or row by row, as their marks say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....ir import Effect, Expr, Load, Node, Stmt, Store, effects_in
from ....ir.effects import ADDRESSES


@dataclass(frozen=True)
class Touch:
    """One touch of a buffer: at an index (of a row's first element, for a row), or all over it (None)."""

    buffer: str
    index: tuple[Expr, ...] | None
    writes: bool


def touches(statements: Iterable[Stmt]) -> Iterator[Touch]:
    """The touches of statements and all they hold; a prefetch changes nothing and may be anywhere."""
    for effect in (effect for statement in statements for effect in effects_in(statement)):
        if effect.kind != ADDRESSES:
            yield Touch(effect.buffer.name, index_of(effect), effect.writes)


def index_of(effect: Effect) -> tuple[Expr, ...] | None:
    """Where an effect is: of an element, or of a box one row high. None for a box of several rows."""
    region = effect.region
    if region is None:
        return effect.node.index if isinstance(effect.node, (Load, Store)) else None
    # In `loops` a region without extents is one element.
    return region.start if region.extent is None or region.extent[0] == 1 else None


def touches_buffer(node: Node, name: str) -> Iterator[Effect]:
    """The effects on a buffer, prefetches among them."""
    return (effect for effect in effects_in(node) if effect.buffer.name == name)


def written_in(statements: Iterable[Stmt]) -> set[str]:
    """The names of the buffers that statements write."""
    return {touch.buffer for touch in touches(statements) if touch.writes}


def read_in(node: Node) -> set[str]:
    """The names of the buffers that a node reads."""
    return {effect.buffer.name for effect in effects_in(node) if effect.reads}
