"""`cp.async`: copies of 4, 8 or 16 bytes from global to shared memory that go on by themselves (sm_80 on).

Groups of a thread are counted whatever they are for: where two rings are in flight at once, a wait for one
of them leaves at most as many groups as it names, of both.
"""

from __future__ import annotations

from ....errors import LayoutError
from ....ir import Expr, OpStmt, Region, Stmt, attribute, node, operand, reads, writes
from ....language.copy import Copy
from ....language.lowered.decisions import Instr
from ....language.lowered.tokens import Commit, Wait
from ....language.stages import THREAD
from ....passes.threads.emitter import Emitter
from ....passes.threads.lowering import Lowering
from ....passes.threads.moves import memory_moves

NAME = "cp.async"


@node
class CpAsync(OpStmt):
    """`T.cp_async(A_s[i : i + 8], A[m, k : k + 8], valid=n)`: elements that arrive by themselves.

    Of the source only the first `valid` are read (None: all), and zeros arrive in place of the others. What
    the loops of the names in `apart` add to the source's address, which are written out, the instruction adds
    to an address that its neighbours share: each one of its own would take two registers through a loop.
    """

    word = "cp_async"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads(first="valid")
    valid: Expr | None = operand(default=None)
    apart: tuple[str, ...] = attribute(default=())


@node
class CpAsyncCommit(OpStmt):
    """`T.cp_async_commit()`: what this thread issued since its last one is a group."""

    word = "cp_async_commit"
    stages = THREAD


@node
class CpAsyncWait(OpStmt):
    """`T.cp_async_wait(pending=1)`: all groups of this thread but the youngest are there, for this thread."""

    word = "cp_async_wait"
    stages = THREAD
    pending: int = attribute(default=0)


CLASSES = (CpAsync, CpAsyncCommit, CpAsyncWait)


def copy(emitter: Emitter, statement: Copy) -> list[Stmt]:
    """A copy in accesses that go on by themselves; what lies outside the array arrives as zeros."""
    return memory_moves(emitter, statement, CpAsync, fills=True)


def commit(emitter: Emitter, statement: Commit) -> list[Stmt]:
    """What was issued is a group."""
    _check_name(statement)
    return [CpAsyncCommit()]


def wait(emitter: Emitter, statement: Wait) -> list[Stmt]:
    """All groups but the youngest are there."""
    _check_name(statement)
    return [CpAsyncWait(pending=statement.pending)]


def _check_name(statement: Commit | Wait) -> None:
    if statement.by != Instr(NAME):
        raise LayoutError(
            "groups of copies have no width", at=statement.place, by=statement.by, found="by={by!r}",
            expected='by=T.Instr("cp.async")',
        )  # fmt: skip


LOWERINGS = (Lowering(Copy, NAME, copy), Lowering(Commit, NAME, commit), Lowering(Wait, NAME, wait))
