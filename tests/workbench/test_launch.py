"""Values of a call on the bench: sizes, strides and scalars are controls, or it is said what to give."""

from __future__ import annotations

from typing import Any

import pytest

import tilebench
from tests.waiting import LONG
from tilebench.errors import ArgumentError, remember_source
from tilebench.workbench import live
from tilebench.workbench.chart import ChartCeilings, chart_of
from tilebench.workbench.figure import run_figure
from tilebench.workbench.front.controls import typed
from tilebench.workbench.history import history_rows
from tilebench.workbench.registry import close_all
from tilebench.workbench.svg import roofline_svg

KERNELS = '''import tilebench
import tilebench.language as T

@tilebench.jit
def gemm(block_M=64, block_N=64, block_K=32):
    M, N, K = T.dynamic("M"), T.dynamic("N"), T.dynamic("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), "float32")
            B_s = T.alloc_shared((block_K, block_N), "float32")
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main

@tilebench.jit
def part(block):
    M, N, row = T.dynamic("M"), T.dynamic("N"), T.dynamic("row")

    @T.prim_func
    def main(A: T.StridedTensor((M, N), (row, 1), "float32"), O: T.Tensor((M, N), "float32"),
             n: T.int32, alpha: T.float32):
        with T.Kernel(T.ceildiv(N, block), M) as (bx, by):
            for j in T.Parallel(block):
                if bx * block + j < n:
                    O[by, bx * block + j] = A[by, bx * block + j] * alpha

    return main
'''  # fmt: skip
SIZES = {"M": 100, "N": 90, "K": 80}
PART = {"block": 64, "M": 10, "N": 100, "row": 128, "n": 50, "alpha": 2.5}


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    remember_source("launch_kernels.py", KERNELS)
    found: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(KERNELS, "launch_kernels.py", "exec"), found)
    return found


def opened(kernel: Any, **options: Any) -> live.Workbench:
    return tilebench.workbench(kernel, target="cpu", stages=("tile",), run=True, check=True, **options)


def test_sizes_of_a_call_are_sliders_and_positions(space: dict[str, Any]) -> None:
    bench = opened(space["gemm"], with_={"N": 90, "K": 80}, sweep={"M": [100, 200]})
    assert bench.error is None
    assert bench.report.ok
    first = bench.record
    bench.set(M=200)
    assert bench.report.ok
    assert bench.record.stages == first.stages  # the size chooses no code
    small, large = bench.runs
    assert (small.config["M"], large.config["M"]) == (100, 200)
    assert large.flops == 2 * small.flops == 2 * 2 * 100 * 90 * 80
    # Times of other work are not compared, rates are; each stands where its own intensity is.
    heads, rows = history_rows(bench.history)
    assert rows[0][heads.index("change")].text == "other work"
    assert all(" best" not in row[heads.index("time")].text for row in rows)
    assert chart_of(bench.runs).leader.decided is False
    ceilings = ChartCeilings(1e11, 1e10)
    data = run_figure(bench.runs, ceilings, kind="roofline")["data"][1]
    assert data["x"] == pytest.approx([small.flops / small.bytes, large.flops / large.bytes])
    assert data["x"][0] != data["x"][1]
    assert roofline_svg(chart_of(bench.runs, ceilings)).count("<circle") == 2


def test_strides_and_scalars_of_a_call(space: dict[str, Any]) -> None:
    bench = opened(space["part"], with_=PART, sweep={"alpha": [2.5, 3.0]})
    assert bench.error is None
    assert bench.report.ok
    bench.set(alpha=3.0, row=100, n=7)
    assert bench.report.ok
    assert bench.runs[-1].config["row"] == 100
    assert bench.runs[-1].config["alpha"] == 3.0
    assert bench.set(row=256).error is None


@pytest.mark.parametrize("as_kernel", [False, True])
def test_what_is_missing_is_said_with_what_to_give(space: dict[str, Any], as_kernel: bool) -> None:
    kernel = space["gemm"].using(target="cpu")
    bench = opened(kernel() if as_kernel else kernel, with_={"M": 100})
    assert bench.record is not None  # the stages need no sizes
    assert not bench.runs
    assert "values of a call: K, N" in bench.error.message
    said = bench.error.explain()
    assert "--with K=1000 N=1000, as a slider (--sweep K=1000,...), or in their fields" in said
    bench.set(K=80, N=90)
    assert bench.error is None
    assert bench.report.ok
    assert bench.runs[0].seconds
    bench.set(M="many")
    assert "a whole number" in bench.error.explain()
    assert len(bench.runs) == 1
    bench.set(M=None)
    assert "values of a call: M" in bench.error.message


def test_examples_fit_the_types(space: dict[str, Any]) -> None:
    bench = opened(space["part"], with_={"block": 64})
    assert "--with M=1000 N=1000 row=1000 n=1 alpha=1.0," in bench.error.explain()


def test_names_that_neither_knows(space: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="gemm has no parameter Q") as caught:
        opened(space["gemm"], with_={"Q": 3})
    assert "; a call of it gives M, K, N" in caught.value.explain()
    with pytest.raises(ArgumentError, match="part needs a value for block"):
        opened(space["part"], with_={"M": 3})


def test_a_value_of_a_call_is_typed_into_a_field(
    space: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anywidget")
    monkeypatch.setattr(live, "is_interactive", lambda: True)
    bench = tilebench.workbench(
        space["gemm"], with_={"M": 100, "N": 90}, sweep={"N": [90, 180]}, target="cpu", stages=("tile",)
    )

    def said(name: str, index: int, text: str = "") -> None:
        message = {"kind": "set", "name": name, "index": index, "text": text}
        bench._view.widget._handle_custom_msg(message, [])

    def controls() -> dict[str, Any]:
        return {each["name"]: each for each in bench._view.widget.state["controls"]}

    try:
        assert bench.wait(LONG)
        assert (controls()["M"]["labels"], controls()["M"]["text"]) == ([], "100")
        assert (controls()["K"]["labels"], controls()["K"]["text"]) == ([], "")
        assert controls()["N"]["labels"] == ["90", "180"]
        said("K", -1, "80")
        said("N", 1)
        assert bench.wait(LONG)
        assert bench.session.wish.sizes == {"M": 100, "N": 180, "K": 80}
        said("M", -1, "")
        assert bench.session.wish.sizes == {"N": 180, "K": 80}
        bench.set(M=7)
        assert bench.wait(LONG)
        assert controls()["M"]["text"] == "7"
    finally:
        close_all()


@pytest.mark.parametrize(("text", "value"), [("7", 7), (" 2.5 ", 2.5), ("", None), ("1x", "1x")])
def test_typed(text: str, value: Any) -> None:
    assert typed(text) == value
