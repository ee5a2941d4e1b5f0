"""`wgmma`: products of a warp group that go on by themselves, with operands in shared memory (sm_90a).

A warp group issues products, closes a group of them, and waits for all groups but the youngest. Till then the
registers of the sums are the instruction's, and so are operands in registers and in shared memory. What
threads wrote to shared memory is seen by it after `T.fence_async_shared()` of those who wrote and a barrier.
"""

from __future__ import annotations

from ....errors import LayoutError
from ....ir import FALSE, Const, Expr, OpStmt, Region, Stmt, accumulates, attribute, node, operand, reads
from ....language.gemm import Gemm
from ....language.lowered.decisions import Instr
from ....language.lowered.settle import Settle
from ....language.lowered.tokens import BY_HAND, Commit, Wait
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
    if statement.token == BY_HAND:
        return _by_hand(emitter, statement)
    return product(emitter, statement, _WORDS)


def _by_hand(emitter: Emitter, statement: Gemm) -> list[Stmt]:
    """A product that the kernel waits for itself: its group's youngest, of which nothing is left to do."""
    key = _key(emitter)
    issued = product(emitter, statement.but(token=key), _WORDS)
    known = emitter.issued.get(key, {})
    if any(after for _, after in known.values()):
        raise LayoutError(
            "the sums of {name} are formed in another dtype, and brought back behind the product",
            at=statement.place, name=statement.c.buffer.name, dtype=statement.c.buffer.dtype.name,
            found="{dtype}", expected="float32, or int32 of integers",
            hint="T.gemm does that, and waits for its result",
        )  # fmt: skip
    last = known.pop(statement.c.buffer.name, None)
    if last is not None:
        known[statement.c.buffer.name] = last
    return issued


def _key(emitter: Emitter) -> str:
    """The token of the threads at work: each group waits for its own products."""
    return f"{BY_HAND} {emitter.threads.first} {emitter.threads.count}"


def _wait_by_hand(emitter: Emitter, pending: int) -> list[Stmt]:
    """A wait, from which on sums stand in registers: with some pending, all but those issued last."""
    sums = [region for region, _ in emitter.issued.get(_key(emitter), {}).values()]
    done = sums[:-1] if pending else sums
    return [WgmmaWait(c=region, pending=pending) for region in done] or [WgmmaWait(pending=pending)]


def commit(emitter: Emitter, statement: Commit) -> list[Stmt]:
    """What was issued is a group."""
    _check_name(statement)
    if statement.token == BY_HAND:
        return [WgmmaCommit()]
    if emitter.issued.get(statement.token) == {}:
        return []
    emitter.close_group(statement.token)
    return [WgmmaCommit()]


def wait(emitter: Emitter, statement: Wait) -> list[Stmt]:
    """All groups but the youngest are done; what the products still leave to do is done behind it."""
    _check_name(statement)
    if statement.token == BY_HAND:
        return _wait_by_hand(emitter, statement.pending)
    known = emitter.issued.get(statement.token)
    if known == {}:
        return []  # waited for in parts already
    if statement.pending:
        # Of what is left in flight, sums are still the instruction's.
        done = emitter.done_of(statement.token, statement.pending)
        return [WgmmaWait(c=region, pending=statement.pending) for region in done or (None,)]
    issued = list((known or {}).values())
    if not issued:
        return [WgmmaWait()]
    later = statement.later
    return [
        *(WgmmaWait(c=sums, pending=later) for sums, _ in issued),
        *(after for _, rest in issued for after in rest),
    ]


def _check_name(statement: Commit | Wait) -> None:
    if statement.by != Instr(WGMMA):
        raise LayoutError(
            "groups of products have no width", at=statement.place, by=statement.by, found="by={by!r}",
            expected='by=T.Instr("wgmma")',
        )  # fmt: skip


def settle(emitter: Emitter, statement: Settle) -> list[Stmt]:
    """The registers of a fragment."""
    local = emitter.fragments[statement.what.buffer.name].local
    return [Settle(Region(local, (Const(0),), extent=(local.size,)))]


LOWERINGS = (
    Lowering(Gemm, WGMMA, gemm), Lowering(Commit, WGMMA, commit), Lowering(Wait, WGMMA, wait),
    Lowering(Settle, "", settle),
)  # fmt: skip
