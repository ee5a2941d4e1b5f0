"""Tables, as HTML a screen reader can walk and as aligned plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from .style import escape


@dataclass(frozen=True)
class Cell:
    """One cell. `kind` is a class of the style sheet (`good`, `bad`, `warn`, `q`, `mono`).

    `mark` says that the value differs from the row before; `title` is shown on hover.
    """

    text: str
    kind: str = ""
    mark: bool = False
    title: str = ""


Value = str | Cell


def _cell(value: Value) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def table_html(
    heads: Sequence[str],
    rows: Sequence[Sequence[Value]],
    *,
    caption: str = "",
    numeric: Sequence[int] = (),
    mono: Sequence[int] = (),
) -> str:
    """An HTML table: the first cell of a row is its heading; `numeric` columns are right-aligned."""
    out = ['<div class="wide"><table>']
    if caption:
        out.append(f"<caption>{escape(caption)}</caption>")
    out.append("<thead><tr>")
    for column, head in enumerate(heads):
        css = ' class="num"' if column in numeric else ""
        out.append(f'<th scope="col"{css}>{escape(head)}</th>')
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append("<tr>")
        for column, value in enumerate(row):
            cell = _cell(value)
            names = (
                ["num"] * (column in numeric) + ["mono"] * (column in mono) + [cell.kind] * bool(cell.kind)
            )
            css = f' class="{" ".join(names)}"' if names else ""
            title = f' title="{escape(cell.title)}"' if cell.title else ""
            text = f"<mark>{escape(cell.text)}</mark>" if cell.mark else escape(cell.text)
            name, scope = ("th", ' scope="row"') if column == 0 else ("td", "")
            out.append(f"<{name}{scope}{css}{title}>{text}</{name}>")
        out.append("</tr>")
    out.append("</tbody></table></div>")
    return "".join(out)


def width(text: str) -> int:
    """Columns that `text` takes in a terminal."""
    return sum(
        0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1
        for ch in text
    )


def table_text(
    heads: Sequence[str], rows: Sequence[Sequence[Value]], *, numeric: Sequence[int] = (), indent: str = ""
) -> str:
    """The same table in aligned columns; a marked value carries a `*`."""
    body = [[c.text + "*" * c.mark for c in map(_cell, row)] for row in rows]
    grid = [list(heads), *body]
    widths = [max((width(row[at]) for row in grid if at < len(row)), default=0) for at in range(len(heads))]
    out: list[str] = []
    for row in grid:
        parts: list[str] = []
        for column, text in enumerate(row):
            pad = " " * (widths[column] - width(text))
            parts.append(pad + text if column in numeric else text + pad)
        out.append((indent + "  ".join(parts)).rstrip())
    out.insert(1, (indent + "  ".join("-" * each for each in widths)).rstrip())
    return "\n".join(out)
