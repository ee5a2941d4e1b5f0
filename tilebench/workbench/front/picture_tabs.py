"""The tabs of pictures: what is long in them comes apart from the state of a live bench, when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .access_tab import access_blocks
from .block_data import Block, TabData
from .layout_tab import layout_blocks
from .memory_tab import card_blocks, memory_blocks

if TYPE_CHECKING:
    from ...pictures.collect import KernelPictures

TITLES = {"layouts": "Layouts", "accesses": "Accesses", "memory": "Memory"}


# Each state of a bench asks which tabs there are: the blocks of the newest pictures are made once.
_newest: tuple[KernelPictures | None, dict[str, tuple[Block, ...]]] = (None, {})


def picture_blocks(pictures: KernelPictures | None) -> dict[str, tuple[Block, ...]]:
    """The blocks by the names of tabs, of those that have some; `resources` has others in front of them."""
    global _newest
    if pictures is None:
        return {}
    if _newest[0] is pictures:
        return _newest[1]
    found = {
        "layouts": layout_blocks(pictures), "accesses": access_blocks(pictures),
        "memory": memory_blocks(pictures), "resources": card_blocks(pictures),
    }  # fmt: skip
    _newest = pictures, {name: blocks for name, blocks in found.items() if blocks}
    return _newest[1]


def with_pictures(tabs: Sequence[TabData], pictures: KernelPictures | None, *, live: bool) -> list[TabData]:
    """The tabs with those of pictures behind the resources; a live bench's are empty: it gets them apart."""
    found = picture_blocks(pictures)
    more = [
        TabData(name, title, () if live else found[name]) for name, title in TITLES.items() if name in found
    ]
    out: list[TabData] = []
    for tab in tabs:
        behind = found.get(tab.name, ()) if not live else ()
        out.append(replace(tab, blocks=(*tab.blocks, *behind)))
        if tab.name == "resources":
            out += more
    return out
