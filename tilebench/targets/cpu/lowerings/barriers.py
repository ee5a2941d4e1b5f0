"""Barriers, and registers of threads: a block runs on one core, which does everything in order."""

from __future__ import annotations

from ....ir import Stmt
from ....language.lowered.threads import NamedBarrierArrive, SyncThreads, SyncWarp
from ....language.registers import SetMaxNreg
from ..loops.lowering import Lowering
from ..loops.work import Work


def barrier(work: Work, old: Stmt) -> list[Stmt]:
    """Nothing."""
    return []


LOWERINGS = tuple(Lowering(cls, barrier) for cls in (SyncThreads, NamedBarrierArrive, SyncWarp, SetMaxNreg))
