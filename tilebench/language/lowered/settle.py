"""What is computed here and not further down, whatever a compiler would rather do."""

from __future__ import annotations

from ...ir import OpStmt, Region, Word, node, reads


@node
class Settle(OpStmt):
    """`T.settle(part)`: what these registers hold is computed in front of this.

    Nothing is done with them: it keeps arithmetic beside work that goes on by itself, in front of the wait
    for that. A compiler knows no reason for either place.
    """

    word = "settle"
    stages = frozenset({"pipelined", "threaded"})
    what: Region = reads()


WORDS = ((Settle.word, Word(Settle)),)
