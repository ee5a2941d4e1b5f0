"""Which parameters are read and written, by the words of every stage."""

from __future__ import annotations

import pytest

from tests import kernels
from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.passes.analysis.reads_writes import reads_and_writes
from tilebench.targets import manifest

STAGES = ["tile", "bounded", "laid_out", "pipelined", "threaded"]


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_kernel_reads_and_writes_shows_in_every_stage(stage: str) -> None:
    for kernel, shape, reads, writes in (
        (kernels.add_kernel, (100, 75), ("A", "B"), ("C",)),
        (kernels.gemm_kernel, (100, 75, 90), ("A", "B"), ("C",)),
        (kernels.softmax_kernel, (5, 47), ("A",), ("C",)),
    ):
        text = kernel.using(target="cuda:sm_80")(*shape).stage(stage)
        assert reads_and_writes(parse_function(text, manifest("cuda").registry)) == (reads, writes)


def test_on_the_way_of_the_cpu_too() -> None:
    text = kernels.gemm_kernel.using(target="cpu:x86-64-v3")(100, 75, 90).stage("loops")
    assert reads_and_writes(parse_function(text, manifest("cpu").registry)) == (("A", "B"), ("C",))


def test_a_parameter_that_is_added_to_is_read_and_written() -> None:
    text = """@T.prim_func
def f(A: T.Tensor((8,), T.float32), B: T.Tensor((8,), T.float32), C: T.Tensor((8,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        T.fill(C, T.float32(0))
        for i in T.Parallel(8):
            B[i] = B[i] + A[i]
"""
    assert reads_and_writes(parse_function(text, registry())) == (("A", "B"), ("B", "C"))
