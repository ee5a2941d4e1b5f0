"""Tiles that stand for others in another memory, for a statement that cannot use them where they are."""

from __future__ import annotations

from typing import Any

from ..ir import Buffer, Function, Region, Stmt, whole
from ..ir.names import Names
from ..language.memory import AllocFragment, AllocShared
from .context import Context


class Twins:
    """Makes the twins of one function, with a remark of the pass `step` for each."""

    def __init__(self, function: Function, context: Context, step: str) -> None:
        self.names = Names(function)
        self.context = context
        self.step = step

    def twin(self, region: Region, scope: str, statement: Stmt, what: str) -> tuple[Stmt, Region]:
        """A tile of the region's extents in another memory: its allocation and the whole of it."""
        name = self.names.fresh(f"{region.buffer.name}_{scope}")
        extents = region.extent if region.extent is not None else region.buffer.shape
        buffer = Buffer(name, extents, region.buffer.dtype, scope)
        allocate: Any = AllocShared if scope == "shared" else AllocFragment
        message = f"{region.buffer.name} goes through {scope} memory for this {what}"
        self.context.remark(self.step, "applied", message, statement, bytes=buffer.bytes)
        return allocate(buffer, place=statement.place), whole(buffer)
