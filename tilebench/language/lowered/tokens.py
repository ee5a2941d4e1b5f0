"""What is in flight: asynchronous work is issued under a token, committed in groups, and waited for.

A token is a name in the text. Work issued under it (`T.copy(..., token="ko")` by an asynchronous
instruction) since the last commit is one group; a wait leaves the youngest `pending` groups in flight.
How a target does that is said by the instruction's name in `by`, which has its own lowerings.
"""

from __future__ import annotations

from ...ir import OpStmt, Word, attribute, decision, node
from ..stages import RINGS
from .decisions import Instr


@node
class Commit(OpStmt):
    """`T.commit("ko")`: what was issued under the token since the last commit is one group from now on."""

    word = "commit"
    stages = RINGS
    token: str = attribute()
    by: Instr | None = decision("pipelined", default=None)


@node
class Wait(OpStmt):
    """`T.wait("ko", pending=1)`: all groups of the token but the youngest `pending` are complete.

    What they wrote is seen by the thread that waits; others see it after a barrier.
    """

    word = "wait"
    stages = RINGS
    token: str = attribute()
    pending: int = attribute(default=0)
    by: Instr | None = decision("pipelined", default=None)


WORDS = tuple((cls.word, Word(cls)) for cls in (Commit, Wait))
