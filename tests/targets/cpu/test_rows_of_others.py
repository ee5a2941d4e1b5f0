"""Loops over rows with a word that the passes have never seen: its marks alone say what may be moved."""

from __future__ import annotations

from typing import Any

import pytest

from tests.targets.cpu.test_lowerings import Spin
from tilebench.ir import Region, Word, accumulates, attribute, node, parse_function, print_function, reads
from tilebench.ir.stmt import OpStmt
from tilebench.passes.context import Context
from tilebench.targets.cpu import manifest
from tilebench.targets.cpu.machine import cpu_machine, named_isa
from tilebench.targets.cpu.rows.contract_rows import contract_rows
from tilebench.targets.cpu.rows.fuse_rows import fuse_rows


@node
class Shuffle(OpStmt):
    """`T.shuffle(X[i : i + 1, 0:32], C[i : i + 1, 0:32])` in `loops`: an operation on rows of a package."""

    word = "shuffle"
    stages = frozenset({"loops"})
    src: Region = reads()
    dst: Region = accumulates()
    seed: int = attribute(default=0)


REGISTRY = manifest().registry.extended(((Spin.word, Word(Spin)), (Shuffle.word, Word(Shuffle))))
HEAD = """
@T.prim_func
def main(A: T.Tensor((16, 32), T.float32), C: T.Tensor((16, 32), T.float32)):
    with T.Kernel(1, threads=1) as (bx,):
        X = T.alloc_scratch((16, 32), T.float32, layout=T.PaddedRows(32, 16))
        for i in T.serial(16):
            for j in T.vectors(32, lanes=16):
                X[i, j] = A[i, j]
        for i__2 in T.serial(16):
            {}
            for j__2 in T.vectors(32, lanes=16):
                C[i__2, j__2] = X[i__2, j__2]
"""


def fused(line: str) -> Any:
    context = Context(cpu_machine(named_isa("x86-64-v4")))
    return fuse_rows(parse_function(HEAD.format(line), REGISTRY), context), context


@pytest.mark.parametrize(
    ("line", "joined"),
    [
        ("T.spin(X[i__2, 0], 7)", True),  # its own row
        ("T.spin(X[0, 0], 7)", False),  # one row in all turns
        ("T.spin(X[i__2 - 1, 0], 7)", False),  # two different rows
        ("T.shuffle(X[i__2 : i__2 + 1, 0:32], C[i__2 : i__2 + 1, 0:32])", True),
        ("T.shuffle(X[0:16, 0:32], C[i__2 : i__2 + 1, 0:32])", False),  # rows not yet filled
        ("T.shuffle(X[i__2 : i__2 + 1, 0:32], C[0:16, 0:32])", False),  # boxes of rows stay whole
    ],
)
def test_joined_where_each_turn_has_its_own_row(line: str, joined: bool) -> None:
    function, _ = fused(line)
    assert (print_function(function).text.count("T.serial(16)") == 1) == joined


def test_a_row_that_an_operation_wants_in_memory_stays() -> None:
    function, context = fused("T.shuffle(X[i__2 : i__2 + 1, 0:32], C[i__2 : i__2 + 1, 0:32])")
    text = print_function(contract_rows(function, context)).text
    assert "X = T.alloc_scratch((1, 32)" in text
    assert "X[0, j] = A[i, j]" in text
    assert "T.shuffle(X, C[i, :])" in text


def test_a_row_is_not_read_again_from_an_array_that_an_operation_writes() -> None:
    text = HEAD.format("T.spin(A[i__2, 0], 7)")
    context = Context(cpu_machine(named_isa("x86-64-v4")))
    function = fuse_rows(parse_function(text, REGISTRY), context)
    assert "X[0, j] = A[i, j]" in print_function(contract_rows(function, context)).text
