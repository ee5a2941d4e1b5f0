"""Step 3: the accelerator's own words of one thread, and its own functions of elements.

A word is a node class. Its fields that name memory are marked with what is done to it, and every pass
and check asks these marks; nothing else has to be told what the word reads and writes. `stages` says in
which stages it may stand. A function of elements is a name, a number of arguments and a rule for the dtype.
"""

from __future__ import annotations

from tilebench.ir import (
    Expr,
    OpStmt,
    Region,
    ScalarFunction,
    Word,
    accumulates,
    attribute,
    node,
    operand,
    reads,
    same_as_first,
    writes,
)
from tilebench.language.stages import THREAD


@node
class ToyAxpy(OpStmt):
    """`T.toy_axpy(y[i : i + n], x[j : j + n], a)`: y += a * x on n registers of this thread, in float32."""

    word = "toy_axpy"
    stages = THREAD
    y: Region = accumulates()
    x: Region = reads()
    a: Expr = operand()


@node
class ToyWarpSum(OpStmt):
    """`T.toy_warp_sum(r[i : i + 1])`: a float32 register becomes its sum over the threads of the warp.

    All threads of the warp carry it out together, and each gets the sum.
    """

    word = "toy_warp_sum"
    stages = THREAD
    value: Region = accumulates()


@node
class ToyMma(OpStmt):
    """`T.toy_mma(c[0 : 2], a[0 : 2], b[0 : 2])`: C += A B, 4x4 each, two registers of each of 8 threads.

    Thread t holds row t // 2, columns t % 2 * 2 and the next, of each operand; float32.
    """

    word = "toy_mma"
    stages = THREAD
    c: Region = accumulates()
    a: Region = reads()
    b: Region = reads()


@node
class ToyCopyAhead(OpStmt):
    """`T.toy_copy_ahead(shared[i : i + 4], A[j : j + 4])`: 16 bytes that arrive by themselves."""

    word = "toy_copy_ahead"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()
    token: str = attribute(default="")


@node
class ToyCommit(OpStmt):
    """`T.toy_commit("ko_ahead")`: what this thread issued since its last one is a group."""

    word = "toy_commit"
    stages = THREAD
    token: str = attribute()


@node
class ToyWait(OpStmt):
    """`T.toy_wait("ko_ahead", pending=1)`: all groups of this thread but the youngest are there."""

    word = "toy_wait"
    stages = THREAD
    token: str = attribute()
    pending: int = attribute(default=0)


CLASSES = (ToyAxpy, ToyWarpSum, ToyMma, ToyCopyAhead, ToyCommit, ToyWait)
WORDS = tuple((cls.word, Word(cls)) for cls in CLASSES)
# `T.toy_ramp(x)`: x held between 0 and 1, one instruction of the accelerator.
FUNCTIONS = (ScalarFunction("toy_ramp", 1, same_as_first),)
