"""Matrix products of tiles: `T.gemm`."""

from __future__ import annotations

from ..ir import FALSE, Expr, OpStmt, Region, Word, attribute, node, operand
from .decisions import Instr, Stage


@node
class Gemm(OpStmt):
    """`T.gemm(A, B, C)`: `C[m, n] += op(A)[m, k] * op(B)[k, n]`, summed in C's dtype or wider.

    `policy` splits the tile over warps (`square`, `full_row`, `full_col`); `clear_accum` (a bool
    expression) starts from zero instead of C. `a_within`/`b_within` appear in `bounded` where an
    operand is a global region.
    """

    word = "gemm"
    a: Region = operand()
    b: Region = operand()
    c: Region = operand()
    transpose_A: bool = attribute(False)
    transpose_B: bool = attribute(False)
    policy: str = attribute("square")
    clear_accum: Expr = operand(FALSE)
    label: str = attribute("")
    at_stage: Stage | None = attribute(None)
    by: Instr | None = attribute(None)

    @property
    def mnk(self) -> tuple[int, int, int]:
        """Extents m, n, k of the product; the regions must have extents."""
        a, b = self.a.extent, self.b.extent
        if a is None or b is None:
            raise ValueError("a gemm on head addresses has no extents yet")
        m, k = (a[-1], a[-2]) if self.transpose_A else (a[-2], a[-1])
        return m, (b[-2] if self.transpose_B else b[-1]), k


WORDS = ((Gemm.word, Word(Gemm)),)
