"""The same charts as SVG of our own, for viewers without plotly: no script, no font, no fetch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .chart import Chart, ChartCeilings, Point, scale_of, time_scale
from .style import PALETTE, escape, number, rate_text

WIDTH = 760
_LEFT, _RIGHT = 62, 18


def ink(name: str) -> str:
    """A colour of the palette, with its light value where the style sheet was dropped."""
    return f"var(--{name},{PALETTE[name][0]})"


def nice_ticks(high: float, count: int = 5) -> list[float]:
    """About `count` round values from 0 to at least `high`; steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high > 0 or not math.isfinite(high):
        return [0.0, 1.0]
    raw = high / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(s * size for s in (1, 2, 2.5, 5, 10) if s * size >= raw * 0.999)
    return [step * at for at in range(math.ceil(high / step - 1e-9) + 1)]


def roof_points(ceilings: ChartCeilings, intensities: Sequence[float]) -> list[tuple[float, float]]:
    """Corners of the roofline around the ridge and the intensities shown: (FLOP a byte, FLOP/s)."""
    if not ceilings.flops or not ceilings.bytes:
        return []
    ridge = ceilings.flops / ceilings.bytes
    low, high = min([ridge, *intensities]) / 8, max([ridge, *intensities]) * 8
    return [(low, low * ceilings.bytes), (ridge, ceilings.flops), (high, ceilings.flops)]


@dataclass(frozen=True)
class PlotFrame:
    """A plotting area in pixels with its two scales (data to pixels)."""

    top: float
    height: float
    x: Callable[[float], float]
    y: Callable[[float], float]

    @property
    def bottom(self) -> float:
        return self.top + self.height


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink(colour)}"{more}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "", more: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}{more}>{escape(text)}</text>'


def _mark(x: float, y: float, shape: str, colour: str, title: str) -> str:
    fill = ink(colour)
    if shape == "square":
        body = f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{fill}"/>'
    elif shape == "flag":
        look = f'fill="{ink("bg")}" stroke="{ink("bad")}" stroke-width="2"'
        body = f'<path d="M{x:.1f} {y - 6:.1f}l6 11h-12z" {look}/>'
    elif shape == "cross":
        body = f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="{fill}" stroke-width="2.5"/>'
    else:
        body = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{fill}"/>'
    return f"<g><title>{escape(title)}</title>{body}</g>"


def _tip(chart: Chart, point: Point) -> str:
    parts = [f"position {point.number}: {point.label}"]
    if point.seconds is not None:
        parts.append(point.time_text + (f" ({point.runs_text})" if len(point.medians) > 1 else ""))
    if point.rate:
        parts.append(point.rate_text(chart.unit))
    return "; ".join(parts + [each for each in (point.failure, point.flagged) if each])


def _grid(frame: PlotFrame, ticks: Sequence[float], unit: str) -> list[str]:
    out: list[str] = []
    for tick in ticks:
        y = frame.y(tick)
        out.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "line" if tick == 0 else "track"))
        out.append(_text(_LEFT - 8, y + 4, f"{tick:g}", "end", "q"))
    middle = frame.top + frame.height / 2
    out.append(_text(14, middle, unit, "middle", "", f' transform="rotate(-90 14 {middle:.1f})"'))
    return out


class Spot(NamedTuple):
    """A position on one of the two axes: its value, its range, and the values of its runs."""

    point: Point
    middle: float
    low: float
    high: float
    runs: tuple[float, ...]


def _time_spot(p: Point, scale: float) -> Spot:
    middle, low, high = ((value or 0.0) / scale for value in (p.seconds, p.low, p.high))
    return Spot(p, middle, low, high, tuple(seconds / scale for seconds in p.medians))


def _rate_spot(p: Point, scale: float) -> Spot:
    middle, low, high = ((value or 0.0) / scale for value in (p.rate, p.rate_low, p.rate_high))
    return Spot(p, middle, low, high, tuple(p.work / seconds / scale for seconds in p.medians))


def _curve(frame: PlotFrame, spots: Sequence[Spot], colour: str, shape: str, chart: Chart) -> list[str]:
    """A line through the spots, a bar for each range, a mark for each median, a dot for each run."""
    path = " ".join(f"{frame.x(spot.point.number):.1f},{frame.y(spot.middle):.1f}" for spot in spots)
    dash = ' stroke-dasharray="2 4"' if shape == "square" else ""
    out = [f'<polyline points="{path}" fill="none" stroke="{ink(colour)}" stroke-width="1.5"{dash}/>']
    for p, middle, low, high, runs in spots:
        x = frame.x(p.number)
        out.append(_line(x, frame.y(low), x, frame.y(high), colour, ' stroke-width="1.5"'))
        out += [_line(x - 4, frame.y(e), x + 4, frame.y(e), colour) for e in (low, high)]
        for k, value in enumerate(runs if len(runs) > 1 else ()):
            place = f'cx="{x + 9 + 4 * min(k, 5):.1f}" cy="{frame.y(value):.1f}"'
            out.append(f'<circle {place} r="1.8" fill="none" stroke="{ink(colour)}"/>')
        out.append(_mark(x, frame.y(middle), "flag" if p.flagged else shape, colour, _tip(chart, p)))
    return out


def _frame(top: float, height: float, count: int, high: float) -> PlotFrame:
    span = WIDTH - _LEFT - _RIGHT
    return PlotFrame(
        top,
        height,
        lambda run: _LEFT + span * (run - 0.5) / max(1, count),
        lambda v: top + height * (1 - v / high),
    )


def _x_labels(chart: Chart, frame: PlotFrame) -> list[str]:
    """Under each position its number and, where there is room, what differs in its configuration."""
    count = len(chart.points)
    every = max(1, math.ceil(count / 20))
    room = (WIDTH - _LEFT - _RIGHT) / max(1, count)
    out: list[str] = []
    for p in chart.points[::every]:
        x = frame.x(p.number)
        out.append(_text(x, frame.bottom + 16, str(p.number), "middle"))
        if room >= 78 and chart.varied:
            parts = p.label.split(" ")[:4]
            out += [_text(x, frame.bottom + 31 + 13 * k, part, "middle", "q") for k, part in enumerate(parts)]
    return out


def history_svg(chart: Chart) -> str:
    """Rate above and time below, position by position, with the measured ceiling: an `<svg>` element."""
    count = len(chart.points)
    timed = [p for p in chart.points if p.seconds is not None]
    top_rate = max([p.rate_high or p.rate or 0.0 for p in timed] + [chart.ceiling or 0.0], default=0.0)
    scale, unit = scale_of(chart.unit, top_rate)
    tscale, tunit = time_scale(max((p.high or p.seconds or 0.0 for p in timed), default=0.0) or 1e-9)
    rticks = nice_ticks(top_rate / scale * 1.02)
    tticks = nice_ticks(max((p.high or p.seconds or 0.0 for p in timed), default=0.0) / tscale, 3)
    upper, lower = _frame(24, 190, count, rticks[-1]), _frame(240, 90, count, tticks[-1])
    out = _grid(upper, rticks, unit) + _grid(lower, tticks, tunit)
    if chart.ceiling:
        y = upper.y(chart.ceiling / scale)
        out.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "s2", ' stroke-width="1.5" stroke-dasharray="7 4"'))
        out.append(_text(_LEFT + 4, y - 5, f"measured ceiling {rate_text(chart.ceiling, chart.unit)}"))
    rated = [_rate_spot(p, scale) for p in timed if p.rate]
    times = [_time_spot(p, tscale) for p in timed]
    out += _curve(upper, rated, "s1", "circle", chart) + _curve(lower, times, "s3", "square", chart)
    for p in chart.points:
        if p.seconds is None:
            out.append(_mark(upper.x(p.number), upper.bottom - 8, "cross", "bad", _tip(chart, p)))
            out.append(_mark(lower.x(p.number), lower.bottom - 8, "cross", "bad", _tip(chart, p)))
    if chart.leader is not None and (first := chart.leader.point).rate:
        said = "best " * chart.leader.decided + first.rate_text(chart.unit)
        # Beside the bar of the range, on the side where the dots of the runs are not, and above the curve.
        spot = upper.x(first.number) - 9, upper.y((first.rate or 0.0) / scale) - 7
        out.append(
            f'<g paint-order="stroke" stroke="var(--bg)" stroke-width="3">{_text(*spot, said, "end")}</g>'
        )
    out += _x_labels(chart, lower)
    lines = 1 + (max((min(4, len(p.label.split(" "))) for p in chart.points), default=0) if count <= 8 else 0)
    title = f"{chart.kernel}: rate and time of {count} position{'s' * (count != 1)}"
    return _svg(title, lower.bottom + 22 + 13 * lines, out)


def roofline_svg(chart: Chart) -> str:
    """The positions under the measured roof, both axes logarithmic: an `<svg>` element.

    Empty when FLOP, bytes or a ceiling is missing.
    """
    spots = [(p, p.intensity, p.flops / p.seconds) for p in chart.points if p.seconds and p.intensity]
    roof = roof_points(chart.ceilings, [x for _, x, _ in spots])
    if not roof or not spots:
        return ""
    values = [y for _, y in roof] + [y for _, _, y in spots]
    x0, x1 = math.log10(roof[0][0]), math.log10(roof[-1][0])
    y0, y1 = math.log10(min(values)) - 0.2, math.log10(max(values)) + 0.25
    span = WIDTH - _LEFT - _RIGHT
    frame = PlotFrame(
        24, 240,
        lambda v: _LEFT + span * (math.log10(v) - x0) / (x1 - x0),
        lambda v: 24 + 240 * (y1 - math.log10(v)) / (y1 - y0),
    )  # fmt: skip
    out: list[str] = []
    for power in range(math.ceil(y0), math.floor(y1) + 1):
        y = frame.y(10.0**power)
        out.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "track"))
        scale, unit = scale_of("FLOP/s", 10.0**power)
        out.append(_text(_LEFT - 6, y + 4, f"{10.0**power / scale:.0f} {unit[0]}", "end", "q"))
    for power in range(math.ceil(x0), math.floor(x1) + 1):
        x = frame.x(10.0**power)
        out.append(_line(x, frame.top, x, frame.bottom, "track"))
        out.append(_text(x, frame.bottom + 16, number(10.0**power), "middle", "q"))
    out.append(_line(_LEFT, frame.bottom, WIDTH - _RIGHT, frame.bottom, "line"))
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in roof)
    out.append(
        f'<polyline points="{path}" fill="none" stroke="{ink("s2")}" stroke-width="1.5" '
        'stroke-dasharray="7 4"/>'
    )
    ridge = roof[1]
    out.append(
        _text(frame.x(ridge[0]), frame.y(ridge[1]) - 7, f"ridge {number(ridge[0])} FLOP a byte", "middle")
    )
    out += [
        _mark(frame.x(x), frame.y(y), "flag" if p.flagged else "circle", "s1", _tip(chart, p))
        for p, x, y in spots
    ]
    out.append(_text(14, 144, "FLOP/s", "middle", "", ' transform="rotate(-90 14 144)"'))
    out.append(_text(_LEFT + span / 2, frame.bottom + 34, "FLOP a byte of compulsory traffic", "middle"))
    return _svg(
        f"{chart.kernel}: roofline of {len(spots)} position{'s' * (len(spots) != 1)}", frame.bottom + 44, out
    )


def _svg(title: str, height: float, body: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
        f'aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        f"{''.join(body)}</svg>"
    )


def chart_svg(chart: Chart, kind: str = "history") -> str:
    """The `<svg>` element of a chart; `kind` is `history` or `roofline`."""
    return history_svg(chart) if kind == "history" else roofline_svg(chart)
