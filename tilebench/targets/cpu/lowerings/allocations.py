"""Tiles in scratch memory, and scalars."""

from __future__ import annotations

from ....ir import AllocStmt, Stmt
from ....language.memory import AllocFragment, AllocLocal, AllocShared, AllocVar
from ..loops.lowering import Lowering
from ..loops.words import AllocScratch
from ..loops.work import Work


def tile(work: Work, old: AllocStmt) -> list[Stmt]:
    """The tile where the plan put it. A core has no other threads to share it with or hide it from."""
    planned = work.plan.tiles[old.buffer.name]
    return [AllocScratch(planned.buffer, layout=planned.layout, offset=planned.offset, place=old.place)]


def scalar(work: Work, old: AllocVar) -> list[Stmt]:
    """A scalar keeps its form."""
    return [old if old.init is None else old.but(init=work.swapped(old.init))]


LOWERINGS = (
    Lowering(AllocShared, tile),
    Lowering(AllocFragment, tile),
    Lowering(AllocLocal, tile),
    Lowering(AllocVar, scalar),
)
