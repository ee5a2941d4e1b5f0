"""Steps of a ring that overlap: the next scores are multiplied in front of what this step's weights meet."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.simulated import card_words, run_threaded
from tilebench.ir import parse_function
from tilebench.library.kernels.attention import attention_kernel
from tilebench.schedule import Schedule
from tilebench.simulator import SimulationError

CARD = "cuda:sm_90a"
CHOSEN: dict[str, Any] = {
    "copy": {name: {"instruction": "tma"} for name in ("q_s", "k_s", "v_s")},
    "gemm": {name: {"instruction": "wgmma"} for name in ("s", "acc")},
    "loop": {"kb": {"overlap": True}}, "warp_specialize": True,
}  # fmt: skip
# Batches, heads, heads of keys, queries, keys, dimension, causal; then the tile, stages and threads.
SMALL = (1, 1, 1, 128, 192, 64, "float16", False, 0, 0, 0, 0, 64, 64, 2, 128)


def made(sizes: tuple[Any, ...] = SMALL, **more: Any) -> Any:
    return attention_kernel.using(target=CARD, schedule=Schedule.of(**{**CHOSEN, **more}))(*sizes)


def arrays_of(sizes: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
    """Arguments, and what attention is in float64."""
    batches, heads, of_keys, queries, keys, depth, _, causal = sizes[:8]
    rng = np.random.default_rng(queries + keys)
    q = rng.standard_normal((batches, heads, queries, depth)).astype(np.float16)
    k, v = (rng.standard_normal((batches, of_keys, keys, depth)).astype(np.float16) for _ in range(2))
    wide_k, wide_v = (np.repeat(x.astype(np.float64), heads // of_keys, 1) for x in (k, v))
    scores = q.astype(np.float64) @ wide_k.swapaxes(2, 3) / np.sqrt(depth)
    if causal:
        hidden = np.arange(keys)[None] > np.arange(queries)[:, None] + keys - queries
        scores = np.where(hidden, -np.inf, scores)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(-1, keepdims=True)
    wanted = weights / np.where(total == 0, 1, total) @ wide_v
    return {"q": q, "k": k, "v": v, "o": np.full(q.shape, 7, np.float16)}, wanted


def simulated(kernel: Any, arrays: dict[str, Any]) -> Any:
    kernel.stage("cuda")
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    return arrays["o"]


@pytest.mark.parametrize("persistent", [False, 2])
@pytest.mark.parametrize(
    ("shape", "causal", "tile"),
    [
        ((1, 2, 1, 128, 256, 64), False, (128, 64, 2, 256)),
        ((1, 1, 1, 100, 330, 128), False, (64, 80, 2, 128)),
        ((2, 1, 1, 200, 200, 64), True, (64, 64, 3, 128)),
        # The first rows see no key, and their loop has no iteration.
        ((1, 1, 1, 150, 70, 64), True, (64, 64, 2, 128)),
        ((1, 1, 1, 60, 400, 64), True, (64, 32, 4, 128)),
    ],
    ids=str,
)
def test_the_same_numbers(shape: Any, causal: bool, tile: Any, persistent: Any) -> None:
    sizes = (*shape, "float16", causal, 0, 0, 0, 0, *tile)
    kernel = made(sizes, persistent=persistent)
    assert "kb_products" in kernel.stage("pipelined")
    arrays, wanted = arrays_of(sizes)
    assert np.abs(simulated(kernel, arrays) - wanted).max() < 1e-3


def test_what_a_step_does_in_which_order() -> None:
    kernel = made()
    text = kernel.stage("pipelined")
    before, loop = text.split("for kb in T.serial(2):")
    words = re.findall(r"T\.(\w+)\(", re.sub(r"T\.(Instr|float32|Fragment|exp2|if_then_else)\(", "(", loop))
    assert words[:7] == ["gemm", "commit", "mbarrier_wait", "gemm", "commit", "wait", "release_tiles"]
    assert words[7:20] == [
        "reduce_max", "Parallel", "Parallel", "reduce_sum", "Parallel", "wait", "settle", "mbarrier_wait",
        "wait", "release_tiles", "Parallel", "copy", "mbarrier_wait",
    ]  # fmt: skip
    # The first scores stand in front, and the last weights behind.
    assert before.count("T.gemm(q_s, k_s.version(0), s,") == 1
    assert words[20:24] == ["gemm", "commit", "wait", "release_tiles"]
    waits = re.findall(r'T\.wait\("kb_products"(?:, pending=(\d))?', loop)
    assert waits == ["1", "1", "", ""]
    assert "k_s.version((kb + 1) % 2)" in loop
    assert "v_s.version(kb % 2)" in loop
    said = {r.message for r in kernel.record().remarks}
    told = "steps overlap: the product into s of the next iteration is issued in front of the one into acc"
    assert told in said


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        # The scores are read while they are multiplied, the weights written while they are.
        (("T.wgmma_wait(c=s, pending=1)", "T.wgmma_wait(c=s, pending=2)"), "s is read while T.wgmma of line"),
        (
            ("T.wgmma_wait(c=s)\n                T.wgmma_wait(c=acc)\n", "pass\n"),
            "p is written while T.wgmma of",
        ),
    ],
)
def test_a_step_that_waits_too_little_is_refused(change: tuple[str, str], refusal: str) -> None:
    kernel = made()
    text = kernel.stage("threaded")
    assert change[0] in text
    function = parse_function(text.replace(*change), card_words())
    with pytest.raises(SimulationError, match=refusal):
        run_threaded(function, arrays_of(SMALL)[0], warp=32)


@tilebench.jit
def other(kind, dtype="float32"):
    """Loops that a step cannot overlap in."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            first = T.alloc_fragment((64, 64), dtype)
            narrow = T.alloc_fragment((64, 64), "float16")
            total = T.alloc_fragment((64, 64), dtype)
            T.clear(first)
            T.clear(total)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, 0], B_s)
                T.gemm(A_s, B_s, first)
                if kind == "same":
                    T.gemm(A_s, B_s, first)
                if kind in ("behind", "two", "rounded"):
                    T.copy(first, narrow)
                    T.gemm(narrow, B_s, total)
                if kind == "behind":
                    T.copy(total, first)
            T.copy(total, C)

    return main


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("one", "an iteration has two products that go on by themselves, of which one is its end"),
        ("behind", "an iteration has two products that go on by themselves, of which one is its end"),
        ("same", "both products use first"),
        ("rounded", "the sum first is rounded in each step"),
    ],
)
def test_what_cannot_overlap_is_said(kind: str, why: str) -> None:
    names = {"one": ("first",), "same": ("first#1", "first#2")}.get(kind, ("first", "total"))
    schedule = Schedule.of(
        warp_specialize=True, copy={name: {"instruction": "tma"} for name in ("A_s", "B_s")},
        gemm={name: {"instruction": "wgmma"} for name in names}, loop={"k": {"overlap": True}},
    )  # fmt: skip
    kernel = other.using(target=CARD, schedule=schedule)(kind, "float16" if kind == "rounded" else "float32")
    assert f"steps do not overlap: {why}" in {r.message for r in kernel.record().remarks}


def test_where_nobody_brings_tiles_it_is_said() -> None:
    kernel = made(warp_specialize=False)
    said = {r.message for r in kernel.record().remarks}
    assert "steps do not overlap: no producer brings the tiles" in said
    there = attention_kernel.using(target="cpu", schedule=Schedule.of(loop={"kb": {"overlap": True}}))(*SMALL)
    why = {c.name: c.why for c in there.record().choices}["overlap"]
    assert why == "not used by cpu: a block runs on one core, and products are done where they stand"


def test_the_next_queries_are_brought_while_results_are_stored() -> None:
    text = made(persistent=1).stage("pipelined")
    producer = text.split("with T.threads(128, 1):")[1]
    assert producer.index("T.mbarrier_wait(q_s_empty.version(0), ") < producer.index("T.copy(q[")
    own = text.split("with T.threads(128, 128):")[0]
    assert "T.copy(q[" not in own
    # Behind the last scores that read them.
    assert own.index("T.release_tiles(q_s_empty") > own.rindex("T.gemm(q_s")


def test_weights_are_made_beside_the_product_and_not_behind_it() -> None:
    # Three groups with 128 keys: where the assembler is short of registers it likes to do it later.
    pytest.importorskip("cuda.bindings.nvrtc")
    kernel = made((1, 32, 32, 4096, 4096, 64, "float16", True, 0, 0, 0, 0, 192, 128, 2, 384))
    lines = [line for line in kernel.stage("sass").splitlines() if re.search(r"HGMMA|DEPBAR|MUFU.EX2", line)]
    told = "".join(
        "v" if "tnspB" in line else "s" if "HGMMA" in line else "w" if "DEPBAR" in line else "x"
        for line in lines
    )
    step = re.sub(r"(.)\1+", r"\1", told)
    assert step == "swxsvwxwvw"
    assert kernel.resources.spill_store_bytes == 0
    assert [d.message for d in kernel.record().diagnostics] == []
