"""The table of a sweep as aligned text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

from ..profile.figures import aligned, number, percent_text, rate_text, seconds_text, span_text
from ..profile.positions import DOUBT, Fastest, Position, difference, positions_by_kernel, rank
from ..record import RunRecord, SweepRecord, SweepRow
from .engine import varied_names

HEADS = ("", "time", "range", "rate", "to the best", "runs", "note")


def table_of(record: SweepRecord, leader: tuple[SweepRow, Fastest] | None, summary: str) -> str:
    """See `Sweep.table`."""
    names = swept_names(record)
    best = leader[1].position if leader is not None else None
    by_rate = leader is not None and leader[1].by_rate
    timed = sorted(record.of("timed"), key=lambda row: rank(Position(row.runs), alike=not by_rate))
    others = positions_by_kernel(record.others)
    # One configuration beside others has no name that differs: its rows are told apart by the kernel's.
    heads = names or (("kernel",) if others else ())
    rows: list[list[str]] = [[*heads, *HEADS[1:]]]
    for row in timed:
        first = leader is not None and row is leader[0]
        note = ("best" if leader is not None and leader[1].decided else "best so far") if first else ""
        rows.append(
            [*_values(row, heads, record.kernel), *time_cells(Position(row.runs), best, record.limits), note]
        )
    for other in others:
        blank = [other.last.kernel, *[""] * (len(heads) - 1)]
        cells = time_cells(other, best, record.limits) if other.seconds else ["-", "", "", "", ""]
        rows.append([*blank, *cells, other.last.failure])
    for state in ("failed", "illegal", "compiled", "waiting"):
        for row in record.of(state):
            cells = ["-", "", "", "", str(len(row.runs) or ""), _note(row)]
            rows.append([*_values(row, heads, record.kernel), *cells])
    head = f"{record.kernel} on {record.target}, {summary}"
    doubt = DOUBT if any(cell.endswith("?") for row in rows for cell in row) else ""
    said = [doubt, _ceilings_text(record), drift_text(record.rows)] + [
        f"Method: {run.method}" for run in record.runs[-1:] if run.method
    ]
    return "\n".join([head, *aligned(rows), *(_in_lines(text) for text in said if text)])


def _in_lines(text: str) -> str:
    """A note in lines that a terminal shows whole."""
    return fill(text, 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _ceilings_text(record: SweepRecord) -> str:
    """The measured ceilings of the machine, where they are known."""
    names = (("flops", "FLOP/s"), ("bytes", "B/s"))
    parts = [rate_text(record.limits[name], unit) for name, unit in names if record.limits.get(name)]
    how = f" ({record.how})" if record.how else ""
    return f"Measured ceilings of {record.machine}: {', '.join(parts)}{how}." if parts else ""


def _values(row: SweepRow, heads: Sequence[str], kernel: str) -> list[str]:
    return [str({"kernel": kernel, **row.config}.get(head, "")) for head in heads]


def _note(row: SweepRow) -> str:
    return f"{row.state}: {row.why}" if row.why else row.state


def swept_names(record: SweepRecord) -> tuple[str, ...]:
    """The names whose values differ among the rows; those of the domains where there is one row."""
    return varied_names([row.config for row in record.rows]) or tuple(record.domains)


def is_bound_by_flops(run: RunRecord, limits: Mapping[str, float]) -> bool:
    """Whether the roofline puts a run under the ceiling of arithmetic; unknown, 8 FLOP a byte divide."""
    if not run.flops or not run.bytes:
        return bool(run.flops)
    flops, moved = limits.get("flops"), limits.get("bytes")
    return run.flops / run.bytes > (flops / moved if flops and moved else 8)


def time_cells(position: Position, best: Position | None, limits: Mapping[str, float]) -> list[str]:
    """Time, range, rate and the difference to the best one, each as fine as its range leaves it."""
    seconds, span = position.seconds or 0.0, position.range
    last = position.last
    by_flops = is_bound_by_flops(last, limits)
    work, unit = (last.flops, f"{last.operation}/s") if by_flops else (last.bytes, "B/s")
    found = difference(position, best) if best is not None and best.runs is not position.runs else None
    change = percent_text(found.part, found.low, found.high) if found is not None else ""
    if found is not None and not found.decided:
        change = "within noise" if found.low <= 0 <= found.high else change + found.mark
    return [
        seconds_text(seconds), span_text(*span) if span else "",
        rate_text(work / seconds, unit) if work else "", change, str(len(position.medians)),
    ]  # fmt: skip


def drift_text(rows: Sequence[SweepRow]) -> str:
    """What the runs of one configuration differ by at most, over the whole sweep; empty without repeats."""
    medians = [Position(row.runs).medians for row in rows if len(row.runs) > 1]
    spreads = [max(m) / min(m) - 1 for m in medians if m]
    if not spreads:
        return ""
    middle = sorted(spreads)[len(spreads) // 2]
    return (
        f"Runs of one configuration, spread over the whole sweep, differ by {number(100 * middle, 2)} % "
        f"in the median and {number(100 * max(spreads), 2)} % at most: drift and other work are in that."
    )
