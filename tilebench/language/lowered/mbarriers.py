"""Barriers in shared memory that count arrivals and bytes, in phases: the words of one thread.

A barrier is an element of a shared buffer of uint64. A phase of it ends when as many arrivals have come as
it was made for, and as many bytes as were announced; then the next one begins, with the same count. Who waits
names the parity of a phase (0 for the first, then 1, 0, ...), and goes on once the last phase of that parity
has ended; before the first phase, that of parity 1 has. What a thread did before it arrived, and what an
asynchronous copy brought whose bytes were counted here, is seen by those who have waited.
"""

from __future__ import annotations

from typing import ClassVar

from ...ir import Expr, OpStmt, Region, Word, attribute, node, operand, reads, writes
from ..stages import EVERY, THREAD


@node
class MbarrierInit(OpStmt):
    """`T.mbarrier_init(full[i], count)`: a barrier whose phases take `count` arrivals.

    Others see it behind a barrier of the block; asynchronous copies behind `T.fence_mbarrier_init()` too.
    """

    word = "mbarrier_init"
    stages = THREAD
    barrier: Region = writes()
    count: Expr = operand()


@node
class MbarrierInval(OpStmt):
    """`T.mbarrier_inval(full[i])`: it is no barrier any more, and its bytes can be used again."""

    word = "mbarrier_inval"
    stages = THREAD
    barrier: Region = writes()


@node
class MbarrierArrive(OpStmt):
    """`T.mbarrier_arrive(full[i], count=2)`: so many arrivals, one where nothing is said.

    With `bytes` it is one, and announces that many before it counts. With `block` it comes to the barrier at
    the same place of the block of that rank in the cluster; `relaxed`, it hands on nothing that threads did.
    """

    word = "mbarrier_arrive"
    stages = EVERY
    for_all: ClassVar[bool] = True
    barrier: Region = reads()
    count: Expr | None = operand(default=None)
    bytes: Expr | None = operand(default=None)
    block: Expr | None = operand(default=None)
    relaxed: bool = attribute(default=False)


@node
class MbarrierExpect(OpStmt):
    """`T.mbarrier_expect(full[i], bytes)`: the phase does not end before so many more bytes have come."""

    word = "mbarrier_expect"
    stages = EVERY
    barrier: Region = reads()
    bytes: Expr = operand()


@node
class MbarrierWait(OpStmt):
    """`T.mbarrier_wait(full[i], parity)`: on behind the phase of that parity."""

    word = "mbarrier_wait"
    stages = EVERY
    barrier: Region = reads()
    parity: Expr = operand()


@node
class FenceMbarrierInit(OpStmt):
    """`T.fence_mbarrier_init()`: asynchronous copies and the cluster see the barriers of this thread."""

    word = "fence_mbarrier_init"
    stages = EVERY


@node
class FenceAsyncShared(OpStmt):
    """`T.fence_async_shared()`: asynchronous copies see what this thread sees of shared memory."""

    word = "fence_async_shared"
    stages = EVERY


CLASSES = (
    MbarrierInit, MbarrierInval, MbarrierArrive, MbarrierExpect, MbarrierWait, FenceMbarrierInit,
    FenceAsyncShared,
)  # fmt: skip
WORDS = tuple((cls.word, Word(cls)) for cls in CLASSES)
