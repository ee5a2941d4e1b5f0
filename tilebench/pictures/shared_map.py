"""Shared memory over the time of a block: which buffer has which bytes from where to where in the program.

The same placement as the compiler's (`passes/threaded/map_shared.py`), of the function that it places; also
of a kernel that takes too much, to show what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..compiler import Compilation
from ..ir import Function, Stmt
from ..language.memory import AllocShared
from ..machine import Machine
from ..passes.analysis.launches import parts_of
from ..passes.analysis.lives import Lives
from ..passes.context import Context
from ..passes.threaded.map_shared import Life, map_shared, place
from .tile_layouts import line_of


@dataclass(frozen=True)
class SharedSpan:
    """A buffer in shared memory: its bytes from `offset` on, and the statements (by number) that it lives in.

    `bytes` are those of all `versions` of a ring, `stage_bytes` of one. `line` is where it is made,
    `first_line` and `last_line` where it is first and last used, of the user's file (0: not known).
    """

    name: str
    dtype: str
    line: int
    offset: int
    bytes: int
    stage_bytes: int
    versions: int
    first: int
    last: int
    first_line: int
    last_line: int


@dataclass(frozen=True)
class SharedMap:
    """All buffers of a launch, the largest first as they are placed.

    `total` is what a block takes in bytes, `limit` what it may take, `per_unit` what a multiprocessor has, of
    which `reserved` go to each block. `lines` has the user's line of each statement number from 0 on.
    `stages` is the most stages of its rings that fit, None without a ring.
    """

    spans: tuple[SharedSpan, ...]
    total: int
    limit: int
    per_unit: int
    reserved: int
    lines: tuple[int, ...]
    stages: int | None

    @property
    def fits(self) -> bool:
        return self.total <= self.limit

    @property
    def without_reuse(self) -> int:
        """The bytes of all buffers if none took another's place."""
        return sum(span.bytes for span in self.spans)

    def shares(self, span: SharedSpan) -> tuple[str, ...]:
        """The names of buffers that have bytes of a span at another time."""
        end = span.offset + span.bytes
        return tuple(
            other.name
            for other in self.spans
            if other is not span and other.offset < end and span.offset < other.offset + other.bytes
        )


class _LivesAndLines(Lives[AllocShared, Life]):
    """The lives, with the line of each statement."""

    def __init__(self) -> None:
        super().__init__(AllocShared, Life)
        self.lines: list[int] = [0]

    def statement(self, stmt: Stmt) -> None:
        # A loop's end has a number of its own.
        self.lines += [self.lines[-1]] * (self.now + 1 - len(self.lines)) + [line_of(stmt)]
        super().statement(stmt)


def placed_functions(compilation: Compilation) -> tuple[Function, ...]:
    """The function of each launch as `map_shared` gets it; none on a road without that pass.

    Raises the `TileError` of a pass that refuses the kernel in front of it.
    """
    for row in compilation.rows:
        names = [name for name, _ in row.passes]
        if map_shared.__name__ in names:
            before = compilation.rows[compilation.rows.index(row) - 1].name
            if before not in compilation.functions:
                compilation.reach(before)
            scratch = Context(compilation.machine, compilation.schedule)
            parts: list[Function] = []
            for part in parts_of(compilation.functions[before]):
                for _, run in row.passes[: names.index(map_shared.__name__)]:
                    part = run(part, scratch)
                parts.append(part)
            return tuple(parts)
    return ()


def shared_map(function: Function, machine: Machine) -> SharedMap:
    """The map of one launch, of the function that `placed_functions` gives."""
    walk = _LivesAndLines()
    named = walk.of(function)
    lives = list(named.values())
    total = place(lives)
    lines = (*walk.lines, *[walk.lines[-1]] * (walk.now + 1 - len(walk.lines)))
    level = machine.shared
    return SharedMap(
        tuple(_span(life, lines) for life in sorted(lives, key=lambda life: -life.bytes)),
        total, level.per_block, level.per_unit, level.reserved, lines, most_stages(lives, level.per_block),
    )  # fmt: skip


def _span(life: Life, lines: tuple[int, ...]) -> SharedSpan:
    buffer = life.alloc.buffer
    return SharedSpan(
        buffer.name, buffer.dtype.name, line_of(life.alloc), life.offset, life.bytes, life.stage_bytes,
        life.alloc.versions, life.first, life.last, lines[life.first], lines[life.last],
    )  # fmt: skip


def most_stages(lives: Sequence[Life], limit: int) -> int | None:
    """The most versions of all rings with which the buffers are still placed in `limit` bytes; None: no ring.

    Placed again for each number, since rings and what takes their place later move together. 0 where not even
    one fits.
    """
    rings = [life for life in lives if life.alloc.versions > 1]
    if not rings:
        return None
    # No more than of the largest alone; from there down, since the first tries are nearly always it.
    for stages in range(limit // max(1, *(life.stage_bytes for life in rings)), 0, -1):
        if sum(life.stage_bytes for life in rings) * stages > limit and _live_together(rings):
            continue
        again = [
            replace(life, alloc=life.alloc.but(versions=stages)) if life.alloc.versions > 1 else replace(life)
            for life in lives
        ]
        if place(again) <= limit:
            return stages
    return 0


def _live_together(rings: list[Life]) -> bool:
    return all(one.meets(other) for one in rings for other in rings)
