"""Calls with pointers in the code of one thread: where the elements of its regions lie."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...errors import LanguageError
from ...ir import Expr, Region, Stmt
from ...language.extern import ExternCall
from ...layout import SharedLayout
from .addresses import flat_index, flat_local, shared_offset
from .emitter import Emitter


def lowered_call(
    emitter: Emitter, call: ExternCall, value: Callable[[Expr], Expr], before: list[Stmt]
) -> ExternCall:
    """The call of one thread; lets for addresses are added to `before`."""
    regions = tuple(_region(emitter, call, region, value, before) for region in call.regions)
    return call.but(regions=regions, values=tuple(value(part) for part in call.values))


def _region(
    emitter: Emitter, call: ExternCall, region: Region, value: Callable[[Expr], Expr], before: list[Stmt]
) -> Region:
    buffer, start = region.buffer, tuple(value(part) for part in region.start)
    count = prod(region.extent or ())
    if buffer.name in emitter.fragments:
        raise LanguageError(
            "{name} has no address: its elements lie in the registers of many threads", name=buffer.name,
            at=call.place, hint="T.copy it to T.alloc_shared first",
        )  # fmt: skip
    if buffer.name in emitter.shared:
        tile = emitter.shared[buffer.name]
        if tile.layout != SharedLayout.rows(buffer.extents, buffer.dtype.per_byte):
            raise LanguageError(
                "{name} does not lie in rows, and a function sees memory", name=buffer.name, at=call.place,
                found="{layout}", layout=tile.layout, hint="leave its layout out",
            )  # fmt: skip
        version = None if region.version is None else value(region.version)
        offset = shared_offset(emitter, buffer.name, start, version, before)
        return Region(tile.flat, (offset,), extent=(count,), place=region.place)
    if buffer.scope == "local" and buffer.rank != 1:
        return Region(flat_local(buffer), flat_index(buffer, start), extent=(count,), place=region.place)
    return region.but(start=start)


__all__ = ["lowered_call"]
