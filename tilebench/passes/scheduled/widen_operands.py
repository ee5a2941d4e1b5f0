"""Operands of a gemm of 4 bits become tiles of bytes where no instruction takes them as they are.

`T.gemm(A_s, B_s, C_l)` of int4 -> `T.copy(A_s, A_s_int8)`, `T.gemm(A_s_int8, B_s, C_l)`: the product of
bytes that the target has. Floats of 4 bits are widened to
float8_e4m3fn, which has all of their values. A machine whose table has a row for the 4-bit dtypes keeps them.
"""

from __future__ import annotations

from typing import Any

from ...ir import Buffer, Function, Region, Stmt, map_bodies, whole
from ...ir.dtypes import bytes_of
from ...ir.names import Names
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.memory import AllocShared
from ...language.structure import KernelLaunch
from ..context import Context

NAME = "widen_operands"


def widen_operands(function: Function, context: Context) -> Function:
    """The function whose gemms have operands that an instruction of the machine takes."""
    widener = _Widener(function, context)
    body = tuple(widener.launch(part) if isinstance(part, KernelLaunch) else part for part in function.body)
    return function.but(body=body) if widener.widened else function


class _Widener:
    def __init__(self, function: Function, context: Context) -> None:
        self.context = context
        self.names = Names(function)
        self.allocations: list[Stmt] = []
        self.widened = False
        self.known = {row.dtypes for row in context.machine.instructions_for("gemm")}

    def launch(self, launch: KernelLaunch) -> KernelLaunch:
        """The launch with the tiles of bytes at the head of its body."""
        self.allocations = []
        found: KernelLaunch = map_bodies(launch, self.statement)
        return found.but(body=(*self.allocations, *found.body)) if self.allocations else launch

    def statement(self, node: Any) -> Any:
        return self.gemm(node) if isinstance(node, Gemm) else map_bodies(node, self.statement)

    def gemm(self, gemm: Gemm) -> Any:
        dtypes = tuple(region.buffer.dtype.name for region in (gemm.a, gemm.b, gemm.c))
        if dtypes in self.known:
            return gemm
        before: list[Stmt] = []
        changes: dict[str, Region] = {}
        for field in ("a", "b"):
            region: Region = getattr(gemm, field)
            if region.buffer.dtype.per_byte > 1:
                changes[field] = self.bytes(region, gemm, before)
        return (*before, gemm.but(**changes)) if changes else gemm

    def bytes(self, region: Region, gemm: Gemm, before: list[Stmt]) -> Region:
        """A tile of bytes with the operand's values, which a copy in front of the gemm fills."""
        old, dtype = region.buffer, bytes_of(region.buffer.dtype)
        place = region.place or gemm.place
        shape = (region.extent or old.extents)[-2:]
        tile = Buffer(self.names.fresh(f"{old.name}_{dtype}"), shape, dtype, "shared")
        self.allocations.append(AllocShared(tile, place=place))
        self.context.remark(
            NAME, "applied", f"{old.name} is widened to {dtype} for this gemm: no instruction of "
            f"{self.context.machine.name} takes {old.dtype}", gemm, bytes=tile.bytes,
        )  # fmt: skip
        self.widened = True
        before.append(Copy(region, whole(tile).at(place), place=place))
        return whole(tile).at(place)
