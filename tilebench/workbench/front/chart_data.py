"""The chart as data: every measured position, how far it is from the fastest, and where the controls are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...profile.positions import Position, difference, positions_of, same_work
from ..chart import Chart, chart_of, config_text, method_lines
from ..others import other_positions
from ..style import percent_text, rate_text, seconds_text
from ..tiers import plain_config
from ..wish import EDITED
from .state import ChartData, OtherData, PointData, RefusedData

if TYPE_CHECKING:
    from ...record import SweepRow
    from ..picture import Picture

# How much slower than the fastest the steps of a map end, as parts: 10 %, 30 %, twice the time, and beyond.
STEPS = (0.1, 0.3, 1.0)


def chart_data(picture: Picture) -> ChartData | None:
    """The chart of all runs; None where there are none."""
    rows = picture.sweep.rows if picture.sweep is not None else ()
    runs = picture.runs
    if not runs:
        return None
    chart = chart_of(runs, picture.ceilings)
    positions = positions_of(runs)
    leader = chart.leader
    best = positions[leader.point.number - 1] if leader is not None else None
    swept = (
        tuple(name for name in picture.sweep.record.domains if name in chart.varied)
        if rows and picture.sweep
        else ()
    )
    return ChartData(
        points=tuple(_point(chart, k, position, best) for k, position in enumerate(positions)),
        unit=chart.unit,
        ceiling=chart.ceiling,
        ceiling_text=f"measured ceiling {rate_text(chart.ceiling, chart.unit)}" if chart.ceiling else "",
        varied=chart.varied,
        leader=leader.point.number if leader is not None else None,
        decided=leader is not None and leader.decided,
        method=tuple(method_lines(chart)),
        target=chart.target,
        roof_flops=chart.ceilings.flops if chart.unit != "OP/s" else None,
        roof_bytes=chart.ceilings.bytes,
        alike=all(same_work(positions[0], position) for position in positions),
        swept=swept,
        refused=tuple(_refused(row, chart.varied) for row in rows if row.state in ("illegal", "failed")),
        others=tuple(_other(position, best, chart) for position in other_positions(picture)),
    )


def here(picture: Picture) -> int | None:
    """The number of the position of now among the chart's."""
    now = plain_config(picture.wish.config)
    found = (k for k, each in enumerate(positions_of(picture.runs), 1) if dict(each.config) == now)
    return next(found, None)


def now_values(picture: Picture) -> dict[str, str]:
    """The values of the position of now, as the chart's points have theirs."""
    config = plain_config(picture.wish.config)
    return {name: _value(config, name) for name in config}


def moved_name(picture: Picture) -> str:
    """The one name whose value the last move changed; empty where it changed several, or none."""
    moves = picture.history.moves[-2:]
    if len(moves) < 2:
        return ""
    before, now = (move.config for move in moves)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return names[0] if len(names) == 1 else ""


def step_of_position(position: Position, best: Position | None) -> tuple[int, str]:
    """The step from the fastest and its words; -1 where nothing can be said."""
    if best is None or not position.seconds:
        return -1, ""
    if position is best:
        return 0, "the fastest"
    found = difference(position, best)
    if found is None:
        return -1, "other work"
    text = percent_text(found.part, found.low, found.high)
    if not found.decided:
        return (
            (0, "within noise of the fastest")
            if found.low <= 0 <= found.high
            else (-1, f"{text}{found.mark} ({found.why})")
        )
    step = 1 + sum(found.part > limit for limit in STEPS)
    return step, f"{text} beside the fastest"


def _value(config: dict[str, object], name: str) -> str:
    return config_text(config, [name]).partition("=")[2]


def _point(chart: Chart, index: int, position: Position, best: Position | None) -> PointData:
    point = chart.points[index]
    step, to_best = step_of_position(position, best)
    if position is best and (chart.leader is None or not chart.leader.decided):
        to_best = "the fastest so far"
    return PointData(
        point.number, point.label, point.seconds, point.low, point.high,
        point.time_text if point.seconds is not None else "", point.rate, point.rate_low, point.rate_high,
        point.rate_text(chart.unit), point.failure, point.flagged, point.runs_text,
        {name: _value(dict(point.config), name) for name in chart.varied},
        point.intensity, point.flops / point.seconds if point.flops and point.seconds else None,
        EDITED in point.config, step, to_best,
    )  # fmt: skip


def _refused(row: SweepRow, varied: Sequence[str]) -> RefusedData:
    config = dict(row.config)
    values = {name: _value(config, name) for name in varied if name in config}
    return RefusedData(config_text(config, varied), values, row.state, row.why)


def _other(position: Position, best: Position | None, chart: Chart) -> OtherData:
    """Another implementation in the units of the chart."""
    run, seconds, span = position.last, position.seconds, position.range or (None, None)
    work = run.bytes if chart.unit == "B/s" else run.flops
    found = difference(position, best) if best is not None else None
    text = percent_text(found.part, found.low, found.high) if found is not None else ""
    if found is not None and not found.decided:
        text = "within noise of the fastest" if found.low <= 0 <= found.high else text + found.mark
    low, high = span

    def rate(of: float | None) -> float | None:
        return work / of if work and of else None

    mine = rate(seconds)
    return OtherData(
        run.kernel, seconds, low, high, seconds_text(seconds) if seconds else "", mine, rate(high), rate(low),
        rate_text(mine, chart.unit) if mine else "", text, run.failure,
    )  # fmt: skip
