"""A bench's sweep as data: what its button does, how far it is, and the table of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...profile.positions import DOUBT, Position, rank
from ...sweeps.result import Sweep
from ...sweeps.table import HEADS, drift_text, swept_names, time_cells
from ..style import seconds_text
from ..table import Cell, Value
from .block_data import Block, TabData
from .blocks import table
from .state import SweepData

if TYPE_CHECKING:
    from ...record import SweepRow
    from ..picture import Picture
    from ..sweeping import SweepShown

# Rows of the table that a browser is sent; a larger sweep is read whole from its file.
MOST_ROWS = 300
_WORDS = {
    "running": ("on", "sweep"),
    "stopped": ("warn", "sweep stopped at"),
    "done": ("good", "sweep done"),
    "failed": ("bad", "sweep failed"),
}


def sweep_data(picture: Picture) -> SweepData | None:
    """What the button says and does; None where the bench was opened without a sweep."""
    shown = picture.sweep
    if shown is None:
        if not picture.sweeps:
            return None
        title = f"try all {picture.sweeps} combinations: compiled, checked, timed in several runs each"
        return SweepData("", "", "", None, "Run sweep", title)
    button, title = {
        "running": ("Stop sweep", "what it has stays, and it can go on from there"),
        "stopped": ("Go on", "go on with the sweep where it stopped"),
        "done": ("More runs", "the sweep is complete: four more runs of each configuration"),
        "failed": ("Run sweep", "try again, with what is measured kept"),
    }[shown.state]
    tone, word = _WORDS[shown.state]
    return SweepData(shown.state, f"{word}{_how_far(shown)}", tone, _part(shown), button, title)


def _part(shown: SweepShown) -> float | None:
    progress = shown.progress
    return progress.done / progress.total if shown.state == "running" and progress.total else None


def _how_far(shown: SweepShown) -> str:
    progress = shown.progress
    if shown.state in ("done", "failed"):
        return ""
    left = (
        f", {seconds_text(progress.left, 2)} left"
        if progress.left is not None and shown.state == "running"
        else ""
    )
    return f" {progress.done}/{progress.total} runs{left}"


def sweep_tab(picture: Picture, whole: bool = True) -> list[TabData]:
    """The table of all rows: the fastest first, then what failed and what is illegal, with reasons.

    Not `whole`: the tab without its table, which is sent apart.
    """
    shown = picture.sweep
    if shown is None:
        return []
    rows = shown.rows
    bad = sum(row.state == "failed" for row in rows)
    timed = sum(row.state == "timed" for row in rows)
    badge, tone = (f"{bad} failed", "bad") if bad else (f"{timed} of {len(rows)}", "quiet")
    return [TabData("sweep", "Sweep", tuple(_blocks(shown)) if whole else (), badge, tone)]


def _blocks(shown: SweepShown) -> list[Block]:
    sweep = Sweep(shown.record)
    out = [Block(f"{sweep.summary[:1].upper()}{sweep.summary[1:]}.")]
    out += [Block(shown.why, "bad")] if shown.why else []
    names = swept_names(shown.record)
    rows = sweep_rows(sweep, names)
    count = len(names)
    out.append(
        table([*names, *HEADS[1:]], rows[:MOST_ROWS], numeric=(*range(count), *range(count, count + 5)))
    )
    if len(rows) > MOST_ROWS:
        out.append(
            Block(
                f"{len(rows) - MOST_ROWS} more rows are in the file that wb.sweep().save(path) writes.",
                "quiet",
            )
        )
    return [*out, *(Block(said, "quiet") for said in (doubt_of(rows), drift_text(shown.rows)) if said)]


def doubt_of(rows: Sequence[Sequence[Value]]) -> str:
    """What a question mark means, where one stands in a table."""
    return DOUBT if any(isinstance(cell, str) and cell.endswith("?") for row in rows for cell in row) else ""


def sweep_rows(sweep: Sweep, names: Sequence[str]) -> list[list[Value]]:
    """The cells of the table."""
    leader, record = sweep.leader, sweep.record
    best = leader[1].position if leader is not None else None
    alike = leader is None or not leader[1].by_rate
    timed = sorted(record.of("timed"), key=lambda row: rank(Position(row.runs), alike=alike))
    out: list[list[Value]] = []
    for row in timed:
        first = leader is not None and row is leader[0]
        decided = first and leader is not None and leader[1].decided
        note = Cell("best" if decided else "best so far", "good" if decided else "q") if first else Cell("")
        out.append([*_values(row, names), *time_cells(Position(row.runs), best, record.limits), note])
    for state, kind in (("failed", "bad"), ("illegal", "warn"), ("compiled", "q"), ("waiting", "q")):
        for row in record.of(state):
            why = Cell(f"{state}: {row.why}" if row.why else state, kind)
            out.append([*_values(row, names), "-", "", "", "", str(len(row.runs) or ""), why])
    return out


def _values(row: SweepRow, names: Sequence[str]) -> list[Value]:
    return [str(row.config.get(name, "")) for name in names]
