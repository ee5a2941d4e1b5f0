"""Where threads may wait for others, and what is said when nobody can go on."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from ..errors import Place
from ..ir import If, LoopStmt, Stmt, WithStmt
from .barriers import Barriers, Until
from .control import LOOPS
from .lanes import Lanes, unknown
from .refusal import refuse
from .strands import Strand


def waiting_statements(body: Iterable[Stmt], lanes: Lanes) -> set[int]:
    """The statements, by identity, in which threads may wait for others."""
    found: set[int] = set()

    def waits(stmt: Stmt) -> bool:
        if isinstance(stmt, If):
            inside = [waits(s) for s in (*stmt.then, *stmt.orelse)]
        elif isinstance(stmt, LOOPS):
            inside = [waits(s) for s in stmt.body]
        elif isinstance(stmt, (LoopStmt, WithStmt)):
            raise unknown(stmt)
        else:
            meaning = lanes.meanings.get(type(stmt))
            if meaning is None:
                raise unknown(stmt)
            inside = [inspect.isgeneratorfunction(meaning)]
        if any(inside):
            found.add(id(stmt))
        return any(inside)

    for stmt in body:
        waits(stmt)
    return found


def refuse_deadlock(strands: list[Strand], barriers: Barriers) -> NoReturn:
    """No strand can go on: told at the lines where those of one block wait."""
    waiting = sorted(strands, key=lambda strand: int(np.flatnonzero(strand.waits)[0]))
    first, lanes = waiting[0], barriers.lanes
    block = int(np.flatnonzero(first.waits)[0]) // lanes.threads
    rows = [(strand, strand.waits.reshape(lanes.blocks, -1)[block]) for strand in waiting]
    rows = [(strand, row) for strand, row in rows if row.any()]
    ended = not np.logical_or.reduce([row for _, row in rows]).all()
    refuse(
        "a deadlock: {who}{rest}", first.stmt, who=_who_waits(*rows[0], barriers, block),
        rest="; the other threads have ended" if ended and len(rows) == 1 else "",
        also=[(_who_waits(strand, row, barriers, block), place_of(strand)) for strand, row in rows[1:]],
    )  # fmt: skip


def _who_waits(strand: Strand, row: Any, barriers: Barriers, block: int) -> str:
    threads = np.flatnonzero(row)
    assert strand.meeting is not None
    if isinstance(strand.meeting, Until):
        lanes = np.zeros_like(strand.waits)
        lanes.reshape(barriers.lanes.blocks, -1)[block] = row
        what = strand.meeting.told(lanes)
    else:
        what = barriers.told(strand.meeting, block)
    first, last = threads[0], threads[-1]
    who = f"thread {first} waits" if first == last else f"threads {first} to {last} wait"
    return f"{who} for {what}"


def place_of(strand: Strand) -> Place | None:
    """Where a strand is in the middle of a word."""
    return None if strand.stmt is None else strand.stmt.place
