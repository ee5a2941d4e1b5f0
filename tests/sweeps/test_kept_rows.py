"""What a sweep takes from its file: rows of the same code and numbers, checked where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
from tests import kernels
from tests.sweeps.test_sweeps import TAIL  # pyright: ignore[reportPrivateUsage]
from tilebench.cli import main
from tilebench.kernel.edited import compile_from
from tilebench.language import float16
from tilebench.profile.environment import environment
from tilebench.profile.positions import fastest
from tilebench.record import RunRecord, SweepRecord, SweepRow
from tilebench.sweeps import SweepCandidate, SweepEngine, SweepMethod
from tilebench.sweeps.engine import config_key, plain
from tilebench.sweeps.finish import of_this_machine


def test_another_seed_and_what_was_refused_are_asked_again() -> None:
    engine = SweepEngine([], SweepMethod(seed=1))
    run = RunRecord("k", "cpu", {}, (1e-6,), seed=0)
    assert not engine._holds(SweepRow({}, "timed", runs=(run,), code="a"), "a")  # pyright: ignore[reportPrivateUsage]
    assert engine._holds(SweepRow({}, "timed", code="a"), "a")  # pyright: ignore[reportPrivateUsage]
    assert engine._holds(SweepRow({}, "timed"), "a")  # pyright: ignore[reportPrivateUsage]
    assert not engine._holds(SweepRow({}, "illegal", "old refusal"), "a")  # pyright: ignore[reportPrivateUsage]
    assert not engine._holds(SweepRow({}, "timed", code="b"), "a")  # pyright: ignore[reportPrivateUsage]


def test_a_value_has_one_key_as_it_was_given_and_as_a_file_has_it() -> None:
    assert plain(float16) == "float16"
    assert type(plain(float16)) is str
    assert config_key({"dtype": float16, "n": np.int64(4)}) == config_key({"dtype": "float16", "n": 4})
    assert plain((1, 2)) == "(1, 2)"


@pytest.mark.slow
def test_a_check_of_what_was_timed_before_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of times says nothing of results: with a check each row gets a run that compares."""
    path, kept = tmp_path / "scaled.py", tmp_path / "s.tbz"
    path.write_text(TAIL.replace("FACTOR", "2.0"), encoding="utf-8")
    words = [
        "bench",
        f"{path}:scaled",
        "-D",
        "N=256",
        "--target",
        "cpu",
        "--sweep",
        "block=64,128",
        "--save",
        str(kept),
    ]
    assert main(words) == 0
    assert all(run.error is None for row in tilebench.open_sweep(kept).rows for run in row.runs)
    assert main([*words, "--check"]) == 0
    capsys.readouterr()
    for row in tilebench.open_sweep(kept).rows:
        assert [run.error for run in row.runs if run.error is not None] == [0.0]


def test_where_nothing_says_what_is_right_no_run_is_made_to_compare() -> None:
    """A kernel that begins at its last stage, and the same one with its meaning, which nobody compares."""
    kernel = kernels.add_kernel.using(target="cpu")(72, 64)
    alone = compile_from("loops", kernel.stage("loops"), target="cpu")
    checked: list[bool] = []

    def measure(_: Any, *, check: bool, **__: Any) -> RunRecord:
        checked.append(check)
        return RunRecord("k", "cpu", {}, (1e-6,) * 9)

    for made, runs in ((alone, 2), (kernel, 3)):
        candidate = SweepCandidate({"n": 1}, lambda made=made: made)
        (row,) = SweepEngine([candidate], SweepMethod(repeats=2), measure=measure).run()
        assert (row.state, row.why, len(row.runs)) == ("timed", "", runs)
    assert checked == [True] * 5


def test_the_machine_is_asked_once_for_all_rows_of_a_file() -> None:
    """Rows of another card are left out, those without runs are of any."""
    asked: list[int] = []

    class Card:
        def environment(self) -> dict[str, str]:
            asked.append(1)
            return {"gpu0_name": "this one"}

    def row(name: str) -> SweepRow:
        where = {**environment({}), "gpu0_name": name}
        return SweepRow({"n": name}, "timed", runs=(RunRecord("k", "cuda", {}, (1e-6,), environment=where),))

    rows = (row("this one"), row("another"), SweepRow({}, "illegal", "no"), row("this one"))
    card: Any = Card()
    assert of_this_machine(rows, card) == (rows[0], rows[2], rows[3])
    assert asked == [1]
    assert of_this_machine(rows[2:3], card) == rows[2:3]
    assert asked == [1]


def test_the_best_of_a_sweep_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def count(positions: Any) -> Any:
        counts.append(len(positions))
        return fastest(positions)

    monkeypatch.setattr("tilebench.sweeps.result.fastest", count)
    rows = tuple(
        SweepRow({"n": n}, "timed", runs=(RunRecord("k", "cpu", {}, (n * 1e-6,) * 9),)) for n in (2, 1, 3)
    )
    found = tilebench.Sweep(SweepRecord("k", "cpu", {"n": (2, 1, 3)}, rows, 1, False))
    assert found.best == rows[1]
    assert "best" in found.table()
    assert found.best == rows[1]
    assert counts == [3]
