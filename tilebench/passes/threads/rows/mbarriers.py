"""Barriers in phases: each thread of the group does what the statement says, on flat memory."""

from __future__ import annotations

from typing import Any

from ....ir import Expr, Region, Stmt
from ....language.lowered.mbarriers import (
    FenceAsyncShared,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierExpect,
    MbarrierInit,
    MbarrierWait,
)
from ..addresses import lower_expr, shared_offset
from ..emitter import Emitter
from ..lowering import Lowering
from ..tiles import NOWHERE

_OPERANDS = ("count", "bytes", "parity")


def barrier_of(emitter: Emitter, region: Region, before: list[Stmt]) -> Region:
    """One of the barriers of a buffer, by its version or its number, in flat memory."""
    start = tuple(lower_expr(emitter, index, NOWHERE, before) for index in region.start)
    version = None if region.version is None else lower_expr(emitter, region.version, NOWHERE, before)
    first = shared_offset(emitter, region.buffer.name, start, version, before)
    return Region(emitter.shared[region.buffer.name].flat, (first,), extent=(1,), place=region.place)


def at_a_barrier(emitter: Emitter, statement: Any) -> list[Stmt]:
    """The statement with its barrier and its numbers as a thread names them."""
    before: list[Stmt] = []
    changes: dict[str, Any] = {"barrier": barrier_of(emitter, statement.barrier, before)}
    for name in _OPERANDS:
        operand: Expr | None = getattr(statement, name, None)
        if operand is not None:
            changes[name] = lower_expr(emitter, operand, NOWHERE, before)
    return [*before, statement.but(**changes)]


def as_it_is(emitter: Emitter, statement: Any) -> list[Stmt]:
    """A fence."""
    return [statement]


LOWERINGS = (
    *(Lowering(c, "", at_a_barrier) for c in (MbarrierInit, MbarrierArrive, MbarrierExpect, MbarrierWait)),
    *(Lowering(cls, "", as_it_is) for cls in (FenceMbarrierInit, FenceAsyncShared)),
)
