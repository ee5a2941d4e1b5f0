"""Room for trees nested deeper than Python's stack: what does not fit is done again in a thread with more.

Passes, the reference and the simulator follow a tree by calling themselves, a few frames a level. Python
stops them at 1,000 frames, which are 100 levels for some; expressions made by a helper's loop have hundreds.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from .node import Node, children

R = TypeVar("R")

# Frames and bytes of stack of such a thread: a thousand levels and more. Bytes are taken as they are used.
FRAMES = 12_000
STACK_BYTES = 256 << 20
DEEP = 50
_one_at_a_time = threading.Lock()


def is_deep(root: Node) -> bool:
    """Whether a tree is nested so deeply that it may not fit Python's stack."""
    level, depth = {id(root): root}, 0
    while level and depth < DEEP:
        level, depth = {id(each): each for node in level.values() for each in children(node)}, depth + 1
    return depth == DEEP


def with_room(run: Callable[[], R], *, undo: Callable[[], object] = lambda: None, sure: bool = False) -> R:
    """What `run` gives. Where the stack is too small, `undo` takes back what it did, and it is run once more.

    `sure` says that it is too small. Raises `RecursionError` where the larger one is too small as well.
    """
    if not sure or sys.getrecursionlimit() >= FRAMES:
        try:
            return run()
        except RecursionError:
            if sys.getrecursionlimit() >= FRAMES:
                raise
        undo()
    results: list[R] = []
    failures: list[BaseException] = []
    context = contextvars.copy_context()

    def inside() -> None:
        try:
            results.append(context.run(run))
        except BaseException as error:  # raised where it was asked for
            failures.append(error)

    with _one_at_a_time:
        frames, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(FRAMES)
        try:
            thread = threading.Thread(target=inside, name="tilebench-deep")
            thread.start()
            threading.stack_size(size)
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(frames)
    if failures:
        raise failures[0]
    return results[0]
