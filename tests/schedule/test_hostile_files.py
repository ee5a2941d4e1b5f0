"""Schedule files of strangers: bounded, refused at a line, and a `ScheduleError` whatever they hold."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from tests.waiting import costs_less_than
from tilebench.errors import ScheduleError
from tilebench.schedule import load_schedule
from tilebench.schedule.files import parse_schedule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 30_000, "nested too deeply|not TOML"),
        ("[[schedule]]\nthreads = nan", "threads of a kernel cannot be nan"),
        ("[[schedule]]\nthreads = inf", "threads of a kernel cannot be inf"),
        ("[[schedule]]\nthreads = 1e2", "threads of a kernel cannot be 100.0"),
        ("[[schedule]]\nthreads = 2024-01-01", "threads of a kernel cannot be"),
        ("[[schedule]]\nthreads = " + "9" * 3000, "threads of a kernel cannot be"),
        ("[[schedule]]\nthreads = " + "9" * 5000, "not TOML"),
        ("[[schedule]]\norder = " + "9" * 30, "order of a kernel cannot be"),
        ("[[schedule]]\nthreads = { a = 1 }", "threads of a kernel cannot be"),
        ("[[schedule]]\n[schedule.gemm.g]\npolicy = [1]", r"policy of a gemm cannot be \[1\]"),
        ("[[schedule]]\n\0", "not TOML"),
        ("[schedule]\nthreads = 256", "found: schedule, which is no list of tables"),
        ("[[schedule]]\noverlap = true", r"overlap is a choice of a loop: \[schedule.loop.NAME\]"),
        ("[[schedule]]\n[schedule.loop.ko]\nthreads = 64", "threads is a choice of the whole kernel"),
    ],
)  # fmt: skip
def test_what_a_file_may_not_hold(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        parse_schedule(text)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("'a' * 9999999999 == M", "arithmetic is of numbers"),
        ("'%099999999999d' % M == 'a'", "arithmetic is of numbers"),
        ("(" * 300 + "M" + ")" * 300 + " > 1", "is not an expression|nested too deeply"),
        ("not " * 20_000 + "M", "nested too deeply|is not an expression"),
        ("- " * 20_000 + "M > 1", "nested too deeply|is not an expression"),
        ("M\\u0000 > 1", "is not an expression"),
        ("M * 1e308 * 1e308 // 0 > 1", "cannot be decided"),
        ("M * " + "9" * 400 + " * 1.0 > 1", "cannot be decided"),
        ("M > " + "9" * 5000, "is not an expression"),
    ],
)  # fmt: skip
def test_conditions_that_cost_time_or_memory(when: str, message: str) -> None:
    with costs_less_than(1), pytest.raises(ScheduleError, match=message):
        parse_schedule(f'[[schedule]]\nwhen = "{when}"').choose({"M": 3})


def test_what_is_no_file_or_too_large(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ScheduleError, match="it is no file"):
            load_schedule(path)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (2 << 20))
    with pytest.raises(ScheduleError, match="larger than any: 2097152 bytes"):
        load_schedule(large)


def test_any_bytes_are_a_schedule_or_refused() -> None:
    """A good file with bytes changed, cut and doubled: nothing but a `ScheduleError` is raised."""
    good = "[[schedule]]\nwhen = \"M <= 128 and target == 'cpu'\"\nthreads = 256\nparams = { block_M = 64 }\n"
    good += (
        "order = { panels = 8 }\n[schedule.loop.ko]\nnum_stages = 3\n[schedule.gemm.g]\npolicy = 'square'\n"
    )
    rng, refused = random.Random(7), 0
    for _ in range(2000):
        text = list(good)
        for _ in range(rng.randint(1, 3)):
            spot = rng.randrange(len(text))
            text[spot : spot + rng.randint(0, 3)] = rng.choices(
                good + "[]{}=\"'\\\n#9.-_\0é", k=rng.randint(0, 3)
            )
        refused += 1
        with contextlib.suppress(ScheduleError):
            parse_schedule("".join(text)).choose({"M": 3, "target": "cpu"})
            refused -= 1
    assert 300 < refused < 2000
