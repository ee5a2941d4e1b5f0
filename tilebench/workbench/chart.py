"""Charts of runs: time and rate of each position against the measured ceilings, and a roofline.

A chart is plain data here. It leaves as three forms that say the same: a plotly figure (a dict; a
figure in a notebook is 10 KB as JSON, 5 MB as a widget), an SVG of our own for viewers without
plotly, and a table. The method is printed under each.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from ..profile.positions import Position, fastest, positions_of
from ..record import RunRecord
from .style import digits_within, number, rate_text, seconds_text, span_text

if TYPE_CHECKING:
    from ..profile.ceilings import Ceilings

# Above this part of a ceiling a measurement contradicts the ceiling and is flagged. Ceilings are
# themselves medians that repeat within 1 to 2 %.
ABOVE = 1.03


@dataclass(frozen=True)
class ChartCeilings:
    """What this machine reached when it was measured: FLOP and bytes a second (None: not measured).

    `machine` names the device, `how` says in words what was measured and when.
    """

    flops: float | None = None
    bytes: float | None = None
    machine: str = ""
    how: str = ""


def machine_ceilings(measured: Ceilings, dtype: str = "float32") -> ChartCeilings:
    """The ceilings of this machine's processor, as `tilebench.profile` measured them.

    `dtype` chooses the rate of arithmetic; a type that was not measured takes float32's. The bytes
    ceiling is the faster of copy and read, so that a kernel that only reads is not flagged.
    """
    flops = measured.peak(dtype)
    busy = "; the machine was busy, so they are low" if measured.busy else ""
    how = "; ".join(each for each in (measured.method, measured.when) if each) + busy
    return ChartCeilings(
        flops, measured.most_bytes_s, f"{measured.device}, {measured.threads} threads".lstrip(", "), how
    )


@dataclass(frozen=True)
class Point:
    """One position as the charts show it: the median of its runs, in the range of all of them.

    Times in seconds, `work` in FLOP or bytes. `medians` are those of the runs.
    """

    number: int
    label: str
    config: Mapping[str, Any]
    seconds: float | None
    low: float | None
    high: float | None
    work: float
    failure: str
    flagged: str
    medians: tuple[float, ...] = ()
    flops: float = 0.0
    bytes: float = 0.0

    @property
    def intensity(self) -> float | None:
        """FLOP a byte of compulsory traffic: where the point stands under a roof."""
        return self.flops / self.bytes if self.flops and self.bytes else None

    @property
    def rate(self) -> float | None:
        """Units a second."""
        return self.work / self.seconds if self.seconds and self.work else None

    @property
    def rate_low(self) -> float | None:
        return self.work / self.high if self.rate and self.high else None

    @property
    def rate_high(self) -> float | None:
        return self.work / self.low if self.rate and self.low else None

    @property
    def digits(self) -> int:
        """Significant digits that the range leaves of the time and of the rate."""
        return digits_within(self.seconds or 0.0, self.low or 0.0, self.high or 0.0)

    @property
    def time_text(self) -> str:
        return seconds_text(self.seconds or 0.0, self.digits)

    @property
    def runs_text(self) -> str:
        """How many runs, and from where to where their medians go."""
        if len(self.medians) < 2:
            return str(len(self.medians))
        return f"{len(self.medians)}: {span_text(min(self.medians), max(self.medians))}"

    def rate_text(self, unit: str) -> str:
        return rate_text(self.rate, unit, self.digits) if self.rate else ""


class Leader(NamedTuple):
    """The point with the least time; `decided` when what runs differ by does not explain it."""

    point: Point
    decided: bool


@dataclass(frozen=True)
class Chart:
    """Everything a chart shows, before it is drawn. `unit` is `FLOP/s`, `OP/s` or `B/s`."""

    points: tuple[Point, ...]
    unit: str
    ceiling: float | None
    ceilings: ChartCeilings
    method: str
    varied: tuple[str, ...]
    kernel: str
    target: str
    flops: float = 0.0
    bytes: float = 0.0
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    leader: Leader | None = None


def _value_text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def varied_names(runs: Sequence[RunRecord]) -> tuple[str, ...]:
    """The names of `config` that take more than one value among the runs."""
    names = dict.fromkeys(name for run in runs for name in run.config)
    return tuple(n for n in names if len({repr(run.config.get(n)) for run in runs}) > 1)


def config_text(config: Mapping[str, Any], names: Sequence[str] | None = None) -> str:
    """`block_M=128 num_stages=3`, for the names given or all."""
    keep = list(config) if names is None else [name for name in names if name in config]
    return " ".join(f"{name}={_value_text(config[name])}" for name in keep)


def is_compute_bound(flops: float, moved: float, ceilings: ChartCeilings) -> bool:
    """Whether the roofline puts the work under the FLOP ceiling rather than the bytes ceiling.

    Without both ceilings, 8 FLOP a byte divides: it lies below every ridge in use today and above
    every streaming kernel's intensity.
    """
    if not flops or not moved:
        return bool(flops)
    if ceilings.flops and ceilings.bytes:
        return flops / moved > ceilings.flops / ceilings.bytes
    return flops / moved > 8


def _flag(run: RunRecord, rate: float | None, ceiling: float | None) -> str:
    """Why a figure is not to be believed; empty when nothing speaks against it."""
    if rate and ceiling and rate > ceiling * ABOVE:
        return f"{number(rate / ceiling)} of the measured ceiling: the measurement or the ceiling is wrong"
    if run.error is not None and run.bound is not None and not run.error <= run.bound:
        return f"result outside its bound: error {number(run.error)}, bound {number(run.bound)}"
    return ""


def _point(place: int, position: Position, varied: Sequence[str], unit: str, ceiling: float | None) -> Point:
    run = position.last
    work = run.bytes if unit == "B/s" else run.flops
    low, high = position.range or (None, None)
    label = config_text(run.config, varied) or f"position {place}"
    point = Point(
        place,
        label,
        run.config,
        position.seconds,
        low,
        high,
        work,
        run.failure,
        "",
        position.medians,
        run.flops,
        run.bytes,
    )
    return replace(point, flagged=_flag(run, point.rate, ceiling))


# The newest charts with what they were made of: one picture asks for its own several times.
_charts: deque[tuple[tuple[object, ...], Chart]] = deque(maxlen=4)


def chart_of(runs: Sequence[RunRecord], ceilings: ChartCeilings | None = None, rate: str = "auto") -> Chart:
    """The chart of runs by position, in the order of their first runs.

    `rate`: `flops`, `bytes`, or `auto` by the roofline.
    """
    parts = (*runs, ceilings, rate)
    for known, chart in tuple(_charts):
        if len(known) == len(parts) and all(map(is_, known, parts)):
            return chart
    chart = _chart_of(runs, ceilings, rate)
    _charts.append((parts, chart))
    return chart


def _chart_of(runs: Sequence[RunRecord], ceilings: ChartCeilings | None, rate: str) -> Chart:
    limits = ceilings or ChartCeilings()
    with_work = next((run for run in reversed(runs) if run.flops or run.bytes), None)
    flops, moved = (with_work.flops, with_work.bytes) if with_work else (0.0, 0.0)
    by_flops = rate == "flops" or (rate == "auto" and is_compute_bound(flops, moved, limits))
    operation = with_work.operation if with_work else "FLOP"
    unit = f"{operation}/s" if by_flops else "B/s"
    # The ceiling of arithmetic is one of floating point: it says nothing of integers.
    ceiling = (limits.flops if operation == "FLOP" else None) if by_flops else limits.bytes
    varied = varied_names(runs)
    positions = positions_of(runs)
    points = tuple(_point(k, position, varied, unit, ceiling) for k, position in enumerate(positions, 1))
    # The cost of a clock read is measured for each run; it does not make another method.
    told = [run.method for run in runs if run.method]
    # Nor do the intervals of the measurement, which are of its ratios: a chart has its own.
    told = [re.sub(r"; intervals: [^;]*", "", each) for each in told]
    methods = list({re.sub(r"\d+ ns for nothing", "", each): each for each in reversed(told)}.values())
    last = runs[-1] if runs else None
    return Chart(
        points, unit, ceiling, limits, "; ".join(methods), varied,
        last.kernel if last else "", last.target if last else "", flops, moved,
        dict(last.environment) if last else {}, _leader(points, positions),
    )  # fmt: skip


def _leader(points: Sequence[Point], positions: Sequence[Position]) -> Leader | None:
    """The fastest of the points that nothing speaks against."""
    good = [k for k, point in enumerate(points) if not point.flagged]
    found = fastest([positions[k] for k in good])
    return None if found is None else Leader(points[good[found.number]], found.decided)


def method_lines(chart: Chart) -> list[str]:
    """What is printed under a chart: method, interval, ceiling, machine, flags."""
    timed = any(p.seconds for p in chart.points)
    out = [f"Method: {chart.method}." if chart.method else "Method: not recorded."] if timed else []
    if timed:
        out.append("Range of each time: 95 % interval of the median, by order statistics of its samples.")
    out += _spread_lines(chart)
    where = f" on {chart.ceilings.machine}" if chart.ceilings.machine else ""
    how = f" ({chart.ceilings.how})" if chart.ceilings.how else ""
    if chart.ceiling:
        out.append(f"Ceiling{where}: {rate_text(chart.ceiling, chart.unit)}{how}.")
    if chart.extra:
        out.append("Machine: " + ", ".join(f"{k} {v}" for k, v in chart.extra.items()) + ".")
    out += [f"Position {p.number} is flagged: {p.flagged}." for p in chart.points if p.flagged]
    return out


def _spread_lines(chart: Chart) -> list[str]:
    """What runs of one position differ by: how far any of these figures can be trusted."""
    repeated = [p for p in chart.points if len(p.medians) > 1]
    if not repeated:
        return []
    widest = max(repeated, key=lambda p: max(p.medians) / min(p.medians))
    part = 100 * (max(widest.medians) / min(widest.medians) - 1)
    span = span_text(min(widest.medians), max(widest.medians))
    where = f"position {widest.number}: {len(widest.medians)} runs, {span}"
    return [
        "Of several runs: the median of their medians, and a range from the least to the greatest of theirs.",
        f"Runs of one position differ by up to {number(part, 2)} % ({where}).",
    ]


CHART_HEADS = ("position", "config", "time", "range", "runs", "rate", "of ceiling", "note")
# Which of them are figures, and which is text of a program.
CHART_NUMERIC, CHART_MONO = (2, 3, 4, 5, 6), (1,)


def chart_rows(chart: Chart) -> list[list[str]]:
    """The rows, under `CHART_HEADS`, of the table that says what the chart shows."""
    rows: list[list[str]] = []
    for p in chart.points:
        head = [str(p.number), p.label]
        if p.seconds is None:
            rows.append([*head, "-", "-", "-", "-", "-", p.failure or "not measured"])
            continue
        span = span_text(p.low, p.high) if p.low and p.high else "-"
        part = number(p.rate / chart.ceiling, min(p.digits, 2)) if p.rate and chart.ceiling else "-"
        rows.append([*head, p.time_text, span, p.runs_text, p.rate_text(chart.unit) or "-", part, p.flagged])
    return rows


def scale_of(unit: str, largest: float) -> tuple[float, str]:
    """What to divide a rate by, and the unit then."""
    for size, lead in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if largest >= size:
            return size, lead + unit
    return 1.0, unit


def time_scale(largest: float) -> tuple[float, str]:
    """What to divide seconds by, and the unit then."""
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if largest >= size:
            return size, name
    return 1e-9, "ns"
