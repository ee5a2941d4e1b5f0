"""What passes write where a fragment changes its layout."""

from __future__ import annotations

from ...ir import OpStmt, Region, Word, attribute, decision, node, reads, works, writes
from ...layout import SharedLayout
from ..stages import TILES
from .decisions import Instr


@node
class ConvertLayout(OpStmt):
    """`T.convert_layout(src, dst, by=T.Instr("shfl"))`: the same elements in another fragment's layout.

    Both are whole fragments of one dtype. `by` is `rename` where each thread has all that it needs, `shfl`
    where its warp has, else `shared`: then the tile lies in `through` on its way, in the memory `scratch`.
    `price` is what a thread issues and a block moves, for people.
    """

    word = "convert_layout"
    stages = TILES
    src: Region = reads()
    dst: Region = writes()
    by: Instr | None = decision("laid_out", default=None, early=True)
    through: SharedLayout | None = attribute(default=None)
    price: str = attribute(default="")
    scratch: Region | None = works(default=None)


WORDS = ((ConvertLayout.word, Word(ConvertLayout)),)
