"""A fold of a row in the loop that fills the row: the row is not read again."""

from __future__ import annotations

from ....ir import Load, Stmt, Store, const_of, walk
from ..loops.words import Accumulate, Fold, Vectors
from .touches import touches


def fold_into(first: Stmt, second: Stmt) -> Vectors | None:
    """The loop that fills a row, doing the fold that follows it in passing; None where it is not that."""
    if not isinstance(first, Vectors) or not isinstance(second, Fold) or first.streaming:
        return None
    count, box = const_of(first.stop), second.src
    extent = box.extent or (0,)
    whole = count == extent[-1] and all(size == 1 for size in extent[:-1]) and const_of(box.start[-1]) == 0
    if not whole or count is None or const_of(first.start) != 0 or first.lanes != second.lanes:
        return None
    element = Load(box.buffer, (*box.start[:-1], first.vars[0]), place=second.place)
    touched = {touch.buffer for touch in touches(first.body)}
    if second.dst.buffer.name in touched or not _fills(first, element):
        return None
    accumulate = Accumulate(second.kind, second.dst, element, clear=second.clear, place=second.place)
    return first.but(body=(*first.body, accumulate), overrun=first.overrun and count % first.lanes == 0)


def _fills(loop: Vectors, element: Load) -> bool:
    """Whether every turn stores the row's element, and none stores another of its tile."""
    here = [node for node in loop.body if isinstance(node, Store) and node.buffer == element.buffer]
    stores = [node for statement in loop.body for node in walk(statement) if isinstance(node, Store)]
    clean = all(store.buffer != element.buffer or store.index == element.index for store in stores)
    return clean and any(store.index == element.index for store in here)
