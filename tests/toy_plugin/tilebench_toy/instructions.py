"""Step 6: instructions of the accelerator's own, which the compiler chooses and plans like any other.

A row in `machine.py` says all that the passes ask: the shape, how operands lie, how many threads act as
one, what is asynchronous. Here is the code behind the names: a `Lowering` each, from the operation on
tiles to words of one thread. No pass is touched: layouts follow from the row's fragments, and the ring
of a pipelined loop issues, commits and waits by the token.
"""

from __future__ import annotations

from tilebench.ir import Stmt
from tilebench.language.copy import Copy
from tilebench.language.gemm import Gemm
from tilebench.language.lowered.tokens import Commit, Wait
from tilebench.passes.threads.atoms import gemm_by_atoms
from tilebench.passes.threads.emitter import Emitter
from tilebench.passes.threads.lowering import Lowering
from tilebench.passes.threads.moves import memory_moves

from .machine import MATRIX
from .words import ToyCommit, ToyCopyAhead, ToyMma, ToyWait


def gemm(emitter: Emitter, statement: Gemm) -> list[Stmt]:
    """A product in tiles of 4x4x4, one instruction a warp."""
    return gemm_by_atoms(emitter, statement, MATRIX, lambda c, a, b: ToyMma(c, a, b))


def copy(emitter: Emitter, statement: Copy) -> list[Stmt]:
    """A copy in accesses of 16 bytes that go on by themselves."""
    token = statement.token
    return memory_moves(emitter, statement, lambda dst, src: ToyCopyAhead(dst, src, token=token))


def commit(emitter: Emitter, statement: Commit) -> list[Stmt]:
    """What was issued is a group."""
    return [ToyCommit(statement.token)]


def wait(emitter: Emitter, statement: Wait) -> list[Stmt]:
    """All groups but the youngest are there."""
    return [ToyWait(statement.token, pending=statement.pending)]


LOWERINGS = (
    Lowering(Gemm, "toy.mma", gemm),
    Lowering(Copy, "toy.ahead", copy),
    Lowering(Commit, "toy.ahead", commit),
    Lowering(Wait, "toy.ahead", wait),
)
