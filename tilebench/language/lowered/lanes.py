"""What lanes of a warp have of one element, made the element."""

from __future__ import annotations

from ...ir import OpStmt, Region, Word, accumulates, attribute, node


@node
class AddLanes(OpStmt):
    """`T.add_lanes(total, distances=(1, 2))`: parts of each element in several lanes are added up.

    Lanes whose numbers differ in the bits of `distances` have a part each, and all of them the sum then.
    `T.reduce_sum(..., parted=True)` leaves such parts.
    """

    word = "add_lanes"
    stages = frozenset({"laid_out", "pipelined"})
    dst: Region = accumulates()
    distances: tuple[int, ...] = attribute()


WORDS = ((AddLanes.word, Word(AddLanes)),)
