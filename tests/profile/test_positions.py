"""Runs by position: their spread is shown, and a difference counts only where it is more than that."""

from __future__ import annotations

from typing import Any

import pytest

from tilebench.profile.positions import difference, is_apart, positions_of
from tilebench.record import RunRecord
from tilebench.workbench.chart import chart_of, chart_rows, method_lines
from tilebench.workbench.history import Move, MoveHistory, history_html, history_rows
from tilebench.workbench.style import digits_within, percent_text, seconds_text, span_text
from tilebench.workbench.svg import chart_svg


def run(milliseconds: float, width: float = 0.01, **config: Any) -> RunRecord:
    samples = tuple(milliseconds * 1e-3 * (1 + width * k / 4) for k in range(-4, 5))
    return RunRecord("gemm", "cpu", config or {"block": 1}, samples, flops=1e9, bytes=1e6)


def runs(*milliseconds: float, **config: Any) -> list[RunRecord]:
    return [run(one, **config) for one in milliseconds]


NOISY = runs(10.0, 22.1, 22.9, 11.4, block=1)


def test_runs_gather_by_position() -> None:
    mixed = [NOISY[0], run(3.0, block=2), *NOISY[1:], run(3.1, block=2)]
    first, second = positions_of(mixed)
    assert first.medians == pytest.approx((10.0e-3, 22.1e-3, 22.9e-3, 11.4e-3))
    assert second.config == {"block": 2}
    assert first.seconds == pytest.approx((11.4e-3 + 22.1e-3) / 2)
    assert first.range == pytest.approx((10.0e-3 * 0.9925, 22.9e-3 * 1.0075))
    failed = positions_of([*NOISY, RunRecord("gemm", "cpu", {"block": 1}, failure="wrong result")])[0]
    assert failed.seconds is None
    assert failed.medians == ()


def test_equal_positions_are_told_apart_in_few_of_many_tries() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    decided = 0
    for _ in range(400):
        sides = [positions_of([run(float(10 * rng.lognormal(0, 0.2))) for _ in range(4)])[0] for _ in "ab"]
        found = difference(*sides)
        decided += found is not None and found.decided
    assert decided / 400 <= 0.05


@pytest.mark.parametrize(
    ("now", "then", "decided"),
    [
        (runs(11.4), runs(40.1), False),  # one run each: who knows what the next would give
        (runs(11.4, 11.5, 11.3, 11.4), runs(40.1, 40.3, 39.9, 40.2), True),
        (NOISY, runs(20.0, 20.1, 20.2, 20.3), False),
        (runs(9.97, 9.97, 9.97, 9.97), runs(10.0, 10.0, 10.0, 10.0), False),  # 0.3 % inside the intervals
        (runs(8.0, 8.1, 8.2), runs(9.0, 9.1, 9.2), False),  # 1 in 10 by chance
    ],
)
def test_a_difference_is_one_when_runs_do_not_explain_it(now: Any, then: Any, decided: bool) -> None:
    found = difference(positions_of(now)[0], positions_of(then)[0])
    assert found is not None
    assert found.decided is decided
    assert found.low <= found.part <= found.high


def moves(*groups: list[RunRecord]) -> MoveHistory:
    history = MoveHistory()
    for number, group in enumerate(groups, 1):
        history = history.add(Move(number, group[0].config))
        for one in group:
            history = history.measured(number, one)
    return history


def test_noise_is_never_coloured() -> None:
    history = moves(
        NOISY, runs(20.0, 20.1, 20.2, 20.3, block=2), runs(30.0, block=3),
        runs(5.0, 5.1, 5.2, 5.0, block=4), runs(5.01, 5.06, 5.1, 5.03, block=5),
    )  # fmt: skip
    heads, rows = history_rows(history)
    cells = [row[heads.index("change")] for row in rows[::-1]]
    assert [(cell.text, cell.kind) for cell in cells] == [
        ("", ""), ("within noise", "q"), ("+49 %", "q"), ("\N{MINUS SIGN}83.2 %", "q"),
        ("within noise", "q"),
    ]  # fmt: skip
    assert "too few to tell" in cells[2].title
    again = moves(runs(20.0, 20.1, 20.2, 20.3, block=2), runs(5.0, 5.1, 5.2, 5.0, block=4))
    heads, rows = history_rows(again)
    change, time = (rows[0][heads.index(head)] for head in ("change", "time"))
    assert (change.text, change.kind) == ("\N{MINUS SIGN}75 %", "good")
    assert (time.text, time.kind) == ("5.0 ms best", "good")
    # Two that are equally fast have no best, and one alone neither.
    assert " best" not in history_html(history)
    assert " best" not in history_html(moves(NOISY))
    assert history.best() is history.moves[4]


def test_the_chart_shows_what_runs_differ_by() -> None:
    chart = chart_of([*NOISY, run(9.0, block=2)])
    assert [p.number for p in chart.points] == [1, 2]
    assert chart_rows(chart)[0][2:5] == ["17 ms", "10 to 23 ms", "4: 10 to 23 ms"]
    assert chart_rows(chart)[1][2:5] == ["9.00 ms", "8.93 to 9.07 ms", "1"]
    told = "\n".join(method_lines(chart))
    assert "Runs of one position differ by up to 129 % (position 1: 4 runs, 10 to 23 ms)." in told
    assert "differ" not in "\n".join(method_lines(chart_of([run(9.0)])))
    svg = chart_svg(chart)
    assert svg.count('r="1.8"') == 2 * 4
    assert "best " not in svg
    assert is_apart(*_pair(runs(5.0, 5.1, 5.2, 5.0, block=2), runs(9.0, 9.1, 9.2, 9.0)))


def _pair(first: list[RunRecord], second: list[RunRecord]) -> tuple[Any, list[Any]]:
    found = positions_of([*first, *second])
    return found[0], list(found)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (seconds_text(16.05e-3, 2), "16 ms"), (seconds_text(123e-6, 1), "100 us"),
        (seconds_text(970e-6, 1), "1 ms"),
        (span_text(9.6e-3, 23.4e-3), "10 to 23 ms"), (span_text(2.605e-3, 2.615e-3), "2.605 to 2.615 ms"),
        (span_text(0.9e-6, 1.1e-6), "0.9 to 1.1 us"), (span_text(1e-3, 1e-3), "1.00 ms"),
        (span_text(64e-6, 23e-3), "64 us to 23 ms"),
        (span_text(float("nan"), float("nan")), "nan ns to nan ns"),
        (span_text(1e-3, float("inf")), "1.00 ms to inf s"),
        (percent_text(1.408, 0.2, 2.0), "+140 %"), (percent_text(-0.149, -0.17, -0.13), "\N{MINUS SIGN}15 %"),
        (percent_text(0.0, -0.001, 0.001), "0.0 %"),
        (digits_within(11.42, 11.0, 11.9), 3), (digits_within(16.0, 9.0, 23.0), 2),
        (digits_within(1.0, 1.0, 1.0), 3),
    ],
)  # fmt: skip
def test_digits_are_those_that_the_range_leaves(made: Any, wanted: Any) -> None:
    assert made == wanted


@pytest.mark.parametrize("sample", [float("nan"), float("inf"), -1.0, 0.0])
def test_samples_that_no_clock_gives_are_shown_all_the_same(sample: float) -> None:
    """A record may be anybody's."""
    from tilebench.workbench.parts import run_bundle

    shown = run_bundle([RunRecord("k", "cpu", {}, (sample,) * 20, method="m")])
    assert "k on cpu" in shown["text/plain"]
