"""What TileLang's files ask of kernel objects and calls: its names, None for an array, one block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tilebench.compat.compiling import target_of
from tilebench.errors import ArgumentError, OptionError


@tilebench.jit(target="cpu", out_idx=[-1])
def scaled(N: int, biased: bool = False) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):  # type: ignore[valid-type]
        with T.Kernel(threads=32):
            for i in T.Parallel(N):
                if biased:
                    C[i] = A[i] * 2.0 + B[i]
                else:
                    C[i] = A[i] * 2.0

    return main


def test_a_kernel_without_a_grid_is_one_block() -> None:
    kernel = scaled(8)
    assert "with T.Kernel(1, threads=32)" in kernel.stage("tile")
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(kernel(a, a), 2 * a)
    assert "T.Kernel(1, threads=32)" in scaled.using(target="cuda:sm_80")(8).stage("threaded")


def test_none_stands_for_an_array_that_is_not_touched() -> None:
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(scaled(8)(a, None), 2 * a)
    with pytest.raises(ArgumentError) as caught:
        scaled(8, biased=True)(a, None)
    assert caught.value.message == "B is None, and the kernel reads it"
    with pytest.raises(ArgumentError, match="A is None, and the kernel reads it"):
        scaled(8)(None, a)
    with pytest.raises(ArgumentError, match="A is no array"):
        scaled(8)([1.0], a)


def test_names_of_kernel_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = scaled(8)
    assert kernel.out_idx == [2]
    assert [each.name for each in kernel.params] == ["A", "B", "C"]
    assert kernel.prim_func == scaled.get_tir(8) == kernel.compilation.functions["tile"]
    assert kernel.get_kernel_source(kernel_only=True) == kernel.stage("llvm")
    kernel.show_source()
    kernel.show_ptx()
    shown = capsys.readouterr().out
    assert kernel.stage("llvm") in shown
    assert kernel.stage("asm") in shown
    kernel.export_sources(kernel_path=tmp_path / "kernel.ll")
    assert (tmp_path / "kernel.ll").read_text() == kernel.stage("llvm")
    kernel.export_ptx(tmp_path / "kernel.s")
    assert (tmp_path / "kernel.s").read_text() == kernel.stage("asm")
    for refused, said in (
        (kernel.get_host_source, "scaled has no host source: its launches are made in this process"),
        (kernel.export_library, "scaled is no library that another program loads"),
        (kernel.show_sass, f"kernels for {kernel.target} have no such text"),
        (kernel.export_sources, "export_sources needs the path of a file"),
    ):
        with pytest.raises(OptionError) as caught:
            refused()
        assert caught.value.message == said


def test_kernels_of_several_parameters_are_compiled_at_once() -> None:
    one, two = scaled.par_compile([(8,), {"N": 16}])
    assert one.parameters["N"] == 8
    assert two is scaled(16)
    assert two.compilation.build is not None


def test_targets_as_texts_of_tvm() -> None:
    assert target_of("cuda -arch=sm_80") == "cuda:sm_80"
    assert target_of("cuda -keys=cuda,gpu -arch=sm_90a -max_num_threads=1024") == "cuda:sm_90a"
    assert target_of("llvm -mcpu=native") == "cpu"
