"""Elements that a kernel never writes: a fault in an array that its call makes, a count in one passed in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.passes.test_thread_groups import TARGETS
from tests.simulated import run_threaded
from tilebench.kernel.measuring.measure import measure_kernel
from tilebench.reference import CheckError, CheckReport, check_function
from tilebench.workbench.check_view import check_text


@tilebench.jit
def eager(A, B, rows: int = 3, whole: int = 0, block: int = 32):
    """`B` is passed in and `C` made; unless `whole`, the rows from `rows` on are left out of both."""
    N = T.const("N")
    A: T.Tensor((4, N), "float32")
    B: T.Tensor((4, N), "int32")
    C = T.empty((4, N), "float16")
    with T.Kernel(T.ceildiv(N, block), 4, threads=32) as (bx, by):
        for i in T.Parallel(block):
            if by < rows or whole == 1:
                B[by, bx * block + i] = bx * block + i
                C[by, bx * block + i] = T.cast(A[by, bx * block + i], "float16")
    return C


@tilebench.jit(out_idx=2)
def factory(N, rows=3, whole=0, block=32):
    """The same as a factory, with a copy of whole tiles."""

    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), B: T.Tensor((4, N), "int32"), C: T.Tensor((4, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), 4 if whole else rows, threads=32) as (bx, by):
            tile = T.alloc_shared((1, block), "float32")
            T.copy(A[by, bx * block], tile)
            for i in T.Parallel(block):
                B[by, bx * block + i] = bx * block + i
            T.copy(tile, C[by, bx * block])

    return main


@tilebench.jit(out_idx=-1)
def signs(N):
    """Bools have no poison: what was stored is counted, not what the array holds."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "bool")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N - 2):
                B[i] = A[i] > 0

    return main


def made(form: str, target: str, **values: int) -> Any:
    if form == "eager":
        return eager.compile(N=40, target=target, **values)
    return factory.using(target=target)(40, **values)


def checked(kernel: Any) -> CheckReport:
    """The check of a kernel: its own, and in the simulator what it does for a card."""
    if kernel.target.startswith("cpu"):
        return kernel.check(seed=1)
    before = kernel.inputs(1)
    after = {name: array.copy() for name, array in before.items()}
    kernel.stage("threaded")
    run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
    return check_function(kernel.meaning, before, after, fresh=kernel.output_names)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["eager", "factory"])
def test_an_array_that_the_call_makes_is_written_everywhere(form: str, target: str) -> None:
    report = checked(made(form, target))
    passed, own = report.outputs
    assert (passed.unwritten, passed.outside, passed.ok) == (40, 0, True)
    assert (own.unwritten, own.outside, own.ok) == (40, 40, False)
    assert {element.index[0] for element in own.worst} == {3}
    with pytest.raises(CheckError, match=r"40 of 160 elements of \w+ are outside") as caught:
        report.raise_if_wrong()
    for name in (passed.name, own.name):
        assert f"{name}: 40 elements were never written" in str(caught.value)
    text = check_text(report)
    assert f"ok: {passed.name}: 160 elements, all exact, 40 never written" in text
    assert f"WRONG: {own.name}: 160 elements, 40 outside their bounds (25" in text
    assert text.count("40 never written") == 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["eager", "factory"])
def test_what_is_written_everywhere_passes(form: str, target: str) -> None:
    report = checked(made(form, target, whole=1))
    assert report.ok
    assert "never written" not in str(report) + check_text(report)


@pytest.mark.parametrize("target", TARGETS)
def test_a_dtype_without_poison(target: str) -> None:
    report = checked(signs.using(target=target)(20))
    assert (report.ok, report.outputs[0].unwritten, report.outputs[0].outside) == (False, 2, 2)


@pytest.mark.parametrize("form", ["eager", "factory"])
def test_a_measurement_says_so_too(form: str) -> None:
    wrong = measure_kernel(made(form, "cpu"), seconds=0.01)
    assert "40 elements outside their bound, 80 never written" in wrong.failure
    assert not measure_kernel(made(form, "cpu", whole=1), seconds=0.01).failure


def test_a_part_of_an_array_that_is_also_read_is_left_out_on_purpose() -> None:
    kernel = doubled.using(target="cpu")(20)
    report = kernel.check()
    assert (report.ok, report.outputs[0].unwritten) == (True, 0)


@tilebench.jit
def doubled(N):
    @T.prim_func
    def main(B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N - 2):
                B[i] = B[i] * 2.0

    return main


def test_arrays_that_are_given_count_as_the_random_ones() -> None:
    kernel = made("factory", "cpu")
    a = np.ones((4, 40), np.float32)
    report = kernel.check(a, np.zeros((4, 40), np.int32), np.zeros((4, 40), np.float16))
    assert [output.unwritten for output in report.outputs] == [40, 40]
    assert [output.ok for output in report.outputs] == [True, False]
