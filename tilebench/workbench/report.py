"""One HTML file that shows everything: records, charts, check results, errors, tables, text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ..errors import TileError
from ..plain import to_plain
from ..record import CompileRecord, RunRecord
from . import check_view, errors_view
from .bundle import RecordView
from .chart import ChartCeilings, chart_of
from .check_view import check_body
from .errors_view import error_body
from .front.build import bench_state
from .front.script import script
from .history import MoveHistory, history_body
from .packed import pack
from .picture import Picture
from .style import css, escape, pair
from .table import Value, table_html
from .views import resources, stages
from .views.runs import chart_body, chart_head
from .views.stages import Limits

if TYPE_CHECKING:
    from ..reference.check import CheckReport


@dataclass(frozen=True)
class Table:
    """A table of its own in a report; `numeric` columns are right-aligned."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Value]]
    numeric: Sequence[int] = ()


@dataclass(frozen=True)
class Runs:
    """Measurements that make one chart. `kinds` are the charts drawn: `history`, `roofline`."""

    runs: Sequence[RunRecord]
    ceilings: ChartCeilings | None = None
    kinds: Sequence[str] = ("history",)


Part: TypeAlias = "Picture | CompileRecord | Runs | CheckReport | MoveHistory | TileError | Table | str"


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it. A string is a paragraph."""

    title: str
    parts: Sequence[Part] = field(default_factory=tuple)
    limits: Limits = stages.MOST_LINES


_PAGE = (
    f"body{{margin:0;background:{pair('bg')};color:{pair('fg')};color-scheme:light dark;"
    "font:14px/1.5 system-ui,sans-serif}main,header,nav{max-width:1800px;margin:0 auto;padding:0 24px}"
    "header{padding-top:24px}h1{font-size:22px;margin:0 0 4px}main>section>h2{font-size:17px;"
    "margin:28px 0 8px}"
    "nav ol{margin:8px 0;padding-left:20px}nav a{color:" + pair("accent") + "}"
    "p.para{max-width:80ch}@media print{.tilebench .panes{height:auto!important;flex-wrap:wrap}}"
)


def _bench(picture: Picture, number: int, limits: Limits) -> tuple[str, str]:
    """A bench: its plain form, which the script of the page replaces by the one that moves, and rules."""
    record = picture.shown_record
    if picture.record is None or record is None:
        return "", ""
    state = bench_state(picture, f"r{number}", picture.record.kernel)
    panes, rules = stages.stages_body(record, None, limits, prefix=f"r{number}-")
    body = [stages.heading(record), panes]
    if picture.report is not None:
        body.append(f'<div class="sec">{check_body(picture.report)}</div>')
    if picture.runs:
        chart = chart_of(picture.runs, picture.ceilings)
        kinds = ("history", "roofline") if picture.ceilings else ("history",)
        body.append(f'{chart_head(chart)}<div class="sec">{chart_body(chart, kinds)}</div>')
    body.append(resources.details_body(record, picture.shared_limit))
    # Link rules name source lines, which another record has too: keep each to its own.
    rules = rules.replace(".tilebench .panes", f"#r{number} .panes")
    packed = pack({"record": to_plain(picture.record), "runs": [], "state": to_plain(state)})
    plain = f'<div class="tilebench" id="r{number}">{"".join(body)}</div>'
    return f'<div data-tilebench="{packed}">{plain}</div>', rules


def _part(part: Part, number: int, limits: Limits) -> tuple[str, str]:
    """HTML of a part and the rules that are its own."""
    if isinstance(part, str):
        return f'<p class="para">{escape(part)}</p>', ""
    if isinstance(part, Picture):
        return _bench(part, number, limits)
    if isinstance(part, CompileRecord):
        return _bench(RecordView(part).picture, number, limits)
    from ..reference.check import CheckReport  # brings NumPy, which a page of records does without

    if isinstance(part, Runs):
        chart = chart_of(part.runs, part.ceilings)
        body = f'{chart_head(chart)}<div class="sec">{chart_body(chart, part.kinds)}</div>'
    elif isinstance(part, CheckReport):
        body = f'<div class="sec">{check_body(part)}</div>'
    elif isinstance(part, MoveHistory):
        body = f'<div class="sec">{history_body(part)}</div>'
    elif isinstance(part, TileError):
        body = error_body(part)
    else:
        body = f'<div class="sec">{table_html(part.heads, part.rows, numeric=part.numeric)}</div>'
    return f'<div class="tilebench" id="r{number}">{body}</div>', ""


def _script(parts: Sequence[str]) -> str:
    """The front end, where there is something for it to draw."""
    if not any("data-tilebench=" in part for part in parts):
        return ""
    # What would end the element early stands in strings alone, where a backslash changes nothing.
    text = script().replace("</", "<\\/")
    return f'<script type="module">{text}\nvoid mountAll(document);</script>'


def report_html(title: str, sections: Sequence[Section], *, theme: str = "auto", note: str = "") -> str:
    """A whole HTML document, nothing fetched. `note` is a line under the title.

    Where scripts run, each compilation is a bench with linked panes; without them it reads the same.
    """
    out: list[str] = []
    rules: list[str] = []
    number = 0
    for chapter, section in enumerate(sections, 1):
        out.append(f'<section id="s{chapter}"><h2>{escape(section.title)}</h2>')
        for part in section.parts:
            number += 1
            body, own = _part(part, number, section.limits)
            out.append(body)
            rules.append(own)
        out.append("</section>")
    toc = "".join(f'<li><a href="#s{at}">{escape(s.title)}</a></li>' for at, s in enumerate(sections, 1))
    views = stages.CSS + resources.CSS + check_view.CSS + errors_view.CSS
    scheme = "" if theme == "auto" else f"body{{color-scheme:{theme}}}"
    said = f"<p>{escape(note)}</p>" if note else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_PAGE}{scheme}{css(theme, views)}{''.join(rules)}"
        "</style></head><body>"
        f'<header><h1>{escape(title)}</h1>{said}</header><nav aria-label="contents"><ol>{toc}</ol></nav>'
        f"<main>{''.join(out)}</main>{_script(out)}</body></html>"
    )
