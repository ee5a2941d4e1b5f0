"""Clocks around what a block does: each load, wait, barrier, computation and store of a warp.

A launch that asks for it (`clocks=`) gets, around each of its statements on tiles, two reads of the cycle
counter and a row in the array of events. Barriers are statements by then, so waiting for others is told
apart. A card issues on until it needs what it waits for: where that is a product, the time is that of the
statement which needs it. The numbers of sites are told in remarks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir import Buffer, Const, Expr, Function, OpStmt, Region, Stmt, Store, effects_of, map_bodies, whole
from ...ir.dtypes import int32, int64
from ...ir.effects import effects_in
from ...ir.names import Names
from ...language.copy import Copy
from ...language.lowered.clocks import NoteClock, ReadClock
from ...language.lowered.threads import SyncThreads, SyncWarp
from ...language.lowered.tokens import Commit, Wait
from ...language.memory import AllocLocal
from ...language.structure import KernelLaunch, LoopStmt, Parallel
from ..context import Context

NAME = "insert_clocks"
# Registers of times: of a statement its begin and end; of the block its first cycle, when and where it is.
BEGAN, ENDED, SINCE, UNIT, FIRST = range(5)
LOAD, STORE, WAIT, BARRIER, COMPUTE = "load", "store", "wait", "barrier", "compute"


def insert_clocks(function: Function, context: Context) -> Function:
    """`T.gemm(...)` -> the same between `T.read_clock(...)` and `T.note_clock(...)`."""

    def step(node: Any) -> Any:
        if isinstance(node, KernelLaunch):
            return node if node.clocks is None else _timed(node, Names(function), context)
        return map_bodies(node, step)

    return step(function)


def _timed(launch: KernelLaunch, names: Names, context: Context) -> KernelLaunch:
    assert launch.clocks is not None  # asked by the caller
    ticks = Buffer(names.fresh("clock_ticks"), (5,), int64, "local")
    count = Buffer(names.fresh("clock_count"), (1,), int32, "local")
    row: Expr = Const(0)
    for var, blocks in reversed(list(zip(launch.vars, launch.grid, strict=True))):
        row = row * blocks + var
    clocks = _Clocks(launch.clocks, ticks, count, row, context)
    head: list[Stmt] = [
        AllocLocal(ticks), AllocLocal(count), Store(count, (Const(0),), Const(1)),
        clocks.read(UNIT, "unit"), clocks.read(SINCE, "nanoseconds"), clocks.read(FIRST),
    ]  # fmt: skip
    body = clocks.body(launch.body, Const(0))
    return launch.but(body=(*head, *body, clocks.read(ENDED), clocks.note(launch, 0, Const(0))), clocks=None)


@dataclass
class _Clocks:
    """One launch: its events, the registers of times and of how many were kept, and the sites so far."""

    events: Region
    ticks: Buffer
    count: Buffer
    row: Expr
    context: Context
    sites: list[str] = field(default_factory=list[str])

    def read(self, place: int, counter: str = "cycles") -> Stmt:
        return ReadClock(Region(self.ticks, (Const(place),), extent=(1,)), counter=counter)

    def note(self, stmt: Stmt, site: int, turn: Expr) -> Stmt:
        ticks, count = whole(self.ticks), whole(self.count)
        return NoteClock(self.events, ticks, count, self.row, turn, site=site, place=stmt.place)

    def body(self, body: tuple[Stmt, ...], turn: Expr) -> tuple[Stmt, ...]:
        return tuple(part for stmt in body for part in self.statement(stmt, turn))

    def statement(self, stmt: Stmt, turn: Expr) -> tuple[Stmt, ...]:
        """A statement between two reads of the clock; of a loop or branch those inside."""
        kind = _kind(stmt)
        if kind is None:
            if isinstance(stmt, LoopStmt) and stmt.vars:
                turn = stmt.vars[0]
            return (map_bodies(stmt, lambda part: self.statement(part, turn)),)
        site, said = len(self.sites) + 1, _said(stmt)
        self.sites.append(said)
        self.context.remark(NAME, "note", f"{kind}: {said}", stmt, site=site, does=kind, called=said)
        # A card reads its clock before it waits at a barrier, but not before it waits at a warp's.
        passed = (SyncWarp(place=stmt.place),) if kind == BARRIER else ()
        return self.read(BEGAN), stmt, *passed, self.read(ENDED), self.note(stmt, site, turn)


def _kind(stmt: Stmt) -> str | None:
    """What a statement does as a whole; None for one that is not timed, or is by its parts."""
    if isinstance(stmt, Wait):
        return WAIT
    if isinstance(stmt, SyncThreads):
        return BARRIER
    if not isinstance(stmt, (OpStmt, Parallel)) or isinstance(stmt, (Commit, SyncWarp, ReadClock, NoteClock)):
        return None
    effects = [effect for effect in effects_in(stmt) if effect.buffer.scope == "global"]
    if any(effect.writes for effect in effects):
        return STORE
    return LOAD if effects else COMPUTE


def _said(stmt: Stmt) -> str:
    match stmt:
        case Wait():
            return f"wait {stmt.token}"
        case SyncThreads():
            return "barrier"
        case Copy():
            return f"{stmt.src.buffer.name} -> {stmt.dst.buffer.name}"
        case Parallel():
            return "loop over " + ", ".join(var.name for var in stmt.vars)
        case OpStmt():
            written = [effect.buffer.name for effect in effects_of(stmt) if effect.writes]
            return " ".join([stmt.spelling(), *written[:1]])
        case _:
            return type(stmt).__name__
