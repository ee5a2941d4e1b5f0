"""Other implementations on a bench: interleaved runs, what is wrong or absent, a pinned configuration."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.errors import OptionError, TargetError
from tilebench.kernel.measuring.package import package_of
from tilebench.record import RunRecord
from tilebench.sweeps import child, others_child
from tilebench.sweeps.known import FORMULAS
from tilebench.sweeps.others import Other, measure_other, others_of_words
from tilebench.workbench.front.chart_data import chart_data
from tilebench.workbench.live import open_live
from tilebench.workbench.options import parse_line
from tilebench.workbench.others import OtherRuns

SHAPES = {"M": 64, "N": 48, "K": 32}


def product(A: Any, B: Any, C: Any) -> None:
    C[...] = A.astype(np.float32) @ B.astype(np.float32)


def wrong(A: Any, B: Any, _: Any) -> Any:
    return (A.astype(np.float32) @ B.astype(np.float32)) * 1.05


@pytest.fixture(scope="module")
def gemm() -> Any:
    return functions()["gemm"]


@pytest.mark.slow
def test_others_run_on_the_same_arrays_and_are_compared_with_the_reference(gemm: Any) -> None:
    kernel = gemm.using(target="cpu")(**SHAPES)
    found = {
        other.name: measure_other(other, kernel)
        for other in others_of_words(("numpy", "cublas"), {"mine": product, "wrong": wrong})
    }
    for name in ("numpy", "mine"):
        assert found[name].seconds, found[name].failure
        assert found[name].flops == 2.0 * 64 * 48 * 32
        assert found[name].config["arrays"] == "A 64x32 float16, B 32x48 float16, C 64x48 float16"
        assert "5 rounds of 30 ms" in found[name].method
    assert found["wrong"].failure == "wrong result: C is 0.05 off by the norm"
    assert found["wrong"].seconds is None
    assert found["cublas"].failure == "cuBLAS computes products on a card, and this is A @ B on the host"


@pytest.mark.slow
def test_what_no_formula_computes_is_told() -> None:
    from tests.sweeps.test_sweeps import TAIL, _function  # pyright: ignore[reportPrivateUsage]

    kernel = _function(TAIL.replace("FACTOR", "0.37"), "others_of_odd").using(target="cpu")(256, 32)
    run = measure_other(Other("numpy", "numpy"), kernel)
    assert (
        run.failure == "what main computes is none of the formulas known by name"
        or "none of the" in run.failure
    )


def test_where_triton_is_not_a_sentence_says_so(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a host, without Triton, and for what it has no kernel for; of a card all but the launch."""
    package = package_of(gemm.using(target="cpu")(**SHAPES), {})
    with pytest.raises(TargetError) as caught:
        others_child.time_other(package, "triton", "triton", 0, 5, 0.01)
    assert caught.value.message == "Triton's kernels run on a card, and this one is timed on the host"
    assert caught.value.hint == "numpy and torch run here"
    monkeypatch.setattr(others_child.importlib.util, "find_spec", missing)
    with pytest.raises(TargetError) as caught:
        others_child._check_triton(on_host=False)  # pyright: ignore[reportPrivateUsage]
    assert caught.value.message == "triton is not installed here"
    rows = next(each for each in FORMULAS if each.name == "sum(A)")
    with pytest.raises(TargetError) as caught:
        others_child._by_triton(rows, [])  # pyright: ignore[reportPrivateUsage]
    assert caught.value.message == "there is no Triton kernel for sum(A) here"
    assert "A @ B.T, A.T @ B, A + B, A * B, softmax(A), rms_norm(A), rms_norm(A, B)" in caught.value.explain()


def missing(_: str) -> None:
    return None


class Named:
    """Stands in for the module of Triton kernels: says which would be called, and with how many arrays."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arrays, **_: (name, *(a.shape for a in arrays))


class Matrix(np.ndarray[Any, Any]):
    """An array with torch's word for a transposed matrix."""

    @property
    def mT(self) -> Any:
        return self.swapaxes(-1, -2)


@pytest.mark.parametrize(
    ("name", "shapes", "called"),
    [
        ("A @ B", [(4, 6), (6, 5)], ("product", (4, 6), (6, 5))),
        ("A @ B.T", [(4, 6), (5, 6)], ("product", (4, 6), (6, 5))),
        ("A.T @ B", [(6, 4), (6, 5)], ("product", (4, 6), (6, 5))),
        ("A + B", [(4, 6), (4, 6)], ("add", (4, 6), (4, 6))),
        ("softmax(A)", [(4, 6)], ("softmax", (4, 6))),
        ("rms_norm(A, B)", [(4, 6), (6,)], ("rms_norm", (4, 6), (6,))),
        ("layer_norm(A, B, C)", [(4, 6), (6,), (6,)], ("layer_norm", (4, 6), (6,), (6,))),
    ],
)
def test_what_a_kernel_computes_finds_its_triton_kernel(
    name: str, shapes: list[tuple[int, ...]], called: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    formula = next(each for each in FORMULAS if each.name == name)
    arrays = [np.ones(shape, np.float32).view(Matrix) for shape in shapes]

    def stand_in(_: str, __: str) -> Any:
        return Named()

    monkeypatch.setattr(others_child.importlib, "import_module", stand_in)
    assert others_child._by_triton(formula, arrays)() == called  # pyright: ignore[reportPrivateUsage]


NORM = """
import tilebench
import tilebench.language as T


@tilebench.jit
def scaled(M, N):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"),
        O: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(M, threads=32) as row:
            x = T.alloc_fragment((1, N), "float32")
            y = T.alloc_fragment((1, N), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A[row, 0], x)
            T.reduce_sum(x, s, dim=1)
            for i, j in T.Parallel(1, N):
                y[i, j] = (x[i, j] - s[i] / N) * (x[i, j] - s[i] / N)
            v = T.alloc_fragment((1,), "float32")
            T.reduce_sum(y, v, dim=1)
            for i, j in T.Parallel(1, N):
                O[row + i, j] = (x[i, j] - s[i] / N) * T.rsqrt(v[i] / N + 1e-6) * W[j] + B[j]

    return main
"""


def test_norms_are_found_by_their_results_and_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference of each problem is computed once, however many alternate."""
    from tests.sweeps.test_sweeps import _function  # pyright: ignore[reportPrivateUsage]

    norm = _function(NORM, "others_of_norm").using(target="cpu")
    packages = [package_of(norm(rows, 24), {}) for rows in (3, 5, 7, 9)]
    counts = {"reference": 0, "formula": 0}
    for name, function in (("reference", "run_shared_out"), ("formula", "_formula")):
        monkeypatch.setattr(others_child, function, counted(getattr(others_child, function), counts, name))
    for _ in range(3):
        for package in packages:
            record = others_child.time_other(package, "numpy", "numpy", 5, 5, 0.001)
            assert record.seconds
            assert not record.failure
    assert counts == {"reference": 4, "formula": 4}
    formula = child.problem_of(packages[0], 5).formula
    assert formula is not None
    assert formula.name == "layer_norm(A, B, C)"
    # Of problems that are too large for that the oldest leave, and the last two stay.
    monkeypatch.setattr(child, "MOST_PROBLEM_BYTES", 100)
    for package in packages:
        others_child.time_other(package, "numpy", "numpy", 6, 5, 0.001)
    assert counts["reference"] == 8
    assert len(child._loaded.problems) == 2  # pyright: ignore[reportPrivateUsage]
    child._loaded.problems.clear()  # pyright: ignore[reportPrivateUsage]


def test_the_reference_of_a_checked_kernel_is_that_of_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same text and arrays; a sweep's own is asked for under another name."""
    from tests.sweeps.test_sweeps import _function  # pyright: ignore[reportPrivateUsage]

    package = package_of(_function(NORM, "others_of_checked").using(target="cpu")(4, 24), {})
    counts = {"reference": 0}
    for room in (child, others_child):
        function = counted(room.run_shared_out, counts, "reference")
        monkeypatch.setattr(room, "run_shared_out", function)
    assert child.time_package(package, "code", 5, 5, 0.001, True, "", "one").error is not None
    assert not others_child.time_other(package, "numpy", "numpy", 5, 5, 0.001).failure
    assert counts == {"reference": 1}
    child._loaded.problems.clear()  # pyright: ignore[reportPrivateUsage]
    child._loaded.kernels.clear()  # pyright: ignore[reportPrivateUsage]


class Compiler:
    """Stands in for torch on the host: it compiles by leaving functions as they are, and says which."""

    def __init__(self) -> None:
        self.codes: list[Any] = []

    def from_numpy(self, array: Any) -> Any:
        return array

    def compile(self, function: Any) -> Any:
        self.codes.append(function.__code__)
        return function


def test_what_another_compiles_is_compiled_once_a_problem(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch keeps compiled functions by their code, and gives up after a few of one code."""
    torch = Compiler()
    formula = next(each for each in FORMULAS if each.name == "A @ B")

    def plain(_: Any, x: Any) -> Any:
        return x[0].astype(np.float32) @ x[1].astype(np.float32)

    monkeypatch.setattr(others_child, "FORMULAS", (replace(formula, torch=plain),))
    monkeypatch.setattr(others_child, "_torch", lambda: torch)
    packages = [package_of(gemm.using(target="cpu")(**{**SHAPES, "M": m}), {}) for m in (16, 32, 48)]
    for _ in range(3):
        for package in packages:
            record = others_child.time_other(package, "torch.compile", "torch.compile", 3, 5, 0.001)
            assert record.seconds, record.failure
    assert len(torch.codes) == 3
    assert len({id(code) for code in torch.codes}) == 3
    child._loaded.problems.clear()  # pyright: ignore[reportPrivateUsage]


def counted(function: Any, counts: dict[str, int], name: str) -> Any:
    def wrapped(*args: Any) -> Any:
        counts[name] += 1
        return function(*args)

    return wrapped


def test_words_and_functions_are_told_apart() -> None:
    with pytest.raises(OptionError, match="there is no implementation called numpi"):
        others_of_words(("numpi",), {})
    with pytest.raises(OptionError, match="mine is nothing to compare with"):
        others_of_words((), {"mine": 3})
    assert parse_line("gemm --with M=1 --against numpy,mine --run").against == ("numpy", "mine")


class Made:
    """Stands in for the child: the n-th run of an implementation takes n microseconds more."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def other(self, other: Other, kernel: Any, **_: Any) -> RunRecord:
        self.calls.append(other.name)
        arrays = f"{kernel.parameters['M']}"
        if other.name == "broken":
            return RunRecord("broken", kernel.target, {"by": "broken", "arrays": arrays}, failure="not here")
        samples = tuple(2e-4 * (1 + k / 1000) for k in range(9))
        return RunRecord(
            other.name, kernel.target, {"by": other.name, "arrays": arrays}, samples, flops=1e6, bytes=1e4
        )

    def run(self, kernel: Any, **_: Any) -> RunRecord:
        self.calls.append("kernel")
        samples = tuple(1e-4 * (1 + k / 1000) for k in range(9))
        return RunRecord("gemm", kernel.target, {}, samples, "made up", flops=1e6, bytes=1e4)


def always_64(_: object) -> str:
    return "64"


def test_a_turn_gives_each_one_run_until_there_are_enough(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()
    runs = OtherRuns(made.other)
    runs.want([Other("numpy", "numpy"), Other("broken", product)])
    kernel = gemm.using(target="cpu")(**SHAPES)
    monkeypatch.setattr("tilebench.workbench.others.problem_text", always_64)
    for _ in range(6):
        runs.turn(kernel, threading.Event())
    assert made.calls.count("numpy") == 4
    assert made.calls.count("broken") == 1
    assert made.calls[:2] == ["numpy", "broken"]


def test_others_stand_in_the_chart_with_their_own_spread(gemm: Any) -> None:
    made = Made()
    bench = open_live(gemm, with_=SHAPES, target="cpu", measure=made.run, sweep={"block_M": (32, 64)})
    bench.session.others = bench.session.answering.others = OtherRuns(made.other)
    bench.against("numpy", small={"block_M": 32})
    bench.set(run=True)
    for _ in range(3):
        bench.again()
    chart = chart_data(bench.session.picture)
    assert chart is not None
    others = {other.name: other for other in chart.others}
    assert set(others) == {"numpy", "small"}
    # Twice the time of the position, by four runs each whose ranges lie apart.
    assert others["numpy"].to_best == "+100 %"
    assert others["numpy"].low is not None
    assert others["numpy"].high is not None
    assert others["numpy"].low < others["numpy"].high
    assert made.calls[:3] == ["kernel", "numpy", "small"]
    assert bench.session.others.wanted[1].pinned
    assert bench.session.others.wanted[1].what().parameters["block_M"] == 32
    bench.close()


def test_a_bench_tells_its_kernels_share_of_a_program(gemm: Any) -> None:
    bench = open_live(gemm, with_=SHAPES, target="cpu")
    kernel = gemm.using(target="cpu")(**SHAPES)
    arrays = kernel.random_arguments(0)
    share = bench.within(lambda: [kernel(*arrays) for _ in range(3)], runs=5)
    assert share.launches == 3
    assert 0 < share.part[1] <= 1
    assert "in 3 launches a run" in str(share)
    bench.close()


@pytest.mark.slow
def test_a_sweep_has_others_in_every_pass(gemm: Any) -> None:
    made = Made()
    sweep = tilebench.sweep(
        gemm, {"block_M": [32, 64]}, with_=SHAPES, target="cpu", measure=made.run, against={"mine": product},
        repeats=2, progress=False,
    )  # fmt: skip
    assert [run.kernel for run in sweep.record.others] == ["mine", "mine"]
    assert any(line.startswith("mine ") for line in sweep.table().splitlines())
