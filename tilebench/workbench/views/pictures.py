"""The tables of the pictures in plain HTML: what is read where nothing draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..style import escape
from ..table import Cell, Value, table_html

if TYPE_CHECKING:
    from ..front.block_data import Block

TITLES = {
    "accesses": "Accesses to memory", "memory": "Shared memory", "layouts": "Conversions",
    "resources": "Cards",
}  # fmt: skip

# What the style sheet of the HTML form calls a tone, where the two differ.
_KINDS = {"quiet": "q", "on": ""}


def picture_sections(blocks: Mapping[str, Sequence[Block]]) -> list[tuple[str, str]]:
    """(heading, HTML) of the sentences and tables of each tab; what one chooses there is left out."""
    out: list[tuple[str, str]] = []
    for name, title in TITLES.items():
        body = "".join(_html(block) for block in blocks.get(name, ()))
        if "<table" in body:
            out.append((title, body))
    return out


def _html(block: Block) -> str:
    said = f"<p>{escape(block.text)}</p>" if block.text else ""
    if block.table is None:
        return said
    rows: list[list[Value]] = [
        [
            Cell(c.text, _KINDS.get(c.tone, c.tone), title=c.title) if c.tone or c.title else c.text
            for c in row
        ]
        for row in block.table.rows
    ]
    caption = f'<p class="q">{escape(block.table.caption)}</p>' if block.table.caption else ""
    heads, table = block.table.heads, block.table
    return said + caption + table_html(heads, rows, numeric=table.numeric, mono=table.mono)
