"""Tiles that stand for others in another memory, for a statement that cannot use them where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir import Buffer, Cast, Function, Load, Region, Stmt, Store, rewrite, whole
from ...ir.dtypes import bytes_of
from ...ir.names import Names
from ...language.memory import AllocFragment, AllocShared
from ..context import Context


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
        buffer = Buffer(name, extents, bytes_of(region.buffer.dtype), scope)
        allocate: Any = AllocShared if scope == "shared" else AllocFragment
        message = f"{region.buffer.name} goes through {scope} memory for this {what}"
        self.context.remark(self.step, "applied", message, statement, bytes=buffer.bytes)
        return allocate(buffer, place=statement.place), whole(buffer)


def at_twins(node: Any, twins: Mapping[str, Buffer]) -> Any:
    """The node with loads and stores led to twins, by name, and converted where these are wider."""

    def change(access: Any) -> Any:
        twin = twins.get(access.buffer.name) if isinstance(access, (Load, Store)) else None
        if twin is None or twin.dtype == access.buffer.dtype:
            return access if twin is None else access.but(buffer=twin)
        if isinstance(access, Store):
            return access.but(buffer=twin, value=Cast(access.value, type=twin.dtype))
        return Cast(access.but(buffer=twin), type=access.buffer.dtype)

    return rewrite(node, change)
