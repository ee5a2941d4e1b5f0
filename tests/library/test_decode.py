"""Decoding against float64: on the CPU, in the simulator for two cards, and as code; what is not a key is
NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.library.cases import wrong
from tests.library.several import simulate
from tilebench.errors import ArgumentError, OptionError
from tilebench.library import decode, kernel_for
from tilebench.library.definition import Problem
from tilebench.library.table import STEPS

module: Any = __import__("tilebench.library.decoding", fromlist=["decode"])
# B, H, KV, S, D, dtype; whether lengths are given; whether k lies as (B, S, KV, D); keys of a page (0: none).
CASES = [
    (2, 4, 2, 150, 32, "float16", False, False, 0),
    (3, 8, 2, 300, 32, "float16", True, True, 0),
    (2, 3, 1, 70, 16, "float32", True, False, 0),
    (2, 4, 2, 200, 32, "bfloat16", True, False, 16),
    (1, 40, 2, 290, 32, "float16", True, False, 128),
    (2, 2, 1, 100, 32, "float16", True, False, 48),
    (2, 2, 1, 50, 32, "float16", True, False, 1),
]
CARDS = ("cuda:sm_80", "cuda:sm_90a")


def drawn(case: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The arrays of a call, and what is right."""
    b, h, kv, s, d, dtype, some, turned, page = case
    random = np.random.default_rng(0)
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    q = random.uniform(-2, 2, (b, h, d)).astype(kind)
    k, v = (random.uniform(-2, 2, (b, kv, s, d)).astype(kind) for _ in range(2))
    lengths = np.array([s, 0, s // 3][:b], np.int32) if some else np.full(b, s, np.int32)
    wide = {"q": q, "k": k, "v": v, "lengths": lengths}
    exact = module.exact_decode(
        np, {name: x.astype(np.float64) for name, x in wide.items()},
        module.DECODE.problem(dtype, B=b, H=h, KV=kv, S=s, D=d),
    )  # fmt: skip
    for n in range(b):
        k[n, :, lengths[n] :] = np.nan
        v[n, :, lengths[n] :] = np.nan
    if not page:
        k = np.ascontiguousarray(k.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) if turned else k
        return [q, k, v, lengths if some else None], exact
    most = -(-s // page)
    table = random.permutation(b * most + 3)[: b * most].reshape(b, most).astype(np.int32)
    pages = [np.full((b * most + 3, page, kv, d), np.nan).astype(kind) for _ in range(2)]
    for to, x in zip(pages, (k, v), strict=True):
        for n in range(b):
            for j in range(s):
                to[table[n, j // page], j % page] = x[n, :, j]
    for n in range(b):  # what no key is in may be any number
        table[n, -(-int(lengths[n]) // page) :] = -5
    return [q, *pages, lengths, table], exact


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cpu(case: tuple[Any, ...]) -> None:
    arrays, exact = drawn(case)
    assert wrong(decode(*arrays), exact) == ""


@pytest.mark.parametrize("target", CARDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_simulator(case: tuple[Any, ...], target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a few parts, which are joined."""
    simulate(monkeypatch, module, target)
    monkeypatch.setattr(module, "_slots", lambda kernel, target: 12)
    arrays, exact = drawn(case)
    assert wrong(decode(*arrays), exact) == ""


def test_one_part_needs_no_join(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, module, CARDS[0])
    monkeypatch.setattr(module, "_slots", lambda kernel, target: 1)
    arrays, exact = drawn(CASES[1])
    assert wrong(decode(*arrays), exact) == ""


@pytest.mark.parametrize("target", CARDS)
@pytest.mark.parametrize("page", [0, 16, 256])
def test_code(target: str, page: int) -> None:
    """NVRTC takes the text, and registers are not spilled."""
    options = {"k_order": 0, "v_order": 0, "page": page, "has_lengths": True, "alone": False}
    sizes = {"B": 8, "H": 32, "KV": 8, "S": 8192, "D": 128}
    found = kernel_for(STEPS["decode"], Problem(sizes, "float16", options), target).resources
    assert (found.spill_store_bytes, found.local_bytes) == (0, 0)
    joined = kernel_for(STEPS["decode_join"], Problem(sizes, "float16", {"most": 64}), target).resources
    assert (joined.spill_store_bytes, joined.local_bytes) == (0, 0)


@pytest.mark.parametrize("target", CARDS)
@pytest.mark.parametrize(("dim", "page"), [(3, 0), (40, 1), (256, 16), (512, 0)])
def test_any_dim_and_page_has_a_schedule(dim: int, page: int, target: str) -> None:
    options = {"k_order": 0, "v_order": 0, "page": page, "has_lengths": True, "alone": False}
    sizes = {"B": 1, "H": 8, "KV": 1, "S": 100, "D": dim}
    assert kernel_for(STEPS["decode"], Problem(sizes, "float16", options), target).stage("cuda")


def test_how_many_parts() -> None:
    """As many as fill the machine, and no more than there are blocks of keys."""
    assert module.parts_of(512, 128, 264) == 1
    assert module.parts_of(8, 1, 264) == 1
    assert 16 <= module.parts_of(8, 128, 264) <= 33
    assert module.parts_of(8, 4, 264) <= 4


def test_what_does_not_fit_is_refused() -> None:
    arrays, _ = drawn(CASES[3])
    q, k, v, lengths, table = arrays
    with pytest.raises(ArgumentError, match="lengths of decode_paged has elements of int64"):
        decode(q, k, v, lengths.astype(np.int64), table)
    with pytest.raises(ArgumentError, match="decode_paged needs lengths"):
        decode(q, k, v, None, table)
    with pytest.raises(OptionError, match="longest of decode cannot be 500"):
        decode(q, k, v, lengths, table, longest=500)
    assert wrong(decode(q, k, v, lengths, table, longest=200), drawn(CASES[3])[1]) == ""
