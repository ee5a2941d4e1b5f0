"""Effects are read off the marks of fields: what a statement touches, and whether it starts afresh."""

from __future__ import annotations

import pytest

from tilebench.ir import (
    ACCUMULATES,
    READS,
    WORKS,
    WRITES,
    Function,
    OpStmt,
    effects_of,
    names_read_and_written,
    parse_function,
    walk,
)
from tilebench.ir.effects import region_written, regions_read
from tilebench.language.words import registry

HEAD = """@T.prim_func
def f(A: T.Tensor((16, 16), T.float32), B: T.Tensor((16, 16), T.float32), C: T.Tensor((16, 16), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((16,), T.float32)
        m = T.alloc_fragment((16,), T.float32)
        {line}
"""


def parsed(line: str) -> tuple[Function, OpStmt]:
    function = parse_function(HEAD.format(line=line), registry())
    return function, next(node for node in walk(function) if isinstance(node, OpStmt))


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("T.copy(A, B)", [("A", READS), ("B", WRITES)]),
        ("T.fill(C, T.float32(0))", [("C", WRITES)]),
        ("T.gemm(A, B, C)", [("A", READS), ("B", READS), ("C", ACCUMULATES)]),
        ("T.gemm(A, B, C, clear_accum=True)", [("A", READS), ("B", READS), ("C", WRITES)]),
        # What is decided while the kernel runs may go either way.
        ("T.gemm(A, B, C, clear_accum=bx == 0)", [("A", READS), ("B", READS), ("C", ACCUMULATES)]),
        ("T.reduce_sum(A, m)", [("A", READS), ("m", WRITES)]),
        ("T.reduce_sum(A, m, clear=False)", [("A", READS), ("m", ACCUMULATES)]),
        ("T.reduce_sum(A, m, scratch=s)", [("A", READS), ("m", WRITES), ("s", WORKS)]),
    ],
)
def test_each_field_has_its_effect(line: str, kinds: list[tuple[str, str]]) -> None:
    _, statement = parsed(line)
    assert [(effect.buffer.name, effect.kind) for effect in effects_of(statement)] == kinds


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("T.copy(A, B)", {"A"}, {"B"}),
        ("T.gemm(A, B, C)", {"A", "B", "C"}, {"C"}),
        ("T.gemm(A, B, C, clear_accum=True)", {"A", "B"}, {"C"}),
        ("T.gemm(A, B, C, clear_accum=A[0, 0] > T.float32(0))", {"A", "B", "C"}, {"C"}),
        ("T.reduce_max(A, m, clear=False)", {"A", "m"}, {"m"}),
        ("T.reduce_max(A, m)", {"A"}, {"m"}),
        # Nothing of it outlives the operation, but whoever else uses these bytes must wait.
        ("T.reduce_max(A, m, scratch=s)", {"A", "s"}, {"m", "s"}),
        ("B[0, bx] = B[0, bx] + A[0, bx]", {"A", "B"}, {"B"}),
    ],
)
def test_names_read_and_written(line: str, reads: set[str], writes: set[str]) -> None:
    function = parse_function(HEAD.format(line=line), registry())
    assert names_read_and_written([function]) == (reads, writes)


def test_old_values_go_in_unless_the_kernel_starts_afresh_now() -> None:
    _, gemm = parsed("T.gemm(A, B, C, clear_accum=bx == 0)")
    assert [region.buffer.name for region in regions_read(gemm)] == ["A", "B", "C"]
    assert [region.buffer.name for region in regions_read(gemm, {"clear_accum": False})] == ["A", "B", "C"]
    assert [region.buffer.name for region in regions_read(gemm, {"clear_accum": True})] == ["A", "B"]
    assert region_written(gemm).buffer.name == "C"
    assert region_written(parsed("T.reduce_max(A, m, scratch=s)")[1]).buffer.name == "m"
