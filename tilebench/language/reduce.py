"""Reductions of tiles: `T.reduce_sum`, `T.reduce_max`, `T.reduce_min`."""

from __future__ import annotations

from ..ir import OpStmt, Region, Word, attribute, node, operand
from .decisions import Instr, Stage

KINDS = ("sum", "max", "min")


@node
class Reduce(OpStmt):
    """`T.reduce_sum(src, dst, dim=-1, clear=True)`; `dst` lacks dimension `dim` or has it as 1.

    With `clear=False` the old value of `dst` is folded in exactly once. From `laid_out` on `by`
    says how threads exchange: within a thread, by shuffles, or through shared memory.
    """

    word = "reduce"
    kind: str = attribute()
    src: Region = operand()
    dst: Region = operand()
    dim: int = attribute(-1)
    clear: bool = attribute(True)
    at_stage: Stage | None = attribute(None)
    by: Instr | None = attribute(None)

    def spelling(self) -> str:
        return f"reduce_{self.kind}"

    def hidden(self) -> frozenset[str]:
        return frozenset({"kind"})


WORDS = tuple((f"reduce_{kind}", Word(Reduce, {"kind": kind})) for kind in KINDS)
