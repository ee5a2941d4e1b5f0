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
    node,
    operand,
    reads,
    same_as_first,
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


WORDS = tuple((cls.word, Word(cls)) for cls in (ToyAxpy, ToyWarpSum))
# `T.toy_ramp(x)`: x held between 0 and 1, one instruction of the accelerator.
FUNCTIONS = (ScalarFunction("toy_ramp", 1, same_as_first),)
