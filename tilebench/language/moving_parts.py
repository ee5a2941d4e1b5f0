"""Parts of buffers whose extents only the running kernel knows, filled and copied element by element.

`T.fill(A[lo:lo + n], 0)` is `for i in T.Parallel(n): A[lo + i] = 0`, and a copy between two such parts a loop
of the same kind. Every other word takes parts of constant extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import ShapeError
from ..ir import Arith, Expr, Load, Stmt, Store, Var, lift
from ..ir.arith import linear
from .swept import read_once, swept
from .tracing.builder import Builder
from .tracing.operands import part_of
from .tracing.promote import convert
from .tracing.stores import stored
from .tracing.values import BufferView, ElementRef, MovingRef

Size = int | Expr


class Box(NamedTuple):
    """Where a part starts, and its extents; None of a head address, which takes those of the other side."""

    view: BufferView
    start: tuple[Expr, ...]
    sizes: tuple[Size, ...] | None

    def element(self, steps: Sequence[Expr]) -> tuple[Expr, ...]:
        """The index of an element, by its distances from the start along the dimensions that are not 1."""
        rest = list(steps)
        sizes = self.sizes or ()
        return tuple(
            start if size == 1 else Arith("+", (start, rest.pop(0)))
            for start, size in zip(self.start, sizes, strict=True)
        )


def _box(given: Any, word: str) -> Box:
    if isinstance(given, MovingRef):
        given.view.check_scope()
        return Box(given.view, given.start, given.sizes)
    part = part_of(given, word)
    head = isinstance(given, ElementRef)
    return Box(part.view, part.region.start, None if head else part.extent or part.view.buffer.shape)


def _settled(builder: Builder, box: Box) -> Box:
    """The box as it is where the statement begins."""
    start = tuple(read_once(builder, each, f"{box.view.name}_start") for each in box.start)
    return box._replace(start=start)


def fill_moving(builder: Builder, word: str, part: MovingRef, value: Any) -> None:
    """Set every element of a part."""
    box = _box(part, word)
    box = _settled(builder, box)
    new = read_once(builder, stored(value, part.view.buffer.dtype), "value")

    def filled(steps: Sequence[Expr]) -> Stmt:
        return Store(box.view.buffer, box.element(steps), new)

    _sweep(builder, box, filled, None)


def copy_moving(builder: Builder, src: Any, dst: Any, width: int | None) -> None:
    """Move a part into another one, one of them of such extents. `ShapeError` where those differ."""
    source, target = _box(src, "T.copy"), _box(dst, "T.copy")
    if builder.memory_of(source.view.buffer) == builder.memory_of(target.view.buffer):
        raise ShapeError(
            "a copy within {name} of an extent that only the running kernel knows",
            name=builder.memory_of(source.view.buffer),
            hint="its sides may overlap: copy through a tile, or with T.serial",
        )  # fmt: skip
    source, target = _headed(source, target), _headed(target, source)
    source, target = _settled(builder, source), _settled(builder, target)
    _match(src, dst, source, target)
    dtype = target.view.buffer.dtype

    def moved(steps: Sequence[Expr]) -> Stmt:
        value = convert(Load(source.view.buffer, source.element(steps), place=builder.place), dtype)
        return Store(target.view.buffer, target.element(steps), value)

    _sweep(builder, target, moved, width)


def _headed(box: Box, other: Box) -> Box:
    """A head address with the extents of the other side, aligned to the right."""
    if box.sizes is not None or other.sizes is None:
        return box
    missing = box.view.ndim - len(other.sizes)
    sizes = (1,) * missing + other.sizes if missing >= 0 else other.sizes[-missing:]
    return box._replace(sizes=sizes)


def _long(box: Box) -> list[Size]:
    return [size for size in box.sizes or () if size != 1]


def _match(src: Any, dst: Any, source: Box, target: Box) -> None:
    a, b = _long(source), _long(target)
    for x, y in zip(a, b, strict=False):
        # A constant beside what is not known: the part that moves cannot be told to fit.
        if isinstance(x, int) != isinstance(y, int):
            raise (src if isinstance(src, MovingRef) and not isinstance(x, int) else dst).error
    if len(a) != len(b) or any(
        linear(lift(x) - lift(y)) != linear(lift(0)) for x, y in zip(a, b, strict=True)
    ):
        raise ShapeError(
            "the two sides of this copy have different extents", expected="the same extents on both sides",
            also=[(f"{each.view.name} is declared here", each.view.place) for each in (source, target)],
        )  # fmt: skip


def _sweep(builder: Builder, box: Box, statement: Any, width: int | None) -> None:
    """A loop over the extents of a part that are not 1, around a statement of the steps from its start."""
    sizes = _long(box)
    names = tuple(Var(builder.unique(f"{box.view.name}_{axis}")) for axis in range(len(sizes)))
    build = swept(builder, sizes, width)
    place = builder.place
    builder.emit(build(names, (statement(names).at(place),)).at(place))


__all__ = ["copy_moving", "fill_moving"]
