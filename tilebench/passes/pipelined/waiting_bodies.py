"""The bodies in which something is waited for: where the passes that move waits begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import Stmt
from ...language.lowered.tokens import Wait


def with_waits_moved(node: Any, move: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Any:
    """A node whose own bodies that have a wait are what `move` makes of them."""
    changed: dict[str, Any] = {}
    for name, is_body in node.below:
        body = getattr(node, name)
        if is_body and any(isinstance(statement, Wait) for statement in body):
            changed[name] = move(body)
    return node.but(**changed) if changed else node


__all__ = ["with_waits_moved"]
