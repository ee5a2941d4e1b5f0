"""A chart with its method and its table, as HTML, as plain text, and as a MIME bundle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...record import RunRecord
from ..chart import (
    CHART_HEADS,
    CHART_MONO,
    CHART_NUMERIC,
    Chart,
    ChartCeilings,
    chart_of,
    chart_rows,
    method_lines,
)
from ..figure import MIME, figure_of
from ..style import escape, page
from ..svg import chart_svg
from ..table import Cell, Value, table_html, table_text
from .resources import unicode_bar


def chart_body(chart: Chart, kinds: Sequence[str] = ("history",)) -> str:
    """A picture of each kind, then the method and the table once; without root and style sheet."""
    missing = '<p class="q">a roofline needs FLOP, bytes and both measured ceilings</p>'
    pictures = "".join(f"<div>{chart_svg(chart, kind) or missing}</div>" for kind in kinds)
    method = "".join(f"<div>{escape(line)}</div>" for line in method_lines(chart))
    return (
        f'<div class="cols">{pictures}</div><div class="q">{method}</div>'
        f"<details><summary>Table of runs</summary>{chart_table(chart)}</details>"
    )


def chart_table(chart: Chart) -> str:
    """The table of a chart: a row a position."""
    rows: list[list[Value]] = [
        [*row[:-1], Cell(row[-1], "bad" if row[-1] else "")] for row in chart_rows(chart)
    ]
    return table_html(CHART_HEADS, rows, numeric=CHART_NUMERIC, mono=CHART_MONO)


def chart_head(chart: Chart) -> str:
    """The bar above a chart: kernel and target."""
    facts = f'<span class="q">target {escape(chart.target)}</span>'
    return f'<div class="hd"><h2>{escape(chart.kernel)}</h2>{facts}</div>'


def chart_html(
    runs: Sequence[RunRecord],
    ceilings: ChartCeilings | None = None,
    theme: str = "auto",
    *,
    kind: str = "history",
) -> str:
    """A chart of runs as HTML that stands alone: picture, method, table."""
    chart = chart_of(runs, ceilings)
    return page(
        f'{chart_head(chart)}<div class="sec">{chart_body(chart, (kind,))}</div>',
        theme,
        "",
        f"runs of {chart.kernel}",
    )


def chart_text(runs: Sequence[RunRecord], ceilings: ChartCeilings | None = None) -> str:
    """The table of a chart with a bar for each rate (against the ceiling, else the best), and the method."""
    chart = chart_of(runs, ceilings)
    full = chart.ceiling or max((p.rate or 0.0 for p in chart.points), default=0.0)
    bars = [unicode_bar(p.rate / full, 16) if p.rate and full else "" for p in chart.points]
    rows = [[*row[:-1], bar, row[-1]] for row, bar in zip(chart_rows(chart), bars, strict=True)]
    table = table_text([*CHART_HEADS[:-1], "", ""], rows, numeric=CHART_NUMERIC)
    return "\n".join([f"{chart.kernel} on {chart.target}", table, *method_lines(chart)])


def chart_bundle(
    runs: Sequence[RunRecord],
    ceilings: ChartCeilings | None = None,
    *,
    kind: str = "history",
    rate: str = "auto",
    theme: str = "auto",
) -> dict[str, Any]:
    """The MIME bundle of a chart: plotly's JSON, our HTML, plain text; any one of them is enough."""
    return {
        MIME: figure_of(chart_of(runs, ceilings, rate), kind, theme),
        "text/html": chart_html(runs, ceilings, theme, kind=kind),
        "text/plain": chart_text(runs, ceilings),
    }
