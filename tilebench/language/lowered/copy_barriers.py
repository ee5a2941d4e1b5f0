"""Barriers that copies in boxes complete on, as statements of a block.

`T.open_barriers(ko_full, arrivals=1)` makes them. For each filling the block says how many bytes are to come,
`T.expect_copies(ko_full.version(v), bytes=n)`, and copies name the barrier; who uses the tiles waits for it,
`T.await_copies(ko_full.version(v), parity=p)`, and sees what they brought.
"""

from __future__ import annotations

from ...ir import Expr, OpStmt, Region, Word, addresses, attribute, node, operand, reads, writes
from ..stages import RINGS


@node
class OpenBarriers(OpStmt):
    """`T.open_barriers(ko_full, arrivals=1)`: one thread makes all versions, of so many arrivals."""

    word = "open_barriers"
    stages = RINGS
    barriers: Region = writes()
    arrivals: int = attribute(default=1)


@node
class ExpectCopies(OpStmt):
    """`T.expect_copies(ko_full.version(v), bytes=n)`: one thread arrives, and says what is to come."""

    word = "expect_copies"
    stages = RINGS
    barrier: Region = addresses()
    bytes: int = attribute()


@node
class AwaitCopies(OpStmt):
    """`T.await_copies(ko_full.version(v), parity=p)`: each thread waits for the phase of that parity."""

    word = "await_copies"
    stages = RINGS
    barrier: Region = reads()
    parity: Expr = operand()


@node
class ReleaseTiles(OpStmt):
    """`T.release_tiles(ko_empty.version(v))`: each warp here has read what lies there, and arrives once."""

    word = "release_tiles"
    stages = RINGS
    barrier: Region = addresses()


@node
class AwaitRelease(OpStmt):
    """`T.await_release(ko_empty.version(v), parity=p)`: who brings tiles waits until the last are read."""

    word = "await_release"
    stages = RINGS
    barrier: Region = reads()
    parity: Expr = operand()


WORDS = tuple(
    (cls.word, Word(cls)) for cls in (OpenBarriers, ExpectCopies, AwaitCopies, ReleaseTiles, AwaitRelease)
)
