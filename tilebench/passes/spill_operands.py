"""Operands that an instruction cannot read where they are get a copy where it can.

A gemm by `fma` reads both operands from shared memory: `T.gemm(P, V_s, O)` with a fragment `P` ->
`T.copy(P, P_shared)`, `T.gemm(P_shared, V_s, O)`. A reduction works on fragments: a shared source
is copied to one first, and a shared result from one after.
"""

from __future__ import annotations

from typing import Any

from ..ir import Buffer, Function, Region, Stmt, map_children, whole
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.memory import AllocFragment, AllocShared
from ..language.reduce import Reduce
from .context import Context
from .names import Names

NAME = "spill_operands"


def spill_operands(function: Function, context: Context) -> Function:
    """The function with every operand in the memory its instruction reads."""
    work = _Spiller(function, context)

    def step(at: Any) -> Any:
        if isinstance(at, Gemm):
            return work.gemm(at)
        if isinstance(at, Reduce):
            return work.reduce(at)
        return map_children(at, step) if isinstance(at, Stmt) else at

    return step(function)


class _Spiller:
    def __init__(self, function: Function, context: Context) -> None:
        self.names = Names(function)
        self.context = context

    def twin(self, region: Region, scope: str, at: Stmt) -> tuple[Stmt, Region]:
        """A buffer like the region's in another memory: its allocation and the whole of it."""
        name = self.names.fresh(f"{region.buffer.name}_{scope}")
        buffer = Buffer(name, region.buffer.shape, region.buffer.dtype, scope)
        make: Any = AllocShared if scope == "shared" else AllocFragment
        self.context.remark(
            NAME, "applied", f"{region.buffer.name} goes through {scope} memory for this statement", at,
            bytes=buffer.bytes,
        )  # fmt: skip
        return make(buffer, place=at.place), whole(buffer)

    def gemm(self, at: Gemm) -> Any:
        out: list[Stmt] = []
        changes: dict[str, Region] = {}
        for field in ("a", "b"):
            region: Region = getattr(at, field)
            if region.buffer.scope == "fragment":
                alloc, changes[field] = self.twin(region, "shared", at)
                out += [alloc, Copy(region, changes[field], place=at.place)]
        return (*out, at.but(**changes)) if changes else at

    def reduce(self, at: Reduce) -> Any:
        before: list[Stmt] = []
        after: list[Stmt] = []
        changes: dict[str, Region] = {}
        if at.src.buffer.scope != "fragment":
            alloc, changes["src"] = self.twin(at.src, "fragment", at)
            before += [alloc, Copy(at.src, changes["src"], place=at.place)]
        if at.dst.buffer.scope != "fragment":
            alloc, changes["dst"] = self.twin(at.dst, "fragment", at)
            before.append(alloc)
            if not at.clear:
                before.append(Copy(at.dst, changes["dst"], place=at.place))
            after.append(Copy(changes["dst"], at.dst, place=at.place))
        return (*before, at.but(**changes), *after) if changes else at
