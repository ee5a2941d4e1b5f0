"""Moving tiles: `T.copy`, `T.fill`, `T.clear`."""

from __future__ import annotations

from ..ir import Expr, OpStmt, Region, Word, attribute, node, operand
from ..layout import Fragment
from .decisions import Instr, Stage

# One entry a dimension of a region: the extent that indices must stay under, None where every
# access is proved inside. A whole tuple of None is stored as None.
Within = tuple[int | None, ...] | None


@node
class Copy(OpStmt):
    """`T.copy(src, dst)`: `dst[...] = cast(src[...])` over the box; synchronous.

    Reads outside a global buffer give zero, writes outside are skipped. From `bounded` on both
    regions have extents and `src_within`/`dst_within` say which dimensions need a test; from
    `laid_out` on `by` is the instruction and `map` which thread moves what.
    `coalesced_width` is the user's cap of the vector width, in elements.
    """

    word = "copy"
    src: Region = operand()
    dst: Region = operand()
    coalesced_width: int | None = attribute(None)
    src_within: Within = attribute(None)
    dst_within: Within = attribute(None)
    at_stage: Stage | None = attribute(None)
    by: Instr | None = attribute(None)
    map: Fragment | None = attribute(None)


@node
class Fill(OpStmt):
    """`T.fill(dst, value)`: every element of the box; `T.clear(x)` is `T.fill(x, 0)`."""

    word = "fill"
    dst: Region = operand()
    value: Expr = operand()
    dst_within: Within = attribute(None)
    at_stage: Stage | None = attribute(None)
    map: Fragment | None = attribute(None)


WORDS = tuple((each.word, Word(each)) for each in (Copy, Fill))
