"""A loop over the terms of sums, shared out to several blocks: `for ko in T.Pipelined(64, split=4)`.

Where the output has fewer tiles than the card has multiprocessors, a product with a long inner dimension
keeps most of them idle. Each of `split` blocks of a tile takes its share of the loop's iterations and leaves
its sums in a workspace; a second launch adds the sums of a tile, in the order of the shares, and does what
stands behind the loop. Sums have another order than in one block, and the same in every run.

The loop stands in the kernel's own body. What it leaves behind is sums that start at zero and to which each
iteration adds: anything else that one iteration takes from another, or stores outside, keeps it whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...errors import ScheduleError
from ...ir import (
    ACCUMULATES,
    ONE,
    ZERO,
    AllocStmt,
    Arith,
    Buffer,
    Const,
    Expr,
    Function,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    effects_in,
    effects_of,
    map_bodies,
    substitute,
    whole,
)
from ...ir.dtypes import int32
from ...ir.effects import names_read_and_written, names_used, own_effects
from ...ir.expr import Call
from ...ir.names import Names
from ...ir.node import ADDRESSES
from ...ir.stmt import statements
from ...language.copy import Copy, Fill
from ...language.gemm import Gemm
from ...language.memory import AllocFragment, AllocGlobal, AllocVar
from ...language.reduce import Reduce
from ...language.structure import KernelLaunch, Parallel, Pipelined, Serial
from ..context import Context

NAME = "split_loops"
# Dimensions of a grid, of which the shares take one.
MOST_DIMENSIONS = 3


def split_loops(function: Function, context: Context) -> Function:
    """The function whose loops that are to be split have launches of their own, and one for the sums."""
    if not any(_is_split(part) for part in statements(function.body)):
        return function
    body: list[Stmt] = []
    names = Names(function)
    for part in function.body:
        if isinstance(part, KernelLaunch):
            body += _launches(part, names, context)
        else:
            body.append(part)
    return function.but(body=tuple(body))


def _is_split(statement: Stmt) -> bool:
    return isinstance(statement, (Pipelined, Serial)) and statement.split is not None


def _launches(launch: KernelLaunch, names: Names, context: Context) -> list[Stmt]:
    """What a launch becomes: itself, or the workspaces and launches of its split loop."""
    loops: list[Any] = [statement for statement in statements(launch.body) if _is_split(statement)]
    if not loops:
        return [launch]
    if len(loops) > 1:
        _refuse(loops[1], "another loop of the launch is split already")
    (loop,) = loops
    split = int(loop.split or 1)
    whole_loop = loop.but(split=None)
    turns = const_of(loop.stop - loop.start)
    if turns is not None and turns < split:
        context.remark(NAME, "note", f"the loop has {turns} iterations, for {split} blocks", loop)
        split = max(turns, 1)
    if split == 1:

        def step(statement: Stmt) -> Stmt:
            return whole_loop if statement is loop else map_bodies(statement, step)

        return [map_bodies(launch, step)]
    position = next((k for k, statement in enumerate(launch.body) if statement is loop), None)
    if position is None:
        _refuse(loop, "it stands inside another statement")
    return _Split(launch, position, split, names, context).launches()


class _Split:
    """One launch, whose statement number `position` is the loop."""

    def __init__(
        self, launch: KernelLaunch, position: int, split: int, names: Names, context: Context
    ) -> None:
        self.launch, self.split, self.names, self.context = launch, split, names, context
        self.before = launch.body[:position]
        self.loop: Any = launch.body[position]
        self.behind = launch.body[position + 1 :]

    def launches(self) -> list[Stmt]:
        self.check_shape()
        sums = self.sums()
        place = self.loop.place
        share = Var(self.names.fresh("share"), type=int32)
        spaces = {buffer.name: self.workspace(buffer) for buffer in sums}
        stored = [Copy(whole(b), self.part(spaces[b.name], b, share), place=place) for b in sums]
        first = self.launch.but(
            grid=(*self.launch.grid, self.split),
            vars=(*self.launch.vars, share),
            body=self.needed((self.share_of_loop(share), *stored)),
        )
        added = [statement for buffer in sums for statement in self.added(buffer, spaces[buffer.name])]
        # A producer brings the tiles of pipelined loops, and the one that there was is in the first launch.
        again = any(isinstance(part, Pipelined) for part in statements(self.behind))
        roles = self.launch.warp_specialize if again else None
        second = self.launch.but(body=self.needed((*added, *self.behind)), warp_specialize=roles)
        total = ", ".join(buffer.name for buffer in sums)
        self.context.remark(
            NAME, "applied", f"{self.split} blocks of each tile take a share of the loop; "
            f"the sums in {total} are added in a second launch", self.loop, blocks=self.split,
        )  # fmt: skip
        allocated = [AllocGlobal(space, place=place) for space in spaces.values()]
        return [*allocated, first, second]

    # -- what can be split
    def check_shape(self) -> None:
        loop = self.loop
        if len(self.launch.grid) >= MOST_DIMENSIONS:
            _refuse(loop, f"the grid has {MOST_DIMENSIONS} dimensions already")
        if loop.condition is not None:
            _refuse(loop, "it may end before its last iteration")
        if isinstance(loop, Serial) and loop.step != ONE:
            _refuse(loop, "it does not count by one")
        for effect in (effect for statement in self.before for effect in effects_in(statement)):
            if effect.writes and effect.buffer.scope == "global":
                _refuse(loop, f"{effect.buffer.name} is stored in front of it, which two launches would do")

    def sums(self) -> list[Buffer]:
        """The fragments to which the loop adds. Raises `ScheduleError` for anything else that it changes."""
        added: dict[str, Buffer] = {}
        other: dict[str, Buffer] = {}
        for statement in statements(self.loop.body):
            adds = _added_to(statement)
            for effect in own_effects(statement):
                if effect.kind == ADDRESSES or effect.buffer is adds:
                    continue
                if effect.writes or effect.buffer.name in added:
                    other[effect.buffer.name] = effect.buffer
            if adds is not None:
                added[adds.name] = adds
        read = {e.buffer.name for s in statements(self.loop.body) for e in own_effects(s) if e.reads}
        for name in [name for name in added if name in other or not self.starts_at_zero(name)]:
            other[name] = added.pop(name)
        self.check_others(other, read)
        if not added:
            _refuse(self.loop, "it adds to no fragment")
        return list(added.values())

    def check_others(self, other: dict[str, Buffer], read: set[str]) -> None:
        """What the loop changes and does not only add to belongs to one iteration."""
        later = names_used(self.behind)
        earlier = names_read_and_written(self.before)[1]
        earlier |= {s.buffer.name for s in self.before if isinstance(s, AllocVar) and s.init is not None}
        for name, buffer in other.items():
            if buffer.scope == "global":
                _refuse(self.loop, f"it stores to {name}")
            if name in later:
                _refuse(self.loop, f"{name} is used behind it, and is no sum that starts at zero")
            if name in earlier and name in read:
                _refuse(
                    self.loop,
                    f"{name} goes from one iteration to the next, and is no sum that starts at zero",
                )

    def starts_at_zero(self, name: str) -> bool:
        """Whether the last thing that happens to a fragment in front of the loop is that it is cleared."""
        last: Stmt | None = None
        for statement in self.before:
            if not isinstance(statement, AllocStmt) and any(
                e.writes and e.buffer.name == name for e in effects_in(statement)
            ):
                last = statement
        cleared = isinstance(last, Fill) and last.dst.is_whole and isinstance(last.value, Const)
        return cleared and last.value.value == 0  # type: ignore[union-attr]

    # -- the parts
    def share_of_loop(self, share: Var) -> Stmt:
        """The loop of one share: as many iterations as any other, or one more."""
        loop = self.loop
        turns = loop.stop - loop.start
        each, more = turns // self.split, turns % self.split
        if const_of(more) == 0:
            first, count = share * each, each
        else:
            first = share * each + Call("min", (share, more), type=int32)
            count = each + Call("if_then_else", (share.compare("<", more), ONE, ZERO), type=int32)
        var = loop.vars[0]
        body = tuple(substitute(s, {var.name: loop.start + first + var}) for s in loop.body)
        return loop.but(stop=count, start=ZERO, body=body, split=None)

    def workspace(self, buffer: Buffer) -> Buffer:
        """Sums of all shares and blocks, a tile after another."""
        shape = (self.split, *self.launch.grid, *buffer.shape)
        return Buffer(self.names.fresh(f"{buffer.name}_parts"), shape, buffer.dtype, "global")

    def part(self, space: Buffer, buffer: Buffer, share: Expr) -> Region:
        rank = len(self.launch.grid) + 1
        start = (share, *self.launch.vars, *(ZERO,) * buffer.rank)
        return Region(space, start, extent=(*(1,) * rank, *buffer.extents))

    def added(self, buffer: Buffer, space: Buffer) -> list[Stmt]:
        """The sums of all shares, in their order."""
        place = self.loop.place
        share = Var(self.names.fresh("share"), type=int32)
        part = Buffer(self.names.fresh(f"{buffer.name}_part"), buffer.shape, buffer.dtype, "fragment")
        index = tuple(Var(self.names.fresh(name), type=int32) for name in "ijkl"[: buffer.rank])
        total = Arith("+", (Load(buffer, index), Load(part, index)))
        add = Parallel(buffer.extents, index, (Store(buffer, index, total, place=place),), place=place)
        copy = Copy(self.part(space, buffer, share), whole(part), place=place)
        loop = Serial(Const(self.split), (share,), (copy, add), place=place)
        return [AllocFragment(part, place=place), loop]

    def needed(self, tail: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements, with those of what stands in front of the loop that they need."""
        used = names_used(tail)
        kept: list[Stmt] = []
        for statement in reversed(self.before):
            if isinstance(statement, Let):
                wanted = statement.var.name in used
            else:
                touched = [e for e in effects_in(statement) if e.kind != ADDRESSES]
                written = {e.buffer.name for e in touched if e.writes}
                if isinstance(statement, AllocStmt):
                    written = {statement.buffer.name}
                wanted = bool(written & used) if written else names_used([statement]) <= used
            if wanted:
                kept.append(statement)
                used |= names_used([statement])
        return (*reversed(kept), *tail)


def _refuse(loop: Any, why: str) -> NoReturn:
    raise ScheduleError(
        "the loop {name} cannot be split over blocks: {why}", at=loop.place, name=loop.vars[0].name, why=why,
        hint="what its iterations share must be fragments that start at zero and are added to, as by T.gemm",
    )  # fmt: skip


def _added_to(statement: Stmt) -> Buffer | None:
    """The fragment that a statement adds to and does nothing else with."""
    target: Buffer | None = None
    if isinstance(statement, Gemm) and _accumulates(statement, "c"):
        target = statement.c.buffer
    elif (
        isinstance(statement, Reduce)
        and statement.kind in ("sum", "abssum")
        and _accumulates(statement, "dst")
    ):
        target = statement.dst.buffer
    elif isinstance(statement, Store) and statement.plain and isinstance(statement.value, Arith):
        own = Load(statement.buffer, statement.index)
        if statement.value.op == "+" and sum(term == own for term in statement.value.args) == 1:
            target = statement.buffer
    if target is None or target.scope != "fragment":
        return None
    again = 1 if isinstance(statement, Store) else 0
    reads = [e for e in effects_in(statement) if e.buffer.name == target.name and e.kind == "reads"]
    return target if len(reads) == again else None


def _accumulates(statement: Stmt, field: str) -> bool:
    return any(effect.kind == ACCUMULATES and effect.field == field for effect in effects_of(statement))


__all__ = ["split_loops"]
