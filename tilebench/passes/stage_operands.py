"""Operands of a gemm in global memory get a shared tile and a copy in front of it.

`T.gemm(A[m : m + 128, k : k + 32], ...)` -> `T.copy(A[...], A_shared)`, `T.gemm(A_shared, ...)`.
The tile is allocated at the head of the kernel's body, so that a pipelined loop can make a ring of it.
"""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir import Buffer, Function, Node, Region, Stmt, map_children, whole
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.memory import AllocShared
from ..language.structure import KernelLaunch
from ..record import Choice
from ..schedule import Directive, Schedule, candidates
from .context import Context
from .names import Names


def stage_operands(function: Function, context: Context) -> Function:
    """The function with every global operand of a gemm staged through shared memory."""
    stager = _Stager(function, context)
    staged = stager.statement(function)
    if not stager.allocations:
        return function

    def head(at: Any) -> Any:
        if isinstance(at, KernelLaunch):
            return at.but(body=(*stager.allocations, *at.body))
        return map_children(at, head) if isinstance(at, Stmt) else at

    return head(staged)


class _Stager:
    def __init__(self, function: Function, context: Context) -> None:
        self.context = context
        self.names = Names(function)
        self.allocations: list[Stmt] = []
        self.addresses = {id(each.node): each for each in candidates(function, "gemm")}
        schedule: Schedule = context.schedule or Schedule()
        self.directives = schedule.find("gemm")

    def statement(self, at: Any) -> Any:
        if isinstance(at, Gemm):
            return self.gemm(at)
        return map_children(at, self.statement) if isinstance(at, Stmt) else at

    def gemm(self, at: Gemm) -> Any:
        out: list[Stmt] = []
        changes: dict[str, Region] = {}
        for field, letter in (("a", "A"), ("b", "B")):
            region: Region = getattr(at, field)
            if region.buffer.scope == "global":
                copy, staged = self.stage(region, at)
                out.append(copy)
                changes[field] = staged
                self.note(at, letter, staged.buffer)
        return (*out, at.but(**changes)) if changes else at

    def stage(self, region: Region, gemm: Gemm) -> tuple[Copy, Region]:
        if region.extent is None:
            raise ShapeError(
                "the operand {name} of the gemm is one element; its extents are not known",
                at=gemm.place,
                name=region.buffer.name,
                hint=f"write a box, such as {region.buffer.name}[i : i + 128, k : k + 32]",
            )
        # The matrix is the last two dimensions; leading ones have extent 1 and drop out of the tile.
        shape = region.extent[-2:]
        buffer = Buffer(
            self.names.fresh(f"{region.buffer.name}_shared"), shape, region.buffer.dtype, "shared"
        )
        place = region.place or gemm.place
        self.allocations.append(AllocShared(buffer, place=place))
        staged = whole(buffer).at(place)
        return Copy(region, staged, place=place), staged

    def note(self, gemm: Node, letter: str, buffer: Buffer) -> None:
        each = self.addresses[id(gemm)]
        found: Directive | None = None
        for directive in self.directives:
            same = directive.address in (each.address, each.name) and directive.name == f"stage_{letter}"
            found = directive if same else found
        origin, why = (found.origin.kind, found.origin.why) if found else ("default", "")
        value = f"shared ({buffer.name}, {buffer.bytes} bytes)"
        self.context.choices.append(Choice(f"gemm {each.address}", f"stage_{letter}", value, origin, why))
