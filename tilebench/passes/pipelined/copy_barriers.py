"""Barriers of copies in boxes: where they are made, which phase a filling has, and who waits for it.

A ring has a barrier for each version of its tiles, which all copies of a step complete on. Its phases go on
through all runs of its loop, so that the version and the parity of a step follow from how many steps were
before: `(t * n + ko) % 3` and `(t * n + ko) // 3 % 2`. Where the loops around do not say it, it is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from ...errors import IRError
from ...ir import ZERO, Buffer, Expr, Load, Region, Stmt, Store, int32
from ...ir.arith import Linear, linear
from ...ir.dtypes import uint64
from ...ir.names import Names
from ...language.copy import Copy
from ...language.lowered.clusters import SyncCluster
from ...language.lowered.copy_barriers import ExpectCopies, OpenBarriers, ReleaseTiles
from ...language.lowered.mbarriers import MbarrierWait
from ...language.lowered.threads import SyncThreads
from ...language.memory import AllocShared, AllocVar
from ...layout import SharedLayout
from .turns import turns_before


@dataclass(frozen=True)
class Filling:
    """The barriers of the tiles that one statement or ring fills, `versions` of them.

    `before` are the fillings that came before the first of this run; `counter` what counts those of all runs,
    where they have to be counted.
    """

    barrier: Buffer
    versions: int
    before: Expr
    counter: Buffer | None
    # The barriers on which those who read the tiles arrive, where others fill them.
    empty: Buffer | None = None
    # Blocks of a cluster that fill the tiles together, and wait for the readers of all; 0: one does alone.
    blocks: int = 0

    def number(self, step: Expr) -> Expr:
        """The number of a step's filling, of all that there are."""
        return self.before + step

    def version(self, step: Expr) -> Expr:
        """The version of the tiles that a step has."""
        return self._modulo(step, self.versions) % self.versions if self.versions > 1 else ZERO

    def parity(self, step: Expr) -> Expr:
        """The parity of the phase that brings them."""
        return self._parity_of(self._modulo(step, 2 * self.versions))

    def _parity_of(self, number: Expr) -> Expr:
        """Of the phase of a filling: a remainder that is counted, where it is no bit of its number."""
        if self.versions & (self.versions - 1):
            return number % (2 * self.versions) // self.versions
        return number // self.versions % 2

    def _modulo(self, step: Expr, times: int) -> Expr:
        """The number of a step's filling without what is a multiple of `times`: `wave * 64 + ko` -> `ko`."""
        form = linear(self.number(step))
        return Linear(
            tuple((term, by) for term, by in form.terms if by % times), form.constant % times
        ).expr()

    def region(self, step: Expr, barrier: Buffer | None = None) -> Region:
        return Region(barrier or self.barrier, (ZERO,), extent=(1,), version=self.version(step))

    def released(self, step: Expr, place: Any, *, relaxed: bool) -> Stmt:
        """What stands behind the last use of a step's tiles; `relaxed` where no thread itself reads them."""
        assert self.empty is not None
        relaxed = relaxed and self.blocks > 0
        return ReleaseTiles(self.region(step, self.empty), blocks=self.blocks, relaxed=relaxed, place=place)

    def await_release(self, step: Expr, place: Any) -> Stmt:
        """What stands in front of a filling: the first of each version waits for nobody."""
        assert self.empty is not None
        parity = self._parity_of(self._modulo(step + self.versions, 2 * self.versions))
        return MbarrierWait(self.region(step, self.empty), parity, place=place)

    def issued(self, copies: Sequence[Copy], step: Expr) -> tuple[Stmt, ...]:
        """The copies of a step on its barrier, which is told of their bytes first."""
        size = sum(copy.dst.buffer.bytes for copy in copies)
        place = copies[0].place
        for copy in copies:
            if copy.by is not None and copy.by.blocks not in (0, self.blocks):
                raise IRError(
                    "{tile} comes from {count} blocks, which would not wait for each other's readers",
                    at=copy.place, tile=copy.dst.buffer.name, count=copy.by.blocks,
                    hint="a producer's loop alone has tiles of several blocks: leave blocks= out",
                )  # fmt: skip
        expect = ExpectCopies(self.region(step), bytes=size, place=place)
        return expect, *(copy.but(barrier=self.region(step)) for copy in copies)

    def awaited(self, step: Expr, place: Any) -> Stmt:
        """What stands in front of the first use of a step's tiles."""
        return MbarrierWait(self.region(step), self.parity(step), place=place)

    def counted(self, steps: Expr, place: Any) -> tuple[Stmt, ...]:
        """Behind the run: so many fillings more have been."""
        if self.counter is None:
            return ()
        return (Store(self.counter, (), Load(self.counter, ()) + steps, place=place),)


@dataclass
class CopyBarriers:
    """The barriers of one function: they are made where the block begins, and stay to its end."""

    names: Names
    head: list[Stmt] = field(default_factory=list[Stmt])
    opened: list[Stmt] = field(default_factory=list[Stmt])
    # Whether blocks of a cluster come to each other's barriers.
    across_blocks: bool = False

    def filling(
        self, base: str, versions: int, path: Sequence[Stmt], steps: Expr, place: Any, readers: int = 0,
        blocks: int = 0,
    ) -> Filling:  # fmt: skip
        """The barriers of what stands in the statements of `path` and fills tiles `steps` times a run.

        With `readers` there are those on which so many warps arrive that have read a tile; where `blocks`
        blocks of a cluster fill the tiles together, those of each.
        """
        self.across_blocks = self.across_blocks or blocks > 0
        barrier = self._made(f"{base}_full", versions, 1, place)
        empty = self._made(f"{base}_empty", versions, readers * (blocks or 1), place) if readers else None
        turns = turns_before(path, steps)
        if turns is not None:
            return Filling(barrier, versions, turns * steps, None, empty, blocks)
        counter = Buffer(self.names.fresh(f"{base}_filled"), (), int32, "var")
        self.head.append(AllocVar(counter, init=ZERO, place=place))
        return Filling(barrier, versions, Load(counter, ()), counter, empty, blocks)

    def _made(self, name: str, versions: int, arrivals: int, place: Any) -> Buffer:
        barrier = Buffer(self.names.fresh(name), (1,), uint64, "shared")
        layout = SharedLayout((1,), (1,))
        self.head.append(AllocShared(barrier, layout=layout, versions=versions, place=place))
        whole = Region(barrier, (ZERO,), extent=(1,))
        self.opened.append(OpenBarriers(whole, arrivals=arrivals, place=place))
        return barrier

    def statements(self) -> tuple[Stmt, ...]:
        """What stands at the head of the block."""
        if not self.opened:
            return ()
        why, place = "barriers of copies are made", self.opened[0].place
        told: Stmt = SyncThreads(why=why, place=place)
        if self.across_blocks:
            told = SyncCluster(why=why, relaxed=True, place=place)
        return (*self.head, *self.opened, told)

    def at_the_end(self, place: Any) -> tuple[Stmt, ...]:
        """What stands at the end of the block."""
        if not self.across_blocks:
            return ()
        return (SyncCluster(why="others may still send to this block, or to its barriers", place=place),)


def issued_behind(body: Sequence[Stmt], number: int) -> list[Copy]:
    """The copies that follow the statement of that number at once, and complete on a barrier."""
    out: list[Copy] = []
    for statement in body[number + 1 :]:
        if not isinstance(statement, Copy) or statement.barrier is None:
            break
        out.append(statement)
    return out


def in_boxes(statement: Any) -> TypeGuard[Copy]:
    """Whether a copy goes in boxes."""
    return isinstance(statement, Copy) and statement.by is not None and bool(statement.by.box)
