"""Barriers that copies in boxes complete on, as statements of a block.

`T.open_barriers(ko_full, arrivals=1)` makes them. For each filling the block says how many bytes are to come,
`T.expect_copies(ko_full.version(v), bytes=n)`, and copies name the barrier; who uses the tiles waits for it,
`T.mbarrier_wait(ko_full.version(v), parity)`, and sees what they brought. Who has read them says so,
`T.release_tiles(ko_empty.version(v))`, and who brings the next ones waits for that in the same way.
"""

from __future__ import annotations

from ...ir import OpStmt, Region, Word, addresses, attribute, node, writes
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
class ReleaseTiles(OpStmt):
    """`T.release_tiles(ko_empty.version(v))`: each warp here has read what lies there, and arrives once.

    With `blocks=2` it arrives at each of so many blocks of the cluster, which all fill these tiles; `relaxed`
    where no thread has read there, but instructions alone that have been waited for.
    """

    word = "release_tiles"
    stages = RINGS
    barrier: Region = addresses()
    blocks: int = attribute(default=0)
    relaxed: bool = attribute(default=False)


WORDS = tuple((cls.word, Word(cls)) for cls in (OpenBarriers, ExpectCopies, ReleaseTiles))
