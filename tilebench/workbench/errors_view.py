"""A `TileError` as HTML and as plain text: what, where with carets, expected, found, what to do."""

from __future__ import annotations

from ..errors import Place, TileError
from .style import escape, page

CSS = (
    ".tilebench .err{border-left:4px solid var(--bad);padding:10px 12px}"
    ".tilebench .err h3{color:var(--bad);margin:0 0 4px;white-space:pre-wrap}"
    ".tilebench .err h3>span{color:var(--fg);font-weight:500}"
    ".tilebench .at{margin:6px 0;border:1px solid var(--line);border-radius:4px;overflow:hidden}"
    ".tilebench .at>div{background:var(--bar);color:var(--dim);padding:2px 10px;font-size:12px}"
    ".tilebench .at>pre{padding:5px 10px;overflow-x:auto}"
    ".tilebench .err u{text-decoration:underline wavy var(--bad);text-underline-offset:3px;color:inherit}"
    ".tilebench .err .carets{display:none}"
    ".tilebench .err dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:6px 0 0}"
    ".tilebench .err dt{color:var(--dim)}.tilebench .err dd{margin:0;white-space:pre-wrap}"
    ".tilebench .err .help{color:var(--good)}"
)


def _span(place: Place) -> tuple[str, int, int]:
    """The quoted line without its indentation, and where the marked part starts and ends in it."""
    raw = place.text.rstrip()
    text = raw.expandtabs(4)
    start = len(raw[: place.column].expandtabs(4))
    one_line = place.end_line in (0, place.line) and place.end_column > place.column
    end = len(raw[: place.end_column].expandtabs(4)) if one_line else len(text)
    indent = len(text) - len(text.lstrip())
    start = min(max(start, indent), len(text))
    return text[indent:], start - indent, max(end, start + 1) - indent


def _place_html(place: Place) -> str:
    out: list[str] = []
    for step, here in enumerate(place.chain):
        inside = f", in {here.function}" if here.function else ""
        lead = "" if step == 0 else "called from "
        line = f"<div>{escape(lead + here.file)}:{here.line}{escape(inside)}</div>"
        if here.text.strip():
            text, start, end = _span(here)
            # Wide characters do not take two columns in every font, so the marked part is
            # underlined in place; the carets below it serve viewers that drop the style.
            line += (
                f"<pre>{escape(text[:start])}<u>{escape(text[start:end])}</u>{escape(text[end:])}\n"
                f'<span class="carets">{" " * start}{"^" * (end - start)}</span></pre>'
            )
        out.append(f'<div class="at">{line}</div>')
    return "".join(out)


def error_body(error: TileError) -> str:
    """The parts of an error without root and style sheet."""
    plain = error.explain().splitlines()
    title, _, _ = plain[0].partition(": ")
    # `explain` has the translated sentences; the places are drawn from the places themselves.
    out = [f"<h3>{escape(title)}: <span>{escape(error.message)}</span></h3>"]
    if error.place is not None:
        out.append(_place_html(error.place))
    for why, place in error.parts:
        out.append(f'<div class="q">{escape(why)}:</div>{_place_html(place)}')
    rows: list[str] = []
    for name, said in error.details:
        css = ' class="help"' if name == "help" else ""
        rows.append(f"<dt>{escape(name)}</dt><dd{css}>{escape(said)}</dd>")
    if rows:
        out.append(f"<dl>{''.join(rows)}</dl>")
    return f'<div class="err" role="alert">{"".join(out)}</div>'


def error_html(error: TileError, theme: str = "auto") -> str:
    """An error as HTML that stands alone."""
    return page(error_body(error), theme, CSS)


def error_text(error: TileError, *, color: bool = False) -> str:
    """An error in plain text with carets; `color` adds terminal colours."""
    return error.explain(color=color)
