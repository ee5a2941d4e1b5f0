"""Operands of a gemm in global memory get a shared tile and a copy in front of it.

`T.gemm(A[m : m + 128, k : k + 32], ...)` -> `T.copy(A[...], A_shared)`, `T.gemm(A_shared, ...)`.
The tile is allocated at the head of the kernel's body, so that a pipelined loop can make a ring of it.
"""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...ir import Buffer, Function, Node, Region, Stmt, map_bodies, whole
from ...ir.names import Names
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.memory import AllocShared
from ...language.structure import KernelLaunch
from ...record import Choice
from ...schedule import Directive, Schedule, candidates
from ..context import Context


def stage_operands(function: Function, context: Context) -> Function:
    """The function with every global operand of a gemm staged through shared memory."""
    stager = _Stager(function, context)
    body = tuple(stager.launch(part) if isinstance(part, KernelLaunch) else part for part in function.body)
    return function.but(body=body) if body != function.body else function


class _Stager:
    def __init__(self, function: Function, context: Context) -> None:
        self.context = context
        self.names = Names(function)
        self.allocations: list[Stmt] = []
        self.addresses = {id(each.node): each for each in candidates(function, "gemm")}
        schedule: Schedule = context.schedule or Schedule()
        self.directives = schedule.find("gemm")

    def launch(self, launch: KernelLaunch) -> KernelLaunch:
        """The launch with its tiles at the head of its body."""
        self.allocations = []
        staged = self.statement(launch)
        return staged.but(body=(*self.allocations, *staged.body)) if self.allocations else launch

    def statement(self, node: Any) -> Any:
        if isinstance(node, Gemm):
            return self.gemm(node)
        return map_bodies(node, self.statement)

    def gemm(self, gemm: Gemm) -> Any:
        staged_gemm: list[Stmt] = []
        changes: dict[str, Region] = {}
        for field, letter in (("a", "A"), ("b", "B")):
            region: Region = getattr(gemm, field)
            if region.buffer.scope == "global":
                copy, staged = self.stage(region, gemm)
                staged_gemm.append(copy)
                changes[field] = staged
                self.note(gemm, letter, staged.buffer)
        return (*staged_gemm, gemm.but(**changes)) if changes else gemm

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
        address = self.addresses[id(gemm)]
        chosen: Directive | None = None
        for directive in self.directives:
            same = (
                directive.address in (address.address, address.name) and directive.name == f"stage_{letter}"
            )
            chosen = directive if same else chosen
        origin, why = (chosen.origin.kind, chosen.origin.why) if chosen else ("default", "")
        value = f"shared ({buffer.name}, {buffer.bytes} bytes)"
        self.context.choices.append(Choice(f"gemm {address.address}", f"stage_{letter}", value, origin, why))
