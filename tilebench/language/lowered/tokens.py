"""What is in flight: asynchronous work is issued under a token, committed in groups, and waited for.

A token is a name in the text. Work issued under it (`T.copy(..., token="ko")` by an asynchronous
instruction) since the last commit is one group; a wait leaves the youngest `pending` groups in flight.
How a target does that is said by the instruction's name in `by`, which has its own lowerings.
"""

from __future__ import annotations

from ...ir import OpStmt, Word, attribute, decision, node
from ..stages import TILES
from .decisions import Instr

# The token of what a kernel issues and waits for itself; passes add no wait to it, and take none away.
BY_HAND = "by_hand"


@node
class Commit(OpStmt):
    """`T.commit("ko")`: what was issued under the token since the last commit is one group from now on."""

    word = "commit"
    stages = TILES
    token: str = attribute()
    by: Instr | None = decision("pipelined", default=None, early=True)


@node
class Wait(OpStmt):
    """`T.wait("ko", pending=1)`: all groups of the token but the youngest `pending` are complete.

    What they wrote is seen by the thread that waits; others see it after a barrier. With `later`, so many
    groups of other tokens, committed behind these, may go on.
    """

    word = "wait"
    stages = TILES
    token: str = attribute()
    pending: int = attribute(default=0)
    later: int = attribute(default=0)
    by: Instr | None = decision("pipelined", default=None, early=True)


WORDS = tuple((cls.word, Word(cls)) for cls in (Commit, Wait))
