"""An operation from another package: called in a kernel, checked, and run on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.targets.test_toy_plugin import simulate
from tilebench.errors import ShapeError, TargetError
from tilebench.ir import parse_function, print_function
from tilebench.language import extensions
from tilebench.language.words import registry
from tilebench.simulator import run_threaded
from tilebench.targets import Manifest

pytestmark = pytest.mark.usefixtures("toy")


@tilebench.jit
def flipped(M, N, threads=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=threads) as bx:
            s = T.alloc_shared((4, N), "float32")
            t = T.alloc_shared((4, N), "float32")
            T.copy(A[bx * 4, 0], s)
            T.toy_flip(s, t)
            T.copy(t, B[bx * 4, 0])

    return main


def run(kernel: Any, toy: Manifest, a: Any, b: Any) -> None:
    if kernel.target.startswith("cpu"):
        kernel(a, b)
    elif kernel.target == "toy":
        kernel.stage("threaded")
        simulate(toy, kernel.compilation.functions["threaded"], [a, b])
    else:
        kernel.stage("ptx")
        run_threaded(kernel.compilation.functions["threaded"], {"A": a, "B": b}, warp=32)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "toy"])
@pytest.mark.parametrize("shape", [(8, 40), (6, 33), (4, 1)])
def test_it_runs_on_every_target(toy: Manifest, target: str, shape: tuple[int, int]) -> None:
    a = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    b = np.full_like(a, np.nan)
    kernel = flipped.using(target=target)(*shape)
    run(kernel, toy, a, b)
    assert np.array_equal(b, a[:, ::-1])


def test_its_effects_are_its_marks() -> None:
    # The passes know nothing of it, and put barriers where its tiles are handed on.
    lines = flipped.using(target="cuda:sm_80")(8, 40).stage("threaded").splitlines()
    assert [line.strip() for line in lines if "sync_threads" in line] == [
        'T.sync_threads(why="s: read after write")', 'T.sync_threads(why="t: read after write")',
    ]  # fmt: skip


def test_the_reference_checks_it_and_texts_parse_back() -> None:
    kernel = flipped.using(target="cpu")(8, 40)
    report = kernel.check()
    assert report.ok, report
    text = kernel.stage("tile")
    assert "T.toy_flip(s, t)" in text
    assert print_function(parse_function(text, registry())).text == text


def test_its_own_checks_are_told_at_the_users_line() -> None:
    def wrong():
        @T.prim_func
        def main(A: T.Tensor((4, 4), "float32")):
            with T.Kernel(1) as bx:
                f = T.alloc_fragment((4, 4), "float32")
                T.toy_flip(f, f)

        return main

    with pytest.raises(ShapeError, match=r"T\.toy_flip takes a shared tile") as caught:
        tilebench.jit(wrong).using(target="cpu")()
    assert "T.toy_flip(f, f)" in str(caught.value)


def test_a_road_without_rows_refuses_it_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilebench.passes.threads import lowering

    monkeypatch.setattr(lowering, "rows_for", lambda road, cls: ())
    lowering._of_packages.cache_clear()
    try:
        with pytest.raises(TargetError, match=r"T\.toy_flip has no code for cuda:sm_80") as caught:
            flipped.using(target="cuda:sm_80")(8, 40).stage("threaded")
    finally:
        lowering._of_packages.cache_clear()
    assert "T.toy_flip(s, t)" in str(caught.value)
    assert "what has: " in str(caught.value)


def test_without_the_package_the_name_is_not_there() -> None:
    assert extensions.function_of("toy_flip") is not None
    assert extensions.function_of("toy_flop") is None
    with pytest.raises(AttributeError, match=r"there is no T\.toy_flop"):
        _ = T.toy_flop  # type: ignore[attr-defined]
