"""Attention's logarithms and gradients against float64: on the CPU, in the simulator for two cards, and as
code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.library.cases import wrong
from tests.library.several import simulate
from tilebench.errors import ArgumentError
from tilebench.library import attention, attention_backward, attention_lse, kernel_for, training
from tilebench.library.definition import Problem
from tilebench.library.near import Exact, Near, near
from tilebench.library.table import STEPS

PLAIN, CAUSAL = {"causal": False}, {"causal": True}
# B, H, KV, SQ, SK, D, which keys are seen, dtype, and whether q and v lie as (B, S, H, D).
CASES = [
    (1, 2, 2, 64, 64, 32, PLAIN, "float16", False),
    (2, 2, 1, 40, 70, 32, CAUSAL, "float16", True),
    (1, 2, 1, 70, 50, 48, CAUSAL, "bfloat16", False),
    (1, 2, 2, 33, 17, 16, PLAIN, "float32", True),
    (1, 2, 1, 90, 110, 32, {"causal": True, "window": (21, -1)}, "float16", False),
    (1, 1, 1, 100, 70, 16, {"causal": False, "window": (3, 40)}, "float16", True),
    (1, 1, 1, 40, 110, 16, {"causal": False, "window": (-1, 5)}, "float32", False),
]
CARDS = ("cuda:sm_80", "cuda:sm_90a")


def softmax_of(a: Mapping[str, Any], which: Mapping[str, Any]) -> tuple[Near, Near, Any]:
    """Scores, and the logarithms of their sums, and which of them count."""
    q, k = a["q"], a["k"]
    scores = near(np, q) @ near(np, k).T * q.shape[3] ** -0.5
    past = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] - np.arange(k.shape[2])[None, :]
    left, right = which.get("window", (-1, -1))
    right = 0 if which["causal"] else right
    seen = ((past <= left) | (left < 0)) & ((past >= -right) | (right < 0))
    top = np.where(seen, scores.value, -1e30).max(-1, keepdims=True)
    total = (scores - top).where(seen, 0.0).exp().where(seen, 0.0).sum(-1, keepdims=True)
    none = total.value == 0
    return scores, (total.where(~none, 1.0).log() + top).where(~none, np.inf), seen


def exact(arrays: Mapping[str, Any], which: Mapping[str, Any], dtype: str) -> dict[str, Exact]:
    """From o and the logarithms as the forward gave them, which count as exact."""
    wide = {name: x.astype(np.float64) for name, x in arrays.items()}
    group = wide["q"].shape[1] // wide["k"].shape[1]
    own = {**wide, **{name: wide[name].repeat(group, 1) for name in ("k", "v")}}
    scores, logs, seen = softmax_of(own, which)
    right = {"lse": logs[..., 0].exact()} if "lse" not in own else {}
    if "lse" not in own:
        return right
    lse = np.where(np.isinf(own["lse"]), 1e30, own["lse"])[..., None]
    weights = (scores - lse).where(seen, -1e4).exp().where(seen, 0.0)
    delta = (near(np, own["o"]) * own["g"]).sum(-1, keepdims=True)
    slopes = (weights * (near(np, own["g"]) @ near(np, own["v"]).T - delta)).narrowed(dtype).where(seen, 0.0)
    scale = own["q"].shape[3] ** -0.5

    def shared(x: Near) -> Exact:
        b, h, s, d = x.value.shape
        return x.reshape(b, h // group, group, s, d).sum(2).exact()

    return {
        "dq": (slopes @ near(np, own["k"]) * scale).exact(),
        "dk": shared(slopes.T @ near(np, own["q"]) * scale),
        "dv": shared(weights.narrowed(dtype).where(seen, 0.0).T @ near(np, own["g"])),
    }


def drawn(case: tuple[Any, ...]) -> dict[str, Any]:
    b, h, kv, sq, sk, d, _, dtype, turned = case
    random = np.random.default_rng(0)
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)

    def made(heads: int, length: int, other: bool) -> Any:
        shape = (b, length, heads, d) if other else (b, heads, length, d)
        x = random.uniform(-2, 2, shape).astype(kind)
        return x.transpose(0, 2, 1, 3) if other else x

    return {
        "q": made(h, sq, turned),
        "k": made(kv, sk, False),
        "v": made(kv, sk, turned),
        "g": made(h, sq, False),
    }


def check(case: tuple[Any, ...]) -> None:
    which, dtype = case[6:8]
    a = drawn(case)
    before = {name: x.copy() for name, x in a.items()}
    a["o"], lse = attention_lse(a["q"], a["k"], a["v"], **which)
    right = exact(a, which, dtype)["lse"]
    none = np.isinf(right.value)
    assert (np.isinf(lse) == none).all()
    assert (
        wrong(np.where(none, 0, lse), Exact(np.where(none, 0, right.value), np.where(none, 0, right.error)))
        == ""
    )
    a["lse"] = lse
    found = attention_backward(a["g"], a["q"], a["k"], a["v"], a["o"], lse, **which)
    right = exact(a, which, dtype)
    for name, got in zip(("dq", "dk", "dv"), found, strict=True):
        assert wrong(got, right[name]) == "", name
        given = a[name[1:]]
        assert [s for s, n in zip(got.strides, got.shape, strict=True) if n > 1] == [
            s for s, n in zip(given.strides, given.shape, strict=True) if n > 1
        ]
    assert all(a[name].tobytes() == x.tobytes() for name, x in before.items())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cpu(case: tuple[Any, ...]) -> None:
    check(case)
    a = drawn(case)
    same = attention(a["q"], a["k"], a["v"], **case[6])
    assert same.tobytes() == attention_lse(a["q"], a["k"], a["v"], **case[6])[0].tobytes()


@pytest.mark.parametrize("target", CARDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_simulator(case: tuple[Any, ...], target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, training, target)
    check(case)


@pytest.mark.parametrize("target", CARDS)
@pytest.mark.parametrize(
    "name", ["attention_saving", "attention_before", "attention_backward", "attention_after"]
)
@pytest.mark.parametrize("dim", [64, 96, 128])
def test_code(name: str, target: str, dim: int) -> None:
    """NVRTC takes the text, and registers are not spilled."""
    sizes = {"B": 4, "H": 32, "KV": 8, "SQ": 4096, "SK": 4096, "D": dim}
    orders = {f"{name}_order": 0 for name in "qkvog"}
    for seen in (PLAIN, CAUSAL, {"causal": True, "left": 1000}, {"causal": False, "left": 500, "right": 500}):
        if "left" in seen and name in ("attention_before", "attention_after"):
            continue
        found = kernel_for(STEPS[name], Problem(sizes, "float16", {**seen, **orders}), target).resources
        assert (found.spill_store_bytes, found.local_bytes) == (0, 0)
        assert found.blocks_per_sm


@pytest.mark.parametrize("target", CARDS)
@pytest.mark.parametrize("dim", [3, 8, 40, 104, 256])
def test_any_dim_has_a_schedule(dim: int, target: str) -> None:
    sizes = {"B": 1, "H": 2, "KV": 1, "SQ": 65, "SK": 70, "D": dim}
    options = {"causal": True, **{f"{name}_order": 1 for name in "qkvog"}}
    for name in ("attention_saving", "attention_before", "attention_backward", "attention_after"):
        assert kernel_for(STEPS[name], Problem(sizes, "float16", options), target).stage("cuda")


def test_what_does_not_fit_is_refused() -> None:
    a = drawn(CASES[0])
    o, lse = attention_lse(a["q"], a["k"], a["v"])
    with pytest.raises(ArgumentError, match="lse has the shape"):
        attention_backward(a["g"], a["q"], a["k"], a["v"], o, lse[:, :1])
    with pytest.raises(ArgumentError, match="g has the shape"):
        attention_backward(a["g"][:, :, :1], a["q"], a["k"], a["v"], o, lse)
    with pytest.raises(ArgumentError, match="attention of no elements has no gradient"):
        attention_lse(a["q"][:0], a["k"][:0], a["v"][:0])
