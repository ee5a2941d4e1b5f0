"""What a kernel said that chooses nothing becomes a remark at its line.

`T.note("T.copy(eviction_policy='evict_first') chooses nothing here")` -> nothing, and the remark.
"""

from __future__ import annotations

from typing import Any

from ...ir import Function, map_bodies
from ...language.notes import Note
from ..context import Context

NAME = "tell_notes"


def tell_notes(function: Function, context: Context) -> Function:
    """The function without its notes."""

    def step(node: Any) -> Any:
        if isinstance(node, Note):
            context.remark(NAME, "note", node.text, node)
            return None
        return map_bodies(node, step)

    return step(function)
