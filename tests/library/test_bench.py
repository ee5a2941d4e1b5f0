"""The library's bench: names of works, what a run of one gives, and what becomes of contenders that fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilebench import record_files
from tilebench.cli import main
from tilebench.errors import OptionError, TileError
from tilebench.library import OPERATORS
from tilebench.library.bench import arrays, peers, run
from tilebench.library.bench.run import OURS, BenchMethod, measure_work
from tilebench.library.bench.table import head, line_of, method_of, standing_of
from tilebench.library.bench.works import (
    CARD_WORKS,
    HOST_WORKS,
    BenchWork,
    adds,
    attentions,
    chosen,
    eight_bit_products,
    gemvs,
    grouped_products,
    many_products,
    products,
    rows,
    streaming,
    windows,
)
from tilebench.profile.statistics import Ratio
from tilebench.record import RunRecord

SMALL = (
    *streaming(((33, 65),), "float32"),
    *gemvs(((33, 65),), "float32"),
    *products(((33, 34, 35),), "nt", "float32"),
    *many_products(((2, 33, 34, 35),), "nt", "float32"),
    *grouped_products(((3, 33, 34, 35),), "nt", "float32"),
    *eight_bit_products(((33, 34, 48),), "int8"),
    *eight_bit_products(((33, 34, 48),), "float8_e4m3fn", fast=True),
    *attentions(1, 2, 33, (16,), "float32"),
    *windows(1, 2, 33, 16, ((7, 0), (5, 9)), "float32"),
)
QUICK = BenchMethod(rounds=5, seconds=0.02)


def test_every_operator_is_measured_everywhere() -> None:
    for works in (CARD_WORKS, HOST_WORKS):
        assert {work.operator_name for work in works} == set(OPERATORS)
        assert len({work.name for work in works}) == len(works)


def test_words_choose_works() -> None:
    def names(*words: str) -> list[str]:
        return [work.name for work in chosen(words, CARD_WORKS)]

    assert names() == [work.name for work in CARD_WORKS]
    assert names("gemv") == [f"gemv/{size}/float16" for size in ("8192x8192", "1001x1003", "16383x8191")]
    assert names("matmul/nn") == [f"matmul/nn/{n}x{n}x{n}/float16" for n in (4096, 8192)]
    assert names("*/1001x1003/*", "add")[-1] == "add/16383x8191/float16"
    with pytest.raises(OptionError) as caught:
        names("softmx/1001x1003")
    hint = "did you mean softmax? works begin with: add, rms_norm, "
    assert caught.value.explain().startswith(
        f"option error: no work is called softmx/1001x1003\n  help: {hint}"
    )


@pytest.mark.parametrize("work", SMALL, ids=lambda work: work.name)
def test_a_work_on_the_host(work: BenchWork) -> None:
    """Ours is right and has times; each peer either has, or says why it has none."""
    found = measure_work(work, "cpu", ("numpy", "triton"), QUICK)
    assert [row.record.config["by"] for row in found] == [OURS, "numpy", "triton"]
    ours, numpy, triton = (row.record for row in found)
    assert ours.failure == ""
    assert ours.seconds is not None
    assert ours.error is not None
    assert ours.bound is not None
    assert ours.error <= ours.bound
    assert ours.method.endswith("outputs poisoned before and checked after")
    assert numpy.failure in ("", "has no such operation")
    assert (found[1].ratio is None) is bool(numpy.failure)
    assert triton.failure
    assert triton.samples == ()


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def almost(operator: Any, x: Any, y: Any, out: Any, **_: Any) -> Any:
        np.add(x, y, out=out)
        out[7] += 1e-3
        return out

    monkeypatch.setattr(run, "call", almost)
    ours = measure_work(adds(((9, 9),), "float32")[0], "cpu", (), QUICK)[0].record
    assert ours.failure.startswith("wrong result: an error of 0.001 where ")
    assert ours.samples == ()


def test_an_element_that_is_not_written_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def part(operator: Any, x: Any, y: Any, out: Any, **_: Any) -> Any:
        np.add(x[:-1], y[:-1], out=out[:-1])
        return out

    monkeypatch.setattr(run, "call", part)
    work = BenchWork("add/9/float32", "add", {"n": 9}, "float32")
    failure = measure_work(work, "cpu", (), QUICK)[0].record.failure
    assert failure.startswith("wrong result: an error of nan where ")


def test_a_contender_that_raises_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise TileError("the shared memory is too small")

    monkeypatch.setattr(run, "call", refused)
    found = measure_work(adds(((9, 9),), "float32")[0], "cpu", ("numpy",), QUICK)
    assert found[0].record.failure == "the shared memory is too small"
    assert found[1].record.seconds is not None
    assert found[1].ratio is None
    text = line_of("add", found)
    assert re.match(r"add +-  +[\d.]+ [nu]s\n      tilebench: the shared memory is too small$", text)


def test_comparison_in_parts_is_of_everything() -> None:
    """Heads of attention apart: an error in any of them is found."""
    work = attentions(2, 2, 9, (8,), "float32")[1]
    space = arrays.space_on("cpu")
    given = arrays.made(space, work)
    whole = work.operator.reference(np, {k: v.astype(float) for k, v in given.items()}, work.problem)
    right = whole.value.astype(np.float32)
    assert arrays.compared(space, work, given, right).ok
    for place in ((0, 0, 0, 0), (1, 0, 4, 2), (1, 1, 8, 7)):
        off = right.copy()
        off[place] += 1e-3
        assert not arrays.compared(space, work, given, off).ok


def test_names_of_peers() -> None:
    assert [peer.name for peer in peers.peers_named(("numpy", "torch", "numpy"))] == ["numpy", "torch"]
    with pytest.raises(OptionError, match="there is no peer pytorch"):
        peers.peers_named(("pytorch",))


def test_configurations_are_of_rows_that_peers_ask_for() -> None:
    path = Path(peers.__file__).with_name("configs.json")
    known = json.loads(path.read_text(encoding="utf-8"))
    assert known["triton gemm_nt float16 4096x4096x4096"] == [128, 256, 64, 8, 3, True]
    assert known["tilelang attention f16 b4 h32 s4096 d64 causal"] == [128, 128, 2, 256]
    assert all(name.split()[0] in peers.PEERS for name in known)


TILELANG = """
import tilebench.compat

tilebench.compat.install()
import numpy as np
from tilebench.library.bench import tilelang_kernels as kernels

a, b = (np.random.default_rng(0).uniform(-1, 1, (64, 96)).astype(np.float16) for _ in range(2))
right = a.astype(np.float64) @ b.T.astype(np.float64)
for made, transposed in ((kernels._PRODUCT, True), (kernels._OLDER_PRODUCT, False)):
    given = b if transposed else np.ascontiguousarray(b.T)
    found = made(64, 64, 96, "float16", transposed, 32, 32, 32, 2, 128)(a, given)
    assert abs(found - right).max() < 0.02
q = a[None, None, :, :32].copy()
scores = np.where(np.tril(np.ones((64, 64), bool)), q[0, 0].astype(float) @ q[0, 0].T / 32**0.5, -np.inf)
weights = np.exp(scores - scores.max(1, keepdims=True))
wanted = weights / weights.sum(1, keepdims=True) @ q[0, 0].astype(float)
found = kernels._attention(1, 1, 64, 32, "float16", True, 32, 32, 2, 128)(q, q, q)
assert abs(found[0, 0] - wanted).max() < 0.01
"""


def test_kernels_of_the_peer_tilelang_are_right() -> None:
    """Compiled as TileLang's own files are here: what they compute does not depend on who compiles them."""
    code = subprocess.run(
        [sys.executable, "-c", TILELANG], env={**os.environ, "TILEBENCH_TARGET": "cpu"}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert code.returncode == 0, code.stderr


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A work in the child: a table with its method, and records that are read back."""
    words = ["bench", "row_reduce/1001x1003", "--target", "cpu", "--milliseconds", "20", "--against", "numpy"]
    assert main([*words, "--save", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("On cpu:")
    assert "A measurement of the host ranks nothing for a card." in said
    assert "row_reduce/1001x1003/float32" in said
    assert "Method: median of single launches; " in said
    saved = sorted((tmp_path / "runs").glob("*.tbz"))
    assert [path.name for path in saved] == [
        "row_reduce_1001x1003_float32.numpy.tbz", "row_reduce_1001x1003_float32.tilebench.tbz",
    ]  # fmt: skip
    record = record_files.load(saved[1])
    assert isinstance(record, RunRecord)
    assert record.config["work"] == "row_reduce/1001x1003/float32"
    assert record.seconds is not None


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["bench", "softmx", "--target", "cpu"], "did you mean softmax?"),
        (["bench", "add", "--target", "cpu", "--against", "trition"], "did you mean triton?"),
        (["bench", "add", "--target", "cpu", "--rounds", "3"], "'3' is no whole number from 5 to 1000"),
        (["bench", "add", "--target", "cpu", "--configs", "nothing.json"], "nothing.json cannot be read"),
    ],
)
def test_wrong_words(capsys: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
    assert main(words) == 2
    assert text in capsys.readouterr().err


def test_without_a_card_there_is_one_error_and_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    from tilebench.targets import manifest

    if manifest("cuda").available()[0]:
        pytest.skip("there is a card")
    assert main(["bench", "add", "softmax", "--target", "cuda:sm_90a"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("target error: the library is compiled for cuda:sm_90a, which cannot run here: ")
    assert err.count("cannot run here") == 1


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gemv", "--target", "cpu", "--list"]) == 0
    assert capsys.readouterr().out == "gemv/4096x4096/float32\ngemv/1001x1003/float32\n"


def row_of(work: str, by: str, seconds: float, ratio: Ratio | None = None) -> run.BenchRow:
    record = RunRecord(
        f"{work} by {by}", "cuda:sm_90a", {"work": work, "by": by}, (seconds,), flops=3e6, bytes=4e6
    )
    return run.BenchRow(record, ratio)


def test_a_row_is_a_line_with_a_column_for_each_peer() -> None:
    """Columns stand under their names, and half an interval behind each ratio."""
    rows = [
        row_of("softmax/16384x8192/float16", OURS, 1.337e-4),
        row_of("softmax/16384x8192/float16", "torch", 4.9e-4, Ratio(3.665, 3.64, 3.68)),
        row_of("softmax/16384x8192/float16", "triton", 1.3371e-4, Ratio(1.0, 0.999, 1.001)),
    ]
    *_, heads = head("cuda:sm_90a", False, ("torch", "triton")).splitlines()
    (line,) = line_of("softmax/16384x8192/float16", rows).splitlines()
    assert re.split("  +", line) == [
        "softmax/16384x8192/float16", "134 us", "29.9 GB/s",
        "490 us", "3.67 \N{PLUS-MINUS SIGN}0.02", "134 us", "1.00 \N{PLUS-MINUS SIGN}0.01",
    ]  # fmt: skip
    assert heads.index("torch") == line.index("  490 us")
    assert heads.index("triton") == line.rindex("  134 us")


def test_where_ours_stands_beside_the_fastest_peer() -> None:
    def found(work: str, *ratios: Ratio) -> list[run.BenchRow]:
        peers = zip(("torch", "triton"), ratios, strict=True)
        return [row_of(work, OURS, 1e-5), *(row_of(work, name, 1e-5, ratio) for name, ratio in peers)]

    ahead, level, behind = Ratio(1.2, 1.1, 1.3), Ratio(0.99, 0.9, 1.1), Ratio(0.8, 0.7, 0.9)
    works = [found("add", ahead, ahead), found("gemv", ahead, level), found("softmax", behind, ahead)]
    assert standing_of(works) == (
        "Beside the fastest peer of each of 3 works: faster at 1, level at 1 (the interval holds 1), "
        "slower at 1.\n"
        "  softmax: torch takes 0.80 of our time"
    )
    assert standing_of([[row_of("add", OURS, 1e-5)]]) == ""


def test_method_of_nothing() -> None:
    work = rows("softmax", ((3, 4),), "float32")[0]
    failed = run.failed(work, OURS, "cpu", "it crashed", {})
    assert method_of([run.BenchRow(failed)]) == "nothing was measured"
