"""Plotly figures of runs as plain dicts: the MIME bundle is JSON, so plotly itself is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import OptionError
from ..record import RunRecord
from .chart import Chart, ChartCeilings, Point, chart_of, config_text, method_lines, scale_of, time_scale
from .style import PALETTE, check_theme, number, rate_text, span_text

MIME = "application/vnd.plotly.v1+json"
KINDS = ("history", "roofline")
# One constant for all figures: an update keeps the reader's zoom and selection.
UIREVISION = "tilebench"
_TIP = "%{text}<extra></extra>"


def _colours(theme: str) -> dict[str, str]:
    # A plotly output cannot follow the page, so `auto` is light on its own opaque ground: readable
    # on every page. A caller who knows the page's theme names it.
    return {name: pair[theme == "dark"] for name, pair in PALETTE.items()}


def _hover(chart: Chart, point: Point) -> str:
    lines = [f"<b>position {point.number}</b>  {config_text(point.config)}"]
    if point.seconds is not None:
        span = f" ({span_text(point.low, point.high)})" if point.low and point.high else ""
        lines.append(point.time_text + span)
        lines += [f"runs: {point.runs_text}"] if len(point.medians) > 1 else []
    if point.rate:
        part = f", {number(point.rate / chart.ceiling, 2)} of the ceiling" if chart.ceiling else ""
        lines.append(point.rate_text(chart.unit) + part)
    lines += [each for each in (point.failure, point.flagged) if each]
    return "<br>".join(each.replace("<", "&lt;") if not each.startswith("<b>") else each for each in lines)


def _bars(
    middle: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> dict[str, Any]:
    return {
        "type": "data", "symmetric": False, "thickness": 1.5, "width": 4, "color": colour,
        "array": [h - m for m, h in zip(middle, high, strict=True)],
        "arrayminus": [m - lo for m, lo in zip(middle, low, strict=True)],
    }  # fmt: skip


def _series(chart: Chart, axis: str, scale: float, colour: str, bad: str) -> dict[str, Any]:
    """The trace of times (`axis` y2) or rates (y), with the interval of each median."""
    timed = [p for p in chart.points if p.seconds is not None and (axis == "y2" or p.rate)]
    shape = "square" if axis == "y2" else "circle"
    if axis == "y2":
        found = [(p.seconds, p.low, p.high) for p in timed]
    else:
        found = [(p.rate, p.rate_low, p.rate_high) for p in timed]
    middle, low, high = ([(each[k] or 0.0) / scale for each in found] for k in range(3))
    return {
        "type": "scatter", "mode": "lines+markers", "name": "time" if axis == "y2" else "rate",
        "x": [p.number for p in timed], "y": middle, "yaxis": axis,
        "text": [_hover(chart, p) for p in timed], "hovertemplate": _TIP,
        "error_y": _bars(middle, low, high, colour),
        "line": {"color": colour, "width": 1.5, "dash": "dot" if axis == "y2" else "solid"},
        "marker": {
            "color": [bad if p.flagged else colour for p in timed], "size": 10,
            "symbol": ["triangle-up-open" if p.flagged else shape for p in timed],
        },
    }  # fmt: skip


def _failed(chart: Chart, colour: str) -> dict[str, Any]:
    failed = [p for p in chart.points if p.seconds is None]
    return {
        "type": "scatter", "mode": "markers", "name": "no time", "x": [p.number for p in failed],
        "y": [0] * len(failed), "yaxis": "y", "marker": {"symbol": "x", "size": 10, "color": colour},
        "text": [_hover(chart, p) for p in failed], "hovertemplate": _TIP,
        "cliponaxis": False,
    }  # fmt: skip


def _axis(title: str, c: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title}, "gridcolor": c["track"], "zerolinecolor": c["line"], "linecolor": c["line"],
        "tickfont": {"color": c["dim"]}, **more,
    }  # fmt: skip


def _layout(chart: Chart, c: dict[str, str], height: int) -> dict[str, Any]:
    lines = method_lines(chart)
    return {
        "height": height + 15 * len(lines), "margin": {"l": 70, "r": 24, "t": 42, "b": 72 + 15 * len(lines)},
        "paper_bgcolor": c["bg"], "plot_bgcolor": c["bg"], "font": {"color": c["fg"], "size": 12},
        "title": {
            "text": f"{chart.kernel} on {chart.target}", "x": 0.01, "xanchor": "left", "font": {"size": 14},
        },
        "showlegend": False, "hovermode": "closest", "uirevision": UIREVISION,
        "annotations": [
            {
                "text": "<br>".join(lines), "xref": "paper", "yref": "paper", "x": 0, "y": 0,
                "yshift": -56, "xanchor": "left", "yanchor": "top", "showarrow": False, "align": "left",
                "font": {"size": 11, "color": c["dim"]},
            }
        ],
    }  # fmt: skip


def _ceiling(layout: dict[str, Any], chart: Chart, scale: float, c: dict[str, str]) -> None:
    if not chart.ceiling:
        return
    height = chart.ceiling / scale
    layout["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": height, "y1": height,
         "line": {"color": c["s2"], "width": 1.5, "dash": "dash"}},
    ]  # fmt: skip
    layout["annotations"].append(
        {"text": f"measured ceiling {rate_text(chart.ceiling, chart.unit)}", "xref": "paper", "x": 0,
         "yref": "y", "y": height, "xanchor": "left", "yanchor": "bottom", "showarrow": False,
         "font": {"size": 11, "color": c["s2"]}}
    )  # fmt: skip


def history_figure(chart: Chart, theme: str = "auto") -> dict[str, Any]:
    """Rate above, time below, over the positions in the order of their first runs."""
    c = _colours(theme)
    rates = [p.rate_high or p.rate or 0.0 for p in chart.points] + [chart.ceiling or 0.0]
    scale, unit = scale_of(chart.unit, max(rates))
    tscale, tunit = time_scale(max((p.seconds or 0.0 for p in chart.points), default=0.0) or 1e-9)
    layout = _layout(chart, c, 380)
    layout["xaxis"] = _axis(
        "position", c, dtick=1 if len(chart.points) <= 20 else None, range=[0.5, len(chart.points) + 0.5]
    )
    layout["xaxis"]["anchor"] = "y2"
    layout["yaxis"] = _axis(unit, c, domain=[0.42, 1], rangemode="tozero")
    layout["yaxis2"] = _axis(tunit, c, domain=[0, 0.34], rangemode="tozero")
    _ceiling(layout, chart, scale, c)
    data = [
        _series(chart, "y", scale, c["s1"], c["bad"]),
        _series(chart, "y2", tscale, c["s3"], c["bad"]),
        _failed(chart, c["bad"]),
    ]
    return {"data": data, "layout": layout}


def roofline_figure(chart: Chart, theme: str = "auto") -> dict[str, Any]:
    """FLOP/s over FLOP a byte, both logarithmic, under the measured roof.

    The roof is min(ceiling of FLOP/s, intensity * ceiling of bytes/s) (Williams, Waterman and
    Patterson, CACM 52(4), 2009).
    """
    from .svg import roof_points

    c = _colours(theme)
    layout = _layout(chart, c, 360)
    reached = [(p, p.flops / p.seconds) for p in chart.points if p.seconds and p.intensity]
    intensities = [p.intensity or 0.0 for p, _ in reached]
    roof = roof_points(chart.ceilings, intensities)
    scale, unit = scale_of("FLOP/s", max([y for _, y in reached] + [y for _, y in roof] + [1.0]))
    layout["xaxis"] = _axis("FLOP a byte of compulsory traffic", c, type="log", dtick=1)
    layout["yaxis"] = _axis(unit, c, type="log", dtick=1)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines", "name": "measured roof", "x": [x for x, _ in roof],
            "y": [y / scale for _, y in roof], "line": {"color": c["s2"], "dash": "dash"},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter", "mode": "markers", "name": "runs", "x": intensities,
            "y": [y / scale for _, y in reached], "text": [_hover(chart, p) for p, _ in reached],
            "hovertemplate": _TIP,
            "marker": {
                "size": 10, "color": [c["bad"] if p.flagged else c["s1"] for p, _ in reached],
                "symbol": ["triangle-up-open" if p.flagged else "circle" for p, _ in reached],
            },
        },
    ]  # fmt: skip
    return {"data": data, "layout": layout}


def figure_of(chart: Chart, kind: str = "history", theme: str = "auto") -> dict[str, Any]:
    """The plotly figure of a chart as a dict. Raises `OptionError` for an unknown kind or theme."""
    check_theme(theme)
    if kind not in KINDS:
        raise OptionError("there is no chart {kind!r}", kind=kind, expected=", ".join(KINDS))
    return history_figure(chart, theme) if kind == "history" else roofline_figure(chart, theme)


def run_figure(
    runs: Sequence[RunRecord],
    ceilings: ChartCeilings | None = None,
    *,
    kind: str = "history",
    rate: str = "auto",
    theme: str = "auto",
) -> dict[str, Any]:
    """A plotly figure (`data`, `layout`) of runs in the order of the moves that made them.

    `kind` is `history` (rate and time with their ranges, position by position, against the measured
    ceiling) or `roofline`; `rate` is `flops`, `bytes` or `auto`. Raises `OptionError` otherwise.
    """
    return figure_of(chart_of(runs, ceilings, rate), kind, theme)
