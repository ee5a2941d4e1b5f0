"""Charts of runs: time and rate of each move against the measured ceilings, and a roofline.

A chart is plain data here. It leaves as three forms that say the same: a plotly figure (a dict; a
figure in a notebook is 10 KB as JSON, 5 MB as a widget), an SVG of our own for viewers without
plotly, and a table. The method is printed under each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..record import RunRecord
from .style import number, rate_text, seconds_text

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
    flops = measured.flops_s.get(dtype) or measured.flops_s.get("float32")
    busy = "; the machine was busy, so they are low" if measured.busy else ""
    how = "; ".join(each for each in (measured.method, measured.when) if each) + busy
    return ChartCeilings(
        flops, measured.most_bytes_s, f"{measured.device}, {measured.threads} threads".lstrip(", "), how
    )


@dataclass(frozen=True)
class Point:
    """One run as the charts show it. `low` and `high` bound the median; `rate` in units a second."""

    number: int
    label: str
    config: Mapping[str, Any]
    seconds: float | None
    low: float | None
    high: float | None
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    failure: str
    flagged: str
    note: str = ""


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


def median_interval(samples: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """An interval for the median from order statistics, without assuming a distribution.

    The count of samples below the true median is binomial(n, 1/2); the widest pair of order
    statistics whose coverage reaches `level` is taken from the middle outwards (David and Nagaraja,
    Order Statistics, section 7.1). With fewer than 6 samples no pair reaches 95 %: smallest and
    greatest are given. None without samples.
    """
    ordered = sorted(samples)
    n = len(ordered)
    if n == 0:
        return None
    if n > 1000:  # the normal approximation is exact to a rank here, and needs no great binomials
        half = 0.98 * math.sqrt(n)
        low = math.floor(n / 2 - half)
        return ordered[low], ordered[n - 1 - low]
    chosen = [math.comb(n, k) for k in range(n + 1)]
    low = (n - 1) // 2
    while low > 0 and sum(chosen[low + 1 : n - low]) / 2**n < level:
        low -= 1
    return ordered[low], ordered[n - 1 - low]


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


def _point(run_number: int, run: RunRecord, varied: Sequence[str], unit: str, ceiling: float | None) -> Point:
    seconds, interval = run.seconds, median_interval(run.samples)
    low, high = interval if interval else (None, None)
    work = run.bytes if unit == "B/s" else run.flops
    rate = work / seconds if seconds and work else None
    flagged = ""
    if rate and ceiling and rate > ceiling * ABOVE:
        flagged = f"{number(rate / ceiling)} of the measured ceiling: the measurement or the ceiling is wrong"
    elif run.error is not None and run.bound is not None and not run.error <= run.bound:
        flagged = f"result outside its bound: error {number(run.error)}, bound {number(run.bound)}"
    rates = (work / high if rate and high else None, work / low if rate and low else None)
    label = config_text(run.config, varied) or f"run {run_number}"
    return Point(run_number, label, run.config, seconds, low, high, rate, *rates, run.failure, flagged)


def chart_of(runs: Sequence[RunRecord], ceilings: ChartCeilings | None = None, rate: str = "auto") -> Chart:
    """The chart of runs in the order given. `rate`: `flops`, `bytes`, or `auto` by the roofline."""
    limits = ceilings or ChartCeilings()
    with_work = next((run for run in reversed(runs) if run.flops or run.bytes), None)
    flops, moved = (with_work.flops, with_work.bytes) if with_work else (0.0, 0.0)
    by_flops = rate == "flops" or (rate == "auto" and is_compute_bound(flops, moved, limits))
    operation = with_work.operation if with_work else "FLOP"
    unit = f"{operation}/s" if by_flops else "B/s"
    # The ceiling of arithmetic is one of floating point: it says nothing of integers.
    ceiling = (limits.flops if operation == "FLOP" else None) if by_flops else limits.bytes
    varied = varied_names(runs)
    points = tuple(_point(k, run, varied, unit, ceiling) for k, run in enumerate(runs, 1))
    # The cost of a clock read is measured for each run; it does not make another method.
    told = [run.method for run in runs if run.method]
    # Nor do the intervals of the measurement, which are of its ratios: a chart has its own.
    told = [re.sub(r"; intervals: [^;]*", "", each) for each in told]
    methods = list({re.sub(r"\d+ ns for nothing", "", each): each for each in reversed(told)}.values())
    last = runs[-1] if runs else None
    return Chart(
        points, unit, ceiling, limits, "; ".join(methods), varied,
        last.kernel if last else "", last.target if last else "", flops, moved,
        dict(last.environment) if last else {},
    )  # fmt: skip


def method_lines(chart: Chart) -> list[str]:
    """What is printed under a chart: method, interval, ceiling, machine, flags."""
    out = [f"Method: {chart.method}." if chart.method else "Method: not recorded."]
    if any(p.seconds for p in chart.points):
        out.append("Interval of each time: 95 % of the median, by order statistics of its samples.")
    where = f" on {chart.ceilings.machine}" if chart.ceilings.machine else ""
    how = f" ({chart.ceilings.how})" if chart.ceilings.how else ""
    if chart.ceiling:
        out.append(f"Ceiling{where}: {rate_text(chart.ceiling, chart.unit)}{how}.")
    if chart.extra:
        out.append("Machine: " + ", ".join(f"{k} {v}" for k, v in chart.extra.items()) + ".")
    out += [f"Run {p.number} is flagged: {p.flagged}." for p in chart.points if p.flagged]
    return out


def chart_rows(chart: Chart) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table that says what the chart shows."""
    heads = ["run", "config", "time", "interval", "rate", "of ceiling", ""]
    rows: list[list[str]] = []
    for p in chart.points:
        if p.seconds is None:
            rows.append([str(p.number), p.label, "-", "-", "-", "-", p.failure or "not measured"])
            continue
        span = f"{seconds_text(p.low)} to {seconds_text(p.high)}" if p.low and p.high else "-"
        part = f"{number(p.rate / chart.ceiling)}" if p.rate and chart.ceiling else "-"
        rate = rate_text(p.rate, chart.unit) if p.rate else "-"
        rows.append([str(p.number), p.label, seconds_text(p.seconds), span, rate, part, p.flagged])
    return heads, rows


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
