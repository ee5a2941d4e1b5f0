"""The workbenches that are open, by the cell that shows them.

A cell that is run again replaces its own benches, whatever their kernels are called by then, and two cells
may show the same kernel. Where a front end does not say which cell runs, the kernel's name stands for it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .live import Workbench

# Each has a thread that sleeps and some 200 KB of widgets; cells that are deleted leave theirs open.
MOST_OPEN = 32

_open: list[Workbench] = []
_guard = threading.Lock()


class CellRun(NamedTuple):
    """The cell that runs: its identity in the notebook, and which of its runs this is. Empty when unknown."""

    identity: str = ""
    run: str = ""


def cell_now(shell: Any) -> CellRun:
    """The cell that runs in a shell, as the front end says it (JupyterLab, Notebook 7 and VS Code do)."""
    parent: Any = shell.get_parent() if hasattr(shell, "get_parent") else None
    if not parent:
        return CellRun()
    identity: Any = parent.get("metadata", {}).get("cellId")
    return CellRun(str(identity or ""), str(parent.get("header", {}).get("msg_id", "")))


def make_room(name: str, cell: CellRun) -> None:
    """Close what a new bench of that kernel in that cell takes the place of."""
    with _guard:
        if cell.identity:
            leaving = [b for b in _open if b.cell.identity == cell.identity and b.cell.run != cell.run]
        else:
            leaving = [b for b in _open if not b.cell.identity and b.name == name]
        crowded = [b for b in _open if b not in leaving][: -(MOST_OPEN - 1)]
    for bench in leaving:
        bench.close(f"Closed, because {name} was opened again. To have controls here, run this cell.")
    for bench in crowded:
        bench.close(f"Closed, because {MOST_OPEN} newer ones are open. To have controls here, run this cell.")


def enter(bench: Workbench) -> None:
    """Add an open bench."""
    with _guard:
        _open.append(bench)


def leave(bench: Workbench) -> None:
    """Take a bench out that was closed."""
    with _guard:
        if bench in _open:
            _open.remove(bench)


def close_all() -> None:
    """Close every open workbench."""
    for bench in open_benches():
        bench.close()


def open_benches() -> tuple[Workbench, ...]:
    """The open workbenches, oldest first."""
    with _guard:
        return tuple(_open)
