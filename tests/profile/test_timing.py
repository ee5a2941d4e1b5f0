"""The timing method: order, duty, cold and warm, poison and check, failures, cancel, ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tilebench.errors import OptionError, ShapeError
from tilebench.profile import flush as flush_module
from tilebench.profile.flush import CpuFlush
from tilebench.profile.statistics import ratio_of_medians, summarize
from tilebench.profile.timing import Contender, CpuClock, Progress, measure
from tilebench.runtime.cancel import Cancelled
from tilebench.runtime.job import Job
from tilebench.runtime.worker import Worker


class CountingClock:
    """Runs the launch and reads the time it returns: a stand-in for a card's events."""

    name = "events"

    def time(self, run: Callable[[], object]) -> float:
        value = run()
        assert isinstance(value, float)
        return value


class CountingFlush:
    text = "nothing much"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


def busy(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_wall_clock_reads_what_passed() -> None:
    clock = CpuClock()
    times = [clock.time(lambda: busy(0.005)) for _ in range(10)]
    assert 0.005 <= min(times) < 0.05
    assert min(clock.overhead() for _ in range(10)) < 20e-6
    assert clock.overhead() >= 0


def test_medians_and_speedup_of_known_times() -> None:
    result = measure(
        [Contender("ours", lambda: 2e-3), Contender("theirs", lambda: 3e-3)],
        clock=CountingClock(), flush=CountingFlush(), seconds=0.02,
    )  # fmt: skip
    assert result["ours"].seconds == 2e-3
    assert result["theirs"].seconds == 3e-3
    ratio = result.speedup("ours", "theirs")
    assert ratio is not None
    assert ratio.value == ratio.low == ratio.high == 1.5
    assert ratio.decided
    assert len(result["ours"].rounds) == 7


def test_order_rotates_and_every_launch_is_flushed() -> None:
    log: list[str] = []
    flush = CountingFlush()

    def launch(name: str) -> Callable[[], float]:
        return lambda: log.append(name) or 1e-3

    result = measure(
        [Contender(name, launch(name)) for name in "abc"],
        clock=CountingClock(),
        flush=flush,
        seconds=1e-6,
        rounds=5,
    )
    turns = "".join(log[log.index("c") :]).lstrip("c")
    assert turns == "".join(each * 3 for each in "abcbcacababcbca")
    assert flush.calls == 45
    assert all(len(each.samples) == 15 for each in result.timings)


def test_turns_are_equally_long_whatever_a_launch_takes() -> None:
    spent = {"short": 0.0, "long": 0.0}

    def launch(name: str, seconds: float) -> Callable[[], float]:
        def run() -> float:
            busy(seconds)
            spent[name] += seconds
            return seconds

        return run

    measure(
        [Contender("short", launch("short", 5e-5)), Contender("long", launch("long", 1e-3))],
        clock=CountingClock(), cache="warm", seconds=0.3,
    )  # fmt: skip
    assert 0.6 < spent["short"] / spent["long"] < 1.4


def test_cold_and_warm_differ_and_say_so() -> None:
    flush = CpuFlush(64 << 20)
    assert flush.bytes == 64 << 20
    assert flush.text.startswith("64 MiB")
    array = np.zeros(1 << 16)
    cold = measure([Contender("sum", lambda: array.sum())], flush=flush, seconds=0.1, rounds=5)
    warm = measure([Contender("sum", lambda: array.sum())], cache="warm", seconds=0.1, rounds=5)
    flush.close()
    assert "cold caches (64 MiB read before each launch)" in cold.method.text
    assert "warm caches" in warm.method.text
    assert "outputs not checked" in warm.method.text
    assert "5 rounds of 20 ms" in warm.method.text
    assert "wall clock" in warm.method.text
    fast, slow = warm["sum"].seconds, cold["sum"].seconds
    assert fast is not None
    assert slow is not None
    assert fast < slow


def test_the_flush_keeps_within_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flush_module, "_CGROUP", tmp_path)
    free = flush_module.available_bytes()
    assert free > 1 << 26
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    assert flush_module.available_bytes() > 1 << 26
    (tmp_path / "memory.max").write_text(f"{(40 << 20) + 5}\n")
    assert flush_module.available_bytes() == 40 << 20
    small = CpuFlush(64 << 20, threads=1)
    assert small.bytes == 10 << 20
    assert "short of the 64 MiB" in small.text
    small()
    small.close()


def test_outputs_are_poisoned_before_and_checked_after() -> None:
    out, lazy = np.zeros(100), np.zeros(100)

    def check(array: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Callable[[], str]:
        return lambda: "" if (array == 1).all() else f"{int((array != 1).sum())} elements are wrong"

    result = measure(
        [
            Contender("works", lambda: out.fill(1), lambda: out.fill(np.nan), check(out)),
            Contender("skips", lambda: lazy[:90].fill(1), lambda: lazy.fill(np.nan), check(lazy)),
        ],
        cache="warm", seconds=0.02,
    )  # fmt: skip
    assert result["works"].failure == ""
    assert result["works"].seconds is not None
    assert result["works"].checked
    assert result["skips"].failure == "10 elements are wrong"
    assert result["skips"].seconds is None
    assert result.speedup("works", "skips") is None
    assert "poisoned before and checked after" in result.method.text
    record = result.run_record("skips", kernel="k", target="cpu", config={"b": 1}, environment={"cpu": "x"})
    assert record.samples == ()
    assert record.failure == "10 elements are wrong"
    assert record.method == result.method.text
    good = result.run_record("works", kernel="k", target="cpu", config={}, environment={})
    assert good.seconds == pytest.approx(result["works"].seconds)
    assert good.when[:2] == "20"


def test_a_failing_contender_does_not_stop_the_others() -> None:
    count = 0

    def fails_later() -> float:
        nonlocal count
        count += 1
        if count > 10:
            raise ShapeError("tile {n} is gone", n=3)
        return 1e-3

    result = measure(
        [Contender("bad", fails_later), Contender("worse", lambda: 1 / 0), Contender("good", lambda: 1e-3)],
        clock=CountingClock(), flush=CountingFlush(), seconds=0.01,
    )  # fmt: skip
    assert result["bad"].failure == "tile 3 is gone"
    assert result["bad"].seconds is None
    assert result["worse"].failure.startswith("ZeroDivisionError")
    assert result["good"].seconds == 1e-3
    assert len(result["good"].rounds) == 7


def test_progress_is_rate_limited_and_ends_with_the_last() -> None:
    seen: list[Progress] = []
    start = time.monotonic()
    measure([Contender("a", lambda: busy(0.001))], cache="warm", seconds=0.35, progress=seen.append)
    assert 2 <= len(seen) <= 10 * (time.monotonic() - start) + 2
    assert seen[-1].round == seen[-1].rounds == 7
    assert seen[-1].median >= 0.001
    assert [each.samples for each in seen] == sorted(each.samples for each in seen)


def test_cancel_is_seen_between_launches() -> None:
    launches = 0

    def run() -> None:
        nonlocal launches
        launches += 1

    with pytest.raises(Cancelled):
        measure([Contender("a", run)], cache="warm", seconds=10, cancelled=lambda: launches >= 20)
    assert launches == 20


@pytest.mark.parametrize(
    ("contenders", "options", "words"),
    [
        ([], {}, "none"),
        ([Contender("a", int), Contender("a", int)], {}, "a, a"),
        ([Contender("a", int)], {"rounds": 4}, "4 rounds are too few"),
        ([Contender("a", int)], {"cache": "tepid"}, "'tepid'"),
    ],
)
def test_wrong_requests_are_refused(contenders: list[Contender], options: dict[str, int], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        measure(contenders, **options)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="measured: a"):
        measure([Contender("a", int)], cache="warm", seconds=0.001)["b"]


def test_statistics_against_known_values() -> None:
    assert summarize([1, 2, 3, 4, 100]) == (3, 2, 4, 5)
    assert summarize([1, 2, 3, 4, 100]).spread == pytest.approx(2 / 3)
    random = np.random.default_rng(1)
    slow = [list(random.normal(2.0, 0.02, 20)) for _ in range(7)]
    fast = [list(random.normal(1.0, 0.01, 30)) for _ in range(7)]
    ratio = ratio_of_medians(slow, fast)
    assert ratio.low < ratio.value < ratio.high
    assert ratio.value == pytest.approx(2, rel=0.01)
    assert ratio == ratio_of_medians(slow, fast)
    assert ratio.high - ratio.low < 0.05
    same = ratio_of_medians(slow, [list(random.normal(2.0, 0.02, 20)) for _ in range(7)])
    assert same.low < 1 < same.high
    assert not same.decided


def test_drift_between_rounds_widens_the_interval() -> None:
    """Samples that agree within rounds but not between them are few independent facts, not many."""
    steady = [[1.0] * 50 for _ in range(7)]
    drifting = [[1.0 + 0.1 * r] * 50 for r in range(7)]
    ratio = ratio_of_medians(drifting, steady)
    assert ratio.high - ratio.low > 0.1


def measure_in_child(size: int) -> tuple[float, str]:
    from tilebench.runtime.job import cancelled, report

    array = np.ones(size)
    result = measure(
        [Contender("sum", lambda: array.sum())],
        cache="warm",
        seconds=0.2,
        progress=report,
        cancelled=cancelled,
    )
    assert result["sum"].seconds is not None
    return result["sum"].seconds, result.method.text


def test_it_runs_in_the_measuring_child_with_progress() -> None:
    seen: list[Progress] = []
    with Worker() as worker:
        seconds, text = worker.call(Job(measure_in_child, (1000,)), on_progress=seen.append)
    assert 0 < seconds < 0.01
    assert text.startswith("median of single launches")
    assert seen
    assert isinstance(seen[-1], Progress)
    assert seen[-1].round == 7
