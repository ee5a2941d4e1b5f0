"""The table that a run prints: each work's time and rate, and each peer's time as a multiple of ours."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple

from ...profile.figures import rate_text, seconds_text
from ...profile.statistics import Ratio
from ...record import RunRecord
from .run import BenchRow

# Columns are as wide before the first row is known: rows are printed as they come.
_WORK, _TIME, _RATE, _PEER = 38, 8, 12, 22
_WIDTH = 110


def head(machine: str, on_host: bool, peers: Sequence[str] = ()) -> str:
    """The lines above a table."""
    note = " A measurement of the host ranks nothing for a card." if on_host else ""
    said = (
        f"On {machine}, medians. Behind a peer's time: that as a multiple of ours, with half its 95 % "
        f"interval; above 1 it is slower.{note}"
    )
    names = "".join(f"  {name:<{_PEER}s}" for name in peers)
    columns = f"{'work':<{_WORK}s}  {'time':>{_TIME}s}  {'rate':>{_RATE}s}{names}".rstrip()
    return f"{fill(said, _WIDTH)}\n{columns}"


def line_of(work: str, rows: Sequence[BenchRow]) -> str:
    """Ours first: time and rate; then the peers, and why one has no time."""
    ours = rows[0].record
    time, rate = (seconds_text(ours.seconds), _rate(ours)) if ours.seconds else ("-", "")
    cells = "".join(f"  {_cell(row):<{_PEER}s}" for row in rows[1:])
    lines = [f"{work:<{_WORK}s}  {time:>{_TIME}s}  {rate:>{_RATE}s}{cells}".rstrip()]
    for record in (row.record for row in rows if row.record.seconds is None):
        lines.append(f"      {record.config.get('by', '')}: {record.failure}")
    return "\n".join(lines)


def _cell(row: BenchRow) -> str:
    """A peer's time, and that beside ours: `10.1 us  1.35 ±0.02`."""
    if row.record.seconds is None:
        return f"{'-':>{_TIME}s}"
    beside = f"  {_beside(row.ratio)}" if row.ratio is not None else ""
    return f"{seconds_text(row.record.seconds):>{_TIME}s}{beside}"


def _beside(ratio: Ratio) -> str:
    half = max(ratio.high - ratio.value, ratio.value - ratio.low)
    return f"{ratio.value:5.2f} \N{PLUS-MINUS SIGN}{max(half, 0.005):.2f}"


def _rate(record: RunRecord) -> str:
    """Operations a second of what does more than 100 of them for a byte, else bytes."""
    by_bytes = bool(record.bytes) and record.flops < 100 * record.bytes
    work, unit = (record.bytes, "B/s") if by_bytes else (record.flops, f"{record.operation}/s")
    return rate_text(work / record.seconds, unit) if record.seconds else ""


class _Standing(NamedTuple):
    """A work beside the fastest of its peers."""

    work: str
    peer: str
    ratio: Ratio


def standing_of(found: Sequence[Sequence[BenchRow]]) -> str:
    """How often ours is faster than the fastest peer of a work, as fast, or slower; which ones are slower."""
    best: list[_Standing] = []
    for rows in found:
        timed = [(row.ratio, row.record.config["by"]) for row in rows[1:] if row.ratio is not None]
        if timed:
            ratio, peer = min(timed)
            best.append(_Standing(str(rows[0].record.config["work"]), str(peer), ratio))
    if not best:
        return ""
    slower = sorted((one for one in best if one.ratio.high < 1), key=lambda one: one.ratio.value)
    faster = sum(one.ratio.low > 1 for one in best)
    level = len(best) - faster - len(slower)
    text = (
        f"Beside the fastest peer of each of {len(best)} works: faster at {faster}, level at {level} (the "
        f"interval holds 1), slower at {len(slower)}."
    )
    behind = [f"  {one.work}: {one.peer} takes {one.ratio.value:.2f} of our time" for one in slower]
    return "\n".join([text, *behind])


def method_of(rows: Sequence[BenchRow]) -> str:
    """How the last work was measured, and on what."""
    record = next((row.record for row in rows if row.record.method), None)
    if record is None:
        return "nothing was measured"
    words = ("processor", "name", "sm_clock", "memory_clock", "power", "driver")
    about = [f"{k}: {v}" for k, v in record.environment.items() if k.endswith(words)]
    said = (f"Method: {record.method}.", f"Machine: {'; '.join(about)}.")
    return "\n".join(fill(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False) for text in said)
