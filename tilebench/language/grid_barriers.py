"""`T.sync_grid()`: every block waits for all others (`closing/grid_barriers.py` says what becomes of it)."""

from __future__ import annotations

from ..errors import LanguageError
from ..ir import OpStmt, node
from .tracing.builder import for_tiles


@node
class SyncGrid(OpStmt):
    """`T.sync_grid()` while a kernel is traced; launches stand in its place from the tile stage on."""

    word = "sync_grid"


def sync_grid() -> None:
    """Every block of the launch waits for all others, and sees what they wrote to arrays before.

    It stands in the kernel's own body, not in a loop or branch. A second launch of the same blocks begins
    there: of tiles and scalars made before, each is to be written again before it is read. Raises
    `LanguageError` in a loop or branch, and where a tile's or scalar's value is read behind the barrier.
    """
    builder = for_tiles("T.sync_grid")
    if builder.frames[-1].kind != "kernel":
        raise LanguageError(
            "T.sync_grid stands in the kernel's own body, not in a loop or branch",
            also=[("the loop or branch is here", builder.frames[-1].place)],
            hint="a Python loop around several `with T.Kernel(...)` launches as often as it turns",
        )
    builder.emit(SyncGrid(place=builder.place))
