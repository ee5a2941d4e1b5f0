"""What the threads of a warp find out in one step: who has a predicate, and who has the same value."""

from __future__ import annotations

from ..ir import OpStmt, Region, Word, attribute, node, reads, writes

# The threads that vote together: a warp of a card.
WARP = 32


@node
class WarpVote(OpStmt):
    """`T.warp_vote("ballot", src, dst)`: a bit for each thread of the warp, uint32, the same in all of them.

    Both are whole tiles with an element for each thread of the block. A bit of "ballot" says that the
    thread's element is not 0; of "match" that it equals this thread's own (a NaN equals nothing).
    """

    word = "warp_vote"
    stages = frozenset({"tile", "scheduled", "bounded"})
    kind: str = attribute()
    src: Region = reads()
    dst: Region = writes()


WORDS = (("warp_vote", Word(WarpVote)),)
