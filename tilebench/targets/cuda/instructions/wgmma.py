"""`wgmma`: products of a warp group that go on by themselves, with operands in shared memory (sm_90a).

A warp group issues products, closes a group of them, and waits for all groups but the youngest. Till then the
registers of the sums are the instruction's, and so are operands in registers and in shared memory. What
threads wrote to shared memory is seen by it after `T.fence_async_shared()` of those who wrote and a barrier.
"""

from __future__ import annotations

from ....errors import LayoutError
from ....ir import FALSE, Expr, OpStmt, Region, Stmt, accumulates, attribute, node, operand, reads
from ....language.gemm import Gemm
from ....language.lowered.decisions import Instr
from ....language.lowered.tokens import Commit, Wait
from ....language.stages import THREAD
from ....passes.threads.emitter import Emitter
from ....passes.threads.lowering import Lowering
from ..warp_groups import WGMMA, MatrixForm
from .wgmma_gemm import Words, product


@node
class Wgmma(OpStmt):
    """`T.wgmma(c[0 : 128], A_s[i : i + n], B_s[j : j + m], "m64n256k16", ...)`: C += A B of a warp group.

    The regions of A and B begin at the first element that is read, and `a_form` and `b_form` say how the
    instruction goes on from there; of an operand in registers the form is None. With `clear` the sum starts
    at zero.
    """

    word = "wgmma"
    stages = THREAD
    by_proxy = True
    c: Region = accumulates(unless="clear")
    a: Region = reads()
    b: Region = reads()
    shape: str = attribute()
    a_form: MatrixForm | None = attribute(default=None)
    b_form: MatrixForm | None = attribute(default=None)
    clear: Expr = operand(default=FALSE)


@node
class WgmmaFence(OpStmt):
    """`T.wgmma_fence()`: registers that this warp group's threads wrote stand for products from here on."""

    word = "wgmma_fence"
    stages = THREAD


@node
class WgmmaCommit(OpStmt):
    """`T.wgmma_commit()`: the products that this warp group issued since its last one are a group."""

    word = "wgmma_commit"
    stages = THREAD


@node
class WgmmaWait(OpStmt):
    """`T.wgmma_wait(c[0 : 128], pending=1)`: all groups of products but the youngest are done.

    `c` are registers of sums, which nothing may use before.
    """

    word = "wgmma_wait"
    stages = THREAD
    c: Region | None = accumulates(default=None)
    pending: int = attribute(default=0)


CLASSES = (Wgmma, WgmmaFence, WgmmaCommit, WgmmaWait)
VALUES = (MatrixForm,)
_WORDS = Words(Wgmma, WgmmaFence, WgmmaCommit, WgmmaWait)


def gemm(emitter: Emitter, statement: Gemm) -> list[Stmt]:
    """A product of the warp groups of a block, issued."""
    return product(emitter, statement, _WORDS)


def commit(emitter: Emitter, statement: Commit) -> list[Stmt]:
    """What was issued is a group."""
    _check_name(statement)
    return [] if emitter.issued.get(statement.token) == {} else [WgmmaCommit()]


def wait(emitter: Emitter, statement: Wait) -> list[Stmt]:
    """All groups but the youngest are done; what the products still leave to do is done behind it."""
    _check_name(statement)
    known = emitter.issued.get(statement.token)
    if known == {}:
        return []  # waited for in parts already
    issued = list((known or {}).values())
    if statement.pending or not issued:
        return [WgmmaWait(pending=statement.pending)]  # sums are still the instruction's
    return [*(WgmmaWait(c=sums) for sums, _ in issued), *(after for _, rest in issued for after in rest)]


def _check_name(statement: Commit | Wait) -> None:
    if statement.by != Instr(WGMMA):
        raise LayoutError(
            "groups of products have no width", at=statement.place, by=statement.by, found="by={by!r}",
            expected='by=T.Instr("wgmma")',
        )  # fmt: skip


LOWERINGS = (Lowering(Gemm, WGMMA, gemm), Lowering(Commit, WGMMA, commit), Lowering(Wait, WGMMA, wait))
