"""Where a launch that begins while the one before it ends (programmatic dependent launch) waits for that.

Its blocks may run as soon as those of the launch before have all said so, or ended. What that has written is
there, and what it reads may be written, behind the wait alone.
"""

from __future__ import annotations

from ...ir import OpStmt, Word, node
from ..stages import EVERY


@node
class LaunchDependents(OpStmt):
    """`T.launch_dependents()`: as far as this block goes, the next launch may begin."""

    word = "launch_dependents"
    stages = EVERY


@node
class WaitForLaunches(OpStmt):
    """`T.wait_for_launches()`: on when the launches before this one have ended and their writes are there."""

    word = "wait_for_launches"
    stages = EVERY


WORDS = tuple((cls.word, Word(cls)) for cls in (LaunchDependents, WaitForLaunches))
