"""Behind `T.sync_grid()` a launch of the same blocks begins.

A barrier of the whole grid is the end of a launch, on every target: all that was written is seen behind it,
the grid may be of any size, and nothing waits for blocks that have not begun. What a block keeps on chip ends
there too: tiles and scalars of the block may be used again behind the barrier once they are written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import LanguageError
from ...ir import (
    AllocStmt,
    Const,
    Function,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    children,
    const_of,
    walk,
)
from ...ir.effects import effects_of, names_used
from ...ir.node import ADDRESSES
from ...ir.stmt import LoopStmt, WithStmt, statements
from ..grid_barriers import SyncGrid
from ..placement import AnnotatedLayout
from ..promises import SafeValue
from ..structure import KernelLaunch, Parallel, Serial, Unroll, Vectorized


def split_at_barriers(function: Function) -> Function:
    """The function with a launch of its own behind each `T.sync_grid()`.

    Raises `LanguageError` at the use of a value that a block would have to keep.
    """
    if not any(isinstance(part, SyncGrid) for part in statements(function.body)):
        return function
    body: list[Stmt] = []
    for part in function.body:
        body += _launches(part) if isinstance(part, KernelLaunch) else [part]
    return function.but(body=tuple(body))


def _launches(launch: KernelLaunch) -> list[Stmt]:
    """The launches that one with barriers becomes."""
    pieces: list[list[Stmt]] = [[]]
    barriers: list[Stmt] = []
    for statement in launch.body:
        if isinstance(statement, SyncGrid):
            barriers.append(statement)
            pieces.append([])
        else:
            pieces[-1].append(statement)
    # Where elements of an array lie, and what reads outside of it give, is said for the whole kernel.
    whole = [each for each in launch.body if isinstance(each, (AnnotatedLayout, SafeValue))]
    out: list[Stmt] = []
    before: list[Stmt] = []
    for number, piece in enumerate(pieces):
        own = [each for each in piece if each not in whole]
        again = _made_again(before, own)
        if number:
            known = {each.buffer.name: each.buffer.scope for each in again if isinstance(each, AllocStmt)}
            _Flow(known, barriers[number - 1]).body(own, frozenset())
        out.append(launch.but(body=(*whole, *again, *own)))
        before += own
    return out


def _made_again(before: Sequence[Stmt], piece: Sequence[Stmt]) -> list[Stmt]:
    """Allocations and names from in front of a barrier that statements behind it use."""
    used = names_used(piece)
    again: list[Stmt] = []
    for statement in reversed(before):
        if isinstance(statement, AllocStmt) and statement.buffer.name in used:
            again.append(statement)
            used |= names_used([statement])
        elif isinstance(statement, Let) and statement.var.name in used:
            if any(isinstance(part, Load) for part in walk(statement.value)):
                raise LanguageError(
                    "{name} holds a value from in front of T.sync_grid()", name=statement.var.name,
                    at=statement.place, hint="read it again behind the barrier",
                )  # fmt: skip
            again.append(statement)
            used |= names_used([statement])
    return again[::-1]


class _Flow:
    """Whether each buffer of earlier launches, `kept`, is written whole before its value is read."""

    def __init__(self, kept: Mapping[str, str], barrier: Stmt) -> None:
        self.kept, self.barrier = kept, barrier

    def body(self, body: Iterable[Stmt], written: frozenset[str], box: Any = None) -> frozenset[str]:
        """What is written behind these statements; `box` are the variables and extents of T.Parallel."""
        for statement in body:
            written = self.statement(statement, written, box)
        return written

    def statement(self, statement: Stmt, written: frozenset[str], box: Any) -> frozenset[str]:
        for part in children(statement):
            if not isinstance(part, Stmt):
                self.expressions(part, written)
        for effect in effects_of(statement):
            plain = effect.kind in ("writes", "works")
            if effect.kind == ADDRESSES or (plain and _is_whole(effect, box)):
                continue
            self.use(effect.buffer.name, written, statement)
        if isinstance(statement, If):
            both = self.body(statement.then, written, None) & self.body(statement.orelse, written, None)
            return written | both
        counted = _counted(statement)
        if counted and isinstance(statement, LoopStmt):
            return self.body(statement.body, written, (*(box or ()), *counted))
        if isinstance(statement, (LoopStmt, WithStmt)):
            after = self.body(statement.body, written, box if isinstance(statement, WithStmt) else None)
            if not isinstance(statement, WithStmt):
                return written
            # Threads outside a group have not written what is their own.
            return written | {name for name in after if self.kept.get(name) not in ("local", "var")}
        new = {e.buffer.name for e in effects_of(statement) if e.kind == "writes"}
        return written | new

    def expressions(self, root: Any, written: frozenset[str]) -> None:
        for part in walk(root):
            if isinstance(part, Load):
                self.use(part.buffer.name, written, part)

    def use(self, name: str, written: frozenset[str], at: Any) -> None:
        if name in self.kept and name not in written:
            raise LanguageError(
                "{name} would have to keep its value over T.sync_grid()", name=name, at=at.place,
                also=[("the barrier is here", self.barrier.place)],
                hint="a new launch begins at the barrier: write all of {name} again behind it,"
                " or keep the value in an array, which T.alloc_global makes",
            )  # fmt: skip


def _counted(statement: Stmt) -> tuple[tuple[Var, int], ...]:
    """The variables and extents of a loop that runs over numbers from 0 on, at least once.

    Of one that runs in order, only where each element that it stores is the one that it reads.
    """
    if isinstance(statement, Parallel):
        return tuple(zip(statement.vars, statement.extents, strict=True))
    if isinstance(statement, Vectorized):
        return ((statement.vars[0], statement.extent),) if statement.extent else ()
    if not isinstance(statement, (Serial, Unroll)):
        return ()
    first, last, step = (const_of(part) for part in (statement.start, statement.stop, statement.step))
    if first != 0 or step != 1 or not last or last < 1:
        return ()
    places: dict[str, set[str]] = {}
    for part in walk(statement):
        if isinstance(part, (Load, Store)):
            places.setdefault(part.buffer.name, set()).add(repr(part.index))
    stored = {part.buffer.name for part in walk(statement) if isinstance(part, Store)}
    return ((statement.vars[0], last),) if all(len(places[name]) == 1 for name in stored) else ()


def _is_whole(effect: Any, box: Any) -> bool:
    """Whether a write reaches every element of its buffer."""
    buffer, shape = effect.buffer, effect.buffer.shape
    region: Region | None = effect.region
    if region is not None:
        at_start = all(isinstance(k, Const) and k.value == 0 for k in region.start)
        return at_start and region.extent in (None, shape)
    store = effect.node
    if not isinstance(store, Store):
        return False
    if not buffer.rank:
        return True
    extents = {var.name: extent for var, extent in box or ()}
    # A dimension of one element is reached by 0.
    reached = [
        (part.name, extents.get(part.name))
        if isinstance(part, Var)
        else ("", 1 if const_of(part) == 0 else None)
        for part in store.index
    ]
    names = [name for name, _ in reached if name]
    return len(set(names)) == len(names) and tuple(extent for _, extent in reached) == shape
