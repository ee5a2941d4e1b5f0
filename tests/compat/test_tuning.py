"""`autotune`: the fastest configuration, what became of the others, and calls that choose for themselves."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.compat
import tilebench.language as T
from tilebench.compat.trials import Trial, TuningReport
from tilebench.compat.tuning import AutoTuner, autotune, set_autotune_inputs
from tilebench.errors import ArgumentError

CONFIGS = [{"block": 16}, {"block": 64}, {"block": 1 << 30}]


def lazy(N=48, block=32):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            tile = T.alloc_fragment((block,), "float32")
            T.copy(A[bx * block], tile)
            for i in T.Parallel(block):
                tile[i] = tile[i] + 1
            T.copy(tile, B[bx * block])

    return main


tuned = autotune(configs=CONFIGS, rep=1)(tilebench.jit(out_idx=[1], target="cpu")(lazy))


@autotune(configs=lambda *_, **__: [{"block": 16}, {"block": 32}], rep=1)
@tilebench.jit(target="cpu")
def eager(A, block):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2
    return B


@pytest.fixture(scope="module", autouse=True)
def worker() -> Iterator[None]:
    yield
    importlib.import_module("tilebench.runtime.worker").default_worker().close()


def test_the_fastest_is_taken_and_what_is_illegal_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tilebench.compat"):
        kernel = tuned(200)
    assert kernel.config in CONFIGS[:2]
    assert kernel.latency > 0
    assert kernel.ref_latency is None
    states = [trial.state for trial in kernel.tuning.trials]
    assert states == ["timed", "timed", "illegal"]
    assert "2 of 3 configurations were timed; 1 illegal:" in caplog.text
    assert tuned(200) is kernel
    assert tuned(100) is not kernel
    a = np.ones(200, np.float32)
    np.testing.assert_array_equal(kernel(a), a + 1)


def test_a_call_that_chooses_is_not_tuned() -> None:
    kernel = tuned(200, block=8)
    assert kernel.config is None
    assert kernel.parameters["block"] == 8
    assert tuned.compile(200, 8).config is None


def test_the_eager_form_runs_the_fastest() -> None:
    a = np.arange(70, dtype=np.float32)
    np.testing.assert_array_equal(eager(a), 2 * a)
    np.testing.assert_array_equal(eager(a, 8), 2 * a)
    assert eager.compile(N=70).config in ({"block": 16}, {"block": 32})


def test_a_reference_tells_wrong_results_and_its_own_time() -> None:
    right = AutoTuner.from_kernel(lazy, CONFIGS[:1]).set_compile_args(out_idx=[1], target="llvm")
    result = right.set_profile_args(ref_prog=lambda a: a + 1).run(rep=1)
    assert result.config == {"block": 16}
    assert result.ref_latency is not None
    assert result.libcode
    wrong = AutoTuner.from_kernel(lazy, CONFIGS[:1]).set_compile_args(out_idx=[1], target="llvm")
    with pytest.raises(ArgumentError, match=r"no configuration of autotune runs: 0 of 1 .* 1 failed: Assert"):
        wrong.set_profile_args(ref_prog=lambda a: a + 2).run(rep=1)


def test_given_inputs_are_what_is_timed() -> None:
    seen: list[Any] = []

    def reference(a: Any) -> Any:
        seen.append(a.copy())
        return a + 1

    function = autotune(configs=CONFIGS[:1], rep=1, ref_prog=reference)(
        tilebench.jit(out_idx=[1], target="cpu")(lazy)
    )
    mine = np.full(48, 7, np.float32)
    with set_autotune_inputs([mine]):
        function(48)
    np.testing.assert_array_equal(seen[0], mine)


def test_options_and_places_are_checked() -> None:
    with pytest.raises(ArgumentError, match="autotune has no option warmups"):
        autotune(configs=CONFIGS, warmups=3)
    with pytest.raises(ArgumentError, match=r"autotune goes above @tilelang\.jit, found function"):
        autotune(configs=CONFIGS)(lazy)
    with pytest.raises(ArgumentError, match="autotune has no configurations"):
        autotune(configs=[])(tilebench.jit(lazy))(8)


def test_the_report_has_a_line_for_each() -> None:
    rows = (Trial({"b": 1}, "illegal", "too large"), Trial({"b": 2}, "timed", milliseconds=0.5))
    assert str(TuningReport(rows)).splitlines() == ["0.5 ms  {'b': 2}", "illegal: too large  {'b': 1}"]


def scaled(N=48, block=32):
    @T.prim_func
    def main(a: T.float32, A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] * a

    return main


def test_a_number_that_a_call_brings_has_to_be_given() -> None:
    function = autotune(configs=CONFIGS[:2], rep=1)(tilebench.jit(target="cpu")(scaled))
    with pytest.raises(
        ArgumentError, match=r"(?s)needs a value for a.*`with set_autotune_inputs\(\.\.\.\):`"
    ):
        function(48)
    with set_autotune_inputs(2.0, np.ones(48, np.float32)):
        assert function(48).config in CONFIGS[:2]
