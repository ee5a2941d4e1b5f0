"""Operands that an instruction cannot read where they are get a copy where it can.

A gemm by `fma` reads both operands from shared memory: `T.gemm(P, V_s, O)` with a fragment `P` ->
`T.copy(P, P_shared)`, `T.gemm(P_shared, V_s, O)`. A reduction works on fragments: a shared source
is copied to one first, and a shared result from one after.
"""

from __future__ import annotations

from typing import Any

from ..ir import AllocStmt, Buffer, Function, Region, Stmt, map_children, walk, whole
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.memory import AllocFragment, AllocShared
from ..language.reduce import Reduce
from .context import Context

NAME = "spill_operands"


def spill_operands(function: Function, context: Context) -> Function:
    """The function with every operand in the memory its instruction reads."""
    taken = {each.name for each in function.params}
    taken |= {n.buffer.name for n in walk(function) if isinstance(n, AllocStmt)}

    def fresh(name: str) -> str:
        made, number = name, 1
        while made in taken:
            number += 1
            made = f"{name}__{number}"
        taken.add(made)
        return made

    def twin(region: Region, scope: str, at: Stmt) -> tuple[Stmt, Region]:
        buffer = Buffer(
            fresh(f"{region.buffer.name}_{scope}"), region.buffer.shape, region.buffer.dtype, scope
        )
        make: Any = AllocShared if scope == "shared" else AllocFragment
        context.remark(
            NAME, "applied", f"{region.buffer.name} goes through {scope} memory for this statement", at,
            bytes=buffer.bytes,
        )  # fmt: skip
        return make(buffer, place=at.place), whole(buffer)

    def gemm(at: Gemm) -> Any:
        out: list[Stmt] = []
        changes: dict[str, Region] = {}
        for field in ("a", "b"):
            region: Region = getattr(at, field)
            if region.buffer.scope == "fragment":
                alloc, changes[field] = twin(region, "shared", at)
                out += [alloc, Copy(region, changes[field], place=at.place)]
        return (*out, at.but(**changes)) if changes else at

    def reduce(at: Reduce) -> Any:
        before: list[Stmt] = []
        after: list[Stmt] = []
        changes: dict[str, Region] = {}
        if at.src.buffer.scope != "fragment":
            alloc, changes["src"] = twin(at.src, "fragment", at)
            before += [alloc, Copy(at.src, changes["src"], place=at.place)]
        if at.dst.buffer.scope != "fragment":
            alloc, changes["dst"] = twin(at.dst, "fragment", at)
            before.append(alloc)
            if not at.clear:
                before.append(Copy(at.dst, changes["dst"], place=at.place))
            after.append(Copy(changes["dst"], at.dst, place=at.place))
        return (*before, at.but(**changes), *after) if changes else at

    def step(at: Any) -> Any:
        if isinstance(at, Gemm):
            return gemm(at)
        if isinstance(at, Reduce):
            return reduce(at)
        return map_children(at, step) if isinstance(at, Stmt) else at

    return step(function)
