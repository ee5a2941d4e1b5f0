"""A picture as pieces of HTML, each for a place of its own in a view, and as one static bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import TileError
from ..profile.timeline import timeline_text
from ..record import CompileRecord, RunRecord
from ..sweeps.result import Sweep
from ..sweeps.table import HEADS, drift_text, swept_names
from . import check_view, errors_view
from .chart import chart_of, config_text, method_lines
from .errors_view import error_body
from .front.build import bench_state
from .front.gutters import plain_gutters
from .front.marks import MARKS_MIME, marks_json, picture_marks
from .front.picture_tabs import picture_blocks
from .front.sweep_data import doubt_of, sweep_rows
from .history import history_body, history_text
from .packed import MIME, record_json
from .picture import Picture
from .status import remarks
from .style import escape, page
from .svg import chart_svg
from .table import table_html
from .views import resources, stages
from .views.pictures import picture_sections
from .views.runs import chart_table, chart_text
from .views.stages import LineLimits

# Lines of a stage in the plain form, which shows what changed and the low languages by their first lines.
TEXT_LIMITS = LineLimits(tile=24, emitted=12)
# A saved notebook with eight workbenches stays under 400 KB with these.
STATIC_LIMITS = LineLimits(tile=100, emitted=45)
NEWEST_MOVES = 12
# Rows of a sweep that a saved output shows; its file has all.
SWEEP_ROWS = 60
# Languages of the common road, whose texts a saved output has whole.
_KEPT = ("python", "tile-ir")

_EXTRA = (
    # Not by opacity, which takes the contrast away: what is old can still be read.
    ".tilebench .old{border-left:6px double var(--warn)}"
    ".tilebench .oldnote{padding:4px 12px;background:var(--changed);"
    "border-bottom:1px solid var(--line);color:var(--warn)}"
    ".tilebench .note{padding:4px 12px;color:var(--dim)}"
    # JupyterLab stripes and centres the tables of HTML outputs.
    ".jp-RenderedHTMLCommon .tilebench tbody tr{background:none}"
    ".jp-RenderedHTMLCommon .tilebench :is(th,td):not(.num){text-align:left}"
)
LEFT_ALONE = (
    "A picture: its controls are gone with the kernel that made them. To have them, run this cell again."
)


def sheet() -> str:
    """The style sheet of the parts, beside that of every page."""
    return stages.CSS + resources.CSS + check_view.CSS + errors_view.CSS + _EXTRA


def _notes(said: Sequence[str]) -> str:
    return "".join(f'<div class="note">{escape(each)}</div>' for each in said)


def problem_part(picture: Picture) -> str:
    """Why the wish could not be had; empty when it could."""
    return error_body(picture.problem) if picture.problem is not None else ""


def stages_part(picture: Picture, prefix: str, limits: LineLimits = STATIC_LIMITS) -> str:
    """Heading and panes, with the rules that link their lines; marked where they are an older wish's."""
    record = picture.record
    if record is None:
        return ""
    panes, rules = stages.stages_body(record, picture.shown or None, limits, prefix=prefix)
    note, kind = "", ""
    if picture.stale:
        differs = {k: v for k, v in record.parameters.items() if picture.wish.values.get(k) != v}
        was = config_text(differs) or "the last good choice"
        note, kind = (
            f'<div class="oldnote">Below: the last good picture, of {escape(was)}.</div>',
            ' class="old"',
        )
    return f"<style>{rules}</style>{note}<div{kind}>{stages.heading(record)}{panes}</div>"


def details_part(picture: Picture) -> str:
    """Resources, choices, remarks, diagnostics, and the tables of the pictures."""
    if picture.record is None:
        return ""
    kind = ' class="old"' if picture.stale else ""
    sections = resources.detail_sections(picture.record, picture.shared_limit)
    sections += picture_sections(picture_blocks(picture.pictures))
    return f"<div{kind}>{resources.sections_html(sections)}</div>"


def chart_part(picture: Picture) -> str:
    """The chart of runs with its method and table."""
    if not picture.runs:
        return ""
    chart = chart_of(picture.runs, picture.ceilings)
    method = "".join(f"<div>{escape(line)}</div>" for line in method_lines(chart))
    # The method stands beside the picture: what says how far a figure can be trusted is never folded.
    table = f"<details><summary>Table of runs</summary>{chart_table(chart)}</details>"
    side = f'<div class="q">{method}</div>{table}'
    title = f'<h3>Runs <span class="q">on {escape(chart.target)}</span></h3>'
    columns = f'<div class="cols"><div>{chart_svg(chart)}</div><div>{side}</div></div>'
    return f'<section class="sec">{title}{columns}</section>'


def sweep_part(picture: Picture) -> str:
    """The table of a sweep, the fastest rows first; what was refused stands at the end."""
    if picture.sweep is None:
        return ""
    sweep = Sweep(picture.sweep.record)
    names = swept_names(sweep.record)
    rows = sweep_rows(sweep, names)
    table = table_html([*names, *HEADS[1:]], rows[:SWEEP_ROWS], numeric=range(len(names) + 5))
    more = len(rows) - SWEEP_ROWS
    rest = f'<div class="q">{more} more rows</div>' if more > 0 else ""
    said = [doubt_of(rows), drift_text(sweep.rows)]
    drift = "".join(f'<div class="q">{escape(text)}</div>' for text in said if text)
    head = f'<h3>Sweep <span class="q">{escape(sweep.summary)}</span></h3>'
    return f'<section class="sec">{head}{table}{rest}{drift}</section>'


def timeline_part(run: RunRecord | None) -> str:
    """What warps did when, of a run that has clocks: in words, a table and a strip of letters each."""
    if run is None or not run.events:
        return ""
    title = f'<h3>Timeline <span class="q">on {escape(run.target)}</span></h3>'
    return f'<section class="sec">{title}<pre tabindex="0">{escape(timeline_text(run))}</pre></section>'


def check_part(picture: Picture) -> str:
    """The report of the last check."""
    if picture.report is None:
        return ""
    body = check_view.check_body(picture.report)
    return f'<section class="sec"><h3>Check against the reference</h3>{body}</section>'


def history_part(picture: Picture) -> str:
    """The newest moves; nothing before the first one."""
    if len(picture.history) < 2:
        return ""
    body = history_body(picture.history, picture.ceilings, NEWEST_MOVES)
    return f'<section class="sec"><h3>Moves</h3>{body}</section>'


def static_html(picture: Picture, theme: str = "auto", fallback: str = "") -> str:
    """All parts in one piece of HTML that stands alone. `fallback` names the live view it stands in for."""
    body = "".join(
        (
            problem_part(picture), _notes(remarks(picture)), stages_part(picture, "", STATIC_LIMITS),
            check_part(picture), chart_part(picture), sweep_part(picture),
            timeline_part(picture.clocks.run if picture.clocks is not None else None),
            details_part(picture), history_part(picture),
        )
    )  # fmt: skip
    if fallback:
        body = _notes([LEFT_ALONE]) + body
    html = page(body, theme, sheet(), "workbench")
    if not fallback:
        return html
    return (
        f'<style>{_hide_gone(fallback)}</style><div data-tilebench-fallback="{escape(fallback)}">{html}</div>'
    )


def _hide_gone(name: str) -> str:
    """JupyterLab's line about a widget that is gone is hidden where the static form says it better.

    It is an output without any element in it, just before the static form's.
    """
    return (
        f'.jp-OutputArea-child:has(+.jp-OutputArea-child [data-tilebench-fallback="{escape(name)}"])'
        ">.jp-OutputArea-output.jupyter-widgets:not(:has(*)){display:none}"
    )


def line_bundle(text: str) -> dict[str, Any]:
    """A line, or nothing at all, in the place of controls that were closed."""
    html = page(f'<div class="note">{escape(text)}</div>', "auto", _EXTRA) if text else ""
    return {"text/html": html, "text/plain": text}


def static_text(picture: Picture) -> str:
    """The same in plain text."""
    out: list[str] = []
    if picture.problem is not None:
        out.append(picture.problem.explain())
    out += remarks(picture)
    if picture.record is not None:
        shown = picture.shown or None
        out.append(stages.stages_text(picture.record, shown, limits=TEXT_LIMITS, changed_only=True))
    if picture.report is not None:
        out.append(check_view.check_text(picture.report))
    if picture.runs:
        out.append(chart_text(picture.runs, picture.ceilings))
    if picture.sweep is not None:
        out.append(Sweep(picture.sweep.record).table())
    if picture.clocks is not None and picture.clocks.run is not None:
        out.append(timeline_text(picture.clocks.run))
    if picture.record is not None:
        out.append(resources.details_text(picture.record, picture.shared_limit))
    if len(picture.history) > 1:
        out.append(history_text(picture.history, picture.ceilings))
    return "\n\n".join(out)


def static_bundle(picture: Picture, theme: str = "auto", fallback: str = "") -> dict[str, Any]:
    """The MIME bundle that stands alone. As a live view's fallback it leaves our own JSON out.

    (The extension would draw that JSON beside the live view; HTML can be hidden while one is there.)
    """
    out: dict[str, Any] = {
        "text/html": static_html(picture, theme, fallback),
        "text/plain": static_text(picture),
    }
    if picture.record is not None and not fallback:
        state = bench_state(picture, "", picture.record.kernel)
        saved = _saved(picture.record, picture.shown)
        gutters = plain_gutters(picture.record, {stage.name for stage in saved.stages}, picture.own_pictures)
        out[MIME] = record_json(saved, picture.runs, state, gutters)
    marks = picture_marks(picture)
    if marks or fallback:
        out[MARKS_MIME] = marks_json(marks, fallback)
    return out


def _saved(record: CompileRecord, shown: Sequence[str]) -> CompileRecord:
    """The record as a notebook keeps it: of texts that a target emits only those that are shown.

    PTX alone would take half of its bytes.
    """
    stages = [s for s in record.stages if s.name in shown or s.language in _KEPT or not shown]
    return replace(record, stages=tuple(stages))


def error_bundle(error: TileError, theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of an error."""
    return {"text/html": errors_view.error_html(error, theme), "text/plain": error.explain()}


def run_bundle(runs: Sequence[Any], theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of a measurement, or of several."""
    from .views.runs import chart_html

    clocked = [run for run in runs if run.events]
    strips = "".join(map(timeline_part, clocked))
    html = page(strips, theme, _EXTRA) if strips else ""
    text = [chart_text(runs), *map(timeline_text, clocked)]
    return {"text/html": chart_html(runs, None, theme) + html, "text/plain": "\n\n".join(text)}
