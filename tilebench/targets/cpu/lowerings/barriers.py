"""Barriers: a block runs on one core, which does everything in order."""

from __future__ import annotations

from ....ir import Stmt
from ....language.lowered.threads import SyncThreads, SyncWarp
from ..loops.lowering import Lowering
from ..loops.work import Work


def barrier(work: Work, old: SyncThreads | SyncWarp) -> list[Stmt]:
    """Nothing."""
    return []


LOWERINGS = (Lowering(SyncThreads, barrier), Lowering(SyncWarp, barrier))
