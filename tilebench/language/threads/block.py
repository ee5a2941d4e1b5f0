"""The threads of a block as a kernel numbers them, in one to three dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from ...ir import ZERO, Buffer, Expr, Var
from ..memory import AllocFragment
from ..tracing.builder import Builder

if TYPE_CHECKING:
    from ...errors import Place

# Threads of a block where a kernel that works with their numbers says nothing, as in TileLang.
USUAL = 128
_NAMES = ("tx", "ty", "tz")


@dataclass(eq=False)
class BlockThreads:
    """`shape` are the threads in each dimension, x first (empty: the kernel does not say).

    `numbers` are the numbers that the kernel has asked for, by dimension; `kept` the tiles of which each
    thread has a row, by name.
    """

    shape: tuple[int, ...] = ()
    numbers: dict[int, Var] = field(default_factory=dict[int, Var])
    kept: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    # The numbers of the block itself, x first.
    block: tuple[Var, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        """Threads in each dimension, x last, as loops and tiles count them."""
        return self.shape[::-1] or (USUAL,)

    @property
    def count(self) -> int:
        return prod(self.extents)

    def number(self, builder: Builder, axis: int) -> Var:
        """The number of a thread in a dimension, 0 for x."""
        if axis not in self.numbers:
            self.numbers[axis] = Var(builder.unique(_NAMES[axis]))
        return self.numbers[axis]

    def coordinates(self, builder: Builder) -> tuple[Var, ...]:
        """The numbers of a thread, x last."""
        return tuple(self.number(builder, axis) for axis in reversed(range(len(self.extents))))

    def linear(self, builder: Builder) -> Expr:
        """The number of a thread in its block; threads beside each other in x follow each other."""
        total: Expr = ZERO
        for var, extent in zip(self.coordinates(builder), self.extents, strict=True):
            total = total * extent + var
        return total

    def coordinates_of(self, number: Expr) -> tuple[Expr, ...]:
        """The numbers in each dimension, x last, of the thread with a number in its block."""
        found: list[Expr] = []
        for extent in self.extents[:0:-1]:
            found.append(number % extent)
            number = number // extent
        return (*[number], *reversed(found))

    def keep(self, name: str, like: Buffer, place: Place | None) -> AllocFragment:
        """The allocation of a tile in which each thread has what `like` is."""
        buffer = Buffer(name, (*self.extents, *like.extents), like.dtype, "fragment")
        self.kept[name] = buffer
        return AllocFragment(buffer, of_threads=True, place=place)


def block_of(builder: Builder) -> BlockThreads:
    """The threads of the kernel that is being traced."""
    if not builder.blocks:
        builder.blocks.append(BlockThreads())
    return builder.blocks[-1]
