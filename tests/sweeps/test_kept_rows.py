"""What a sweep takes from its file: rows of the same code and numbers, checked where that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilebench
from tests.sweeps.test_sweeps import TAIL  # pyright: ignore[reportPrivateUsage]
from tilebench.cli import main
from tilebench.language import float16
from tilebench.record import RunRecord, SweepRow
from tilebench.sweeps import SweepEngine, SweepMethod
from tilebench.sweeps.engine import config_key, plain


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
