"""Rows that go through several loops: each turn works on the last loop's row, and those after it.

`for i in ...: max of row i; exp of row i; store of row i` -> `for i in ...: max of row i + 2, exp of
row i + 1, store of row i`, in one loop over vectors. One after the other, the loops leave the way to
memory idle while they compute, and the processor while they read or store; side by side both go on.
Softmax over 16384 x 2048 went from 14.0 to 15.8 GB/s on one core, and from 8.9 to 11.2 on two that
shared their memory with others, where a copy had 7.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from ....ir import Const, Load, Stmt, Store, Var, const_of, effects_in, rewrite, substitute
from ....ir.expr import Expr
from ....language.structure import Serial
from ..loops.vectors import vectors_of_joined
from ..loops.words import Accumulate, PaddedRows, Prefetch, Vectors
from .touches import index_of, touches_buffer, written_in

# How far ahead of the reading of a row lines are asked for: 512 B to 8 KB were the same here.
_AHEAD_BYTES = 4096


@dataclass(frozen=True)
class Overlapped:
    """The statements in place of the loop, and how many rows a tile of one row now needs."""

    body: tuple[Stmt, ...]
    rows: int


def overlap_rows(loop: Serial, names: list[str]) -> Overlapped | None:
    """The loop over rows with its loops side by side; None where that is not possible or gains nothing.

    `names` are tiles of which each turn fills and reads one row, at index 0.
    """
    steps = [statement for statement in loop.body if isinstance(statement, Vectors)]
    single = _behind(loop)
    turns = const_of(loop.stop)
    if turns is None or const_of(loop.start) != 0 or const_of(loop.step) != 1 or single is None:
        return None
    if not 2 <= len(steps) <= 4 or turns < 2 * len(steps) or not _alike(steps):
        return None
    shared = written_in(loop.body) - set(names)
    if not all(_own(each, loop.vars[0], shared) for each in loop.body) or not _one_stream(steps):
        return None
    if any(_shares(store, steps, names) for stores in single for store in stores):
        return None
    rows = _rows(steps, names)
    return Overlapped(_Skewed(loop, steps, single, names, turns, rows).body(), rows)


def _behind(loop: Serial) -> list[list[Store]] | None:
    """The single elements stored behind each loop over vectors; None where there is anything else."""
    single: list[list[Store]] = []
    for statement in loop.body:
        if isinstance(statement, Vectors):
            single.append([])
        elif isinstance(statement, Store) and single:
            single[-1].append(statement)
        else:
            return None
    return single


def _shares(store: Store, steps: list[Vectors], names: list[str]) -> bool:
    """Whether a single store touches a row, or puts into an array what a loop touches."""
    touched = {effect.buffer.name for effect in effects_in(store)}
    outside = store.buffer.name if store.buffer.scope == "global" else None
    used = {effect.buffer.name for step in steps for effect in effects_in(step)}
    return bool(touched & set(names)) or outside in used


def _rows(steps: list[Vectors], names: list[str]) -> int:
    """Rows of a tile in use at a time: from the loop that fills one to the last that reads it.

    A power of two, so that the row's place is a mask and not a division.
    """
    most = 1
    for name in names:
        using = [s for s, step in enumerate(steps) if any(True for _ in touches_buffer(step, name))]
        most = max(most, max(using, default=0) - min(using, default=0) + 1)
    return 1 << (most - 1).bit_length()


def _alike(steps: list[Vectors]) -> bool:
    """Whether the loops go over the same elements, a vector at a time, without more loops or tests."""
    first = steps[0]
    plain = all(isinstance(each, (Store, Accumulate, Prefetch)) for step in steps for each in step.body)
    same = all((step.stop, step.lanes) == (first.stop, first.lanes) for step in steps)
    return plain and same and first.lanes > 1 and all(const_of(step.start) == 0 for step in steps)


def _one_stream(steps: list[Vectors]) -> bool:
    """Whether the last loop alone stores to arrays, past the caches, and none of these is read."""
    stored = [each.buffer.name for step in steps for each in step.body if _is_output(each)]
    last = [each for each in steps[-1].body if _is_output(each)]
    touched = {name for step in steps for name in _touched_without_stores(step)}
    return steps[-1].streaming and len(stored) == len(last) == 1 and stored[0] not in touched


def _touched_without_stores(step: Vectors) -> set[str]:
    return {effect.buffer.name for effect in effects_in(step) if not isinstance(effect.node, Store)}


def _is_output(statement: Stmt) -> TypeGuard[Store]:
    return isinstance(statement, Store) and statement.buffer.scope == "global"


def _own(step: Stmt, row: Var, shared: set[str]) -> bool:
    """Whether the tiles that the turns write are touched at the turn's own row or element."""
    for effect in effects_in(step):
        if effect.buffer.name in shared and effect.buffer.scope != "global":
            index = index_of(effect)
            if not index or index[0] != row:
                return False
    return True


class _Skewed:
    """Writes the turns: loop s works on row t + (count - 1 - s) in turn t.

    `single[s]` are the single stores behind loop s: they come at the end of its turn.
    """

    def __init__(
        self, loop: Serial, steps: list[Vectors], single: list[list[Store]], names: list[str], turns: int,
        rows: int,
    ) -> None:  # fmt: skip
        self.loop, self.row, self.turns = loop, loop.vars[0], turns
        self.names, self.rows, self.single = names, rows, single
        # Those of the last loop are for its own row, a little ahead: they stay.
        hints = [each for step in steps[:-1] for each in step.body if isinstance(each, Prefetch)]
        self.hint = hints[0] if hints else None
        self.column = next((step.vars[0] for step in steps if self.hint in step.body), steps[0].vars[0])
        self.steps = [step.but(body=tuple(each for each in step.body if each not in hints)) for step in steps]

    def body(self) -> tuple[Stmt, ...]:
        """Turns that fill the line, the loop, turns that empty it and bring the next block's rows near."""
        late = len(self.steps) - 1
        head = [each for t in range(-late, 0) for each in self.turn(Const(t), range(t + late + 1))]
        middle = self.loop.but(stop=self.loop.stop - late, body=self.turn(self.row, range(late + 1)))
        tail: list[Stmt] = []
        for t in range(late):
            tail += self.turn(Const(self.turns - late + t), range(t + 1, late + 1), ahead=self.turns + t)
        return (*head, middle, *tail)

    def turn(self, row: Expr, which: range, ahead: int | None = None) -> tuple[Stmt, ...]:
        """One turn of the loops in `which`; `row` is the last loop's."""
        count, var = len(self.steps), self.steps[which[0]].vars[0]
        body: list[Stmt] = []
        for s in which:
            here = row + (count - 1 - s)
            renamed: dict[str, Expr] = {self.row.name: here, self.steps[s].vars[0].name: var}
            body += [self.in_ring(substitute(each, renamed), here) for each in self.steps[s].body]
            if s == 0:
                body += self.hinted(here, var, self.distance())
        if ahead is not None:
            body = [*self.hinted(Const(ahead), var, 0), *body]
        last = self.steps[which[-1]]
        unroll = vectors_of_joined([self.steps[s] for s in which])
        loop = Vectors(
            last.stop, (var,), tuple(body), lanes=last.lanes, unroll=unroll, streaming=last.streaming,
            place=last.place,
        )  # fmt: skip
        rows = {s: row + (count - 1 - s) for s in which}
        return loop, *(substitute(store, {self.row.name: rows[s]}) for s in which for store in self.single[s])

    def hinted(self, row: Expr, var: Var, distance: int) -> list[Stmt]:
        """The request for a line of a row, made for the row after the one it stood in."""
        if self.hint is None:
            return []
        return [substitute(self.hint, {self.row.name: row - 1, self.column.name: var + distance})]

    def distance(self) -> int:
        """How many elements ahead of the reading a line is asked for."""
        return self.hint.src.buffer.dtype.elements_in(_AHEAD_BYTES) if self.hint is not None else 0

    def in_ring(self, statement: Any, row: Expr) -> Any:
        """The statement with tiles of one row as rings of as many rows as there are loops."""
        fixed, count = const_of(row), self.rows
        where = Const(fixed % count) if fixed is not None else row % count

        def change(node: Any) -> Any:
            if isinstance(node, (Load, Store)) and node.buffer.name in self.names:
                ring = replace(node.buffer, shape=(count, *node.buffer.shape[1:]))
                return node.but(buffer=ring, index=(where, *node.index[1:]))
            return node

        return rewrite(statement, change)


def ring_layout(layout: PaddedRows, columns: int, rows: int, size: int) -> PaddedRows:
    """Rows half a page apart, modulo a page: a load waits for a store that is a page away from it."""
    used = -(-columns * size // 64) * 64
    return PaddedRows((used + (2048 - used) % 4096) // size, rows) if rows > 1 else replace(layout, rows=1)
