"""Asynchronous words as a plug-in makes them: a class, a word and a meaning each."""

from __future__ import annotations

from collections.abc import Mapping

from tilebench.ir import OpStmt, Region, Word, attribute, node
from tilebench.ir.node import accumulates, reads, writes
from tilebench.simulator import MEANINGS, Lanes
from tilebench.simulator.lanes import Meaning
from tilebench.simulator.state import Mask


@node
class AsyncCopy(OpStmt):
    """`T.async_copy(dst, src)`: a copy that goes on while the thread does something else."""

    word = "async_copy"
    dst: Region = writes()
    src: Region = reads()
    token: str = attribute(default="copies")


@node
class AsyncDot(OpStmt):
    """`T.async_dot(sum, a, b)`: adds a product to a sum while the thread does something else."""

    word = "async_dot"
    total: Region = accumulates()
    a: Region = reads()
    b: Region = reads()
    token: str = attribute(default="sums")


@node
class Commit(OpStmt):
    """`T.commit_group()`: what was issued is a group."""

    word = "commit_group"
    token: str = attribute(default="copies")


@node
class Wait(OpStmt):
    """`T.wait_group(pending=1)`: all groups but the youngest are complete."""

    word = "wait_group"
    token: str = attribute(default="copies")
    pending: int = attribute(default=0)


def async_copy(lanes: Lanes, stmt: AsyncCopy, mask: Mask) -> None:
    def perform() -> None:
        lanes.write(stmt.dst, lanes.read(stmt.src, mask), mask)

    lanes.issue(stmt.token, stmt, mask, perform)


def async_dot(lanes: Lanes, stmt: AsyncDot, mask: Mask) -> None:
    def perform() -> None:
        product = lanes.read(stmt.a, mask) * lanes.read(stmt.b, mask)
        lanes.write(stmt.total, lanes.read(stmt.total, mask) + product, mask)

    lanes.issue(stmt.token, stmt, mask, perform)


def commit(lanes: Lanes, stmt: Commit, mask: Mask) -> None:
    lanes.commit(stmt.token, mask)


def wait(lanes: Lanes, stmt: Wait, mask: Mask) -> None:
    lanes.wait(stmt.token, stmt.pending, stmt, mask)


WORDS = tuple((cls.word, Word(cls)) for cls in (AsyncCopy, AsyncDot, Commit, Wait))


def meanings() -> Mapping[type, Meaning]:
    """The simulator's words with these."""
    return {**MEANINGS, AsyncCopy: async_copy, AsyncDot: async_dot, Commit: commit, Wait: wait}
