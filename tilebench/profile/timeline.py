"""What clocks inside a kernel said: rows of numbers made events, and events a picture of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..record import ClockEvent, RunRecord
from .overlap import story_of, told

# Events that a record keeps: whole blocks, the first ones, and one at least.
MOST_KEPT = 8192
COLUMNS = 96
LETTERS = {"load": "L", "wait": "w", "barrier": "b", "compute": "C", "store": "S"}


class TimedSite(NamedTuple):
    """A statement that is timed: its number in the rows, what it does, its name and the user's line."""

    number: int
    kind: str
    name: str
    line: int = 0


def sites_of(remarks: Sequence[Any]) -> tuple[TimedSite, ...]:
    """The sites that `insert_clocks` told in its remarks."""
    found: list[TimedSite] = []
    for remark in remarks:
        if remark.pass_name == "insert_clocks":
            values = remark.values
            line = remark.place.line if remark.place is not None else 0
            found.append(TimedSite(int(values["site"]), str(values["does"]), str(values["called"]), line))
    return tuple(found)


def events_of(rows: Any, sites: Sequence[TimedSite]) -> tuple[ClockEvent, ...]:
    """The events in rows of (blocks, warps, events, 4): whole blocks, as far as a record keeps them."""
    known: Mapping[int, TimedSite] = {site.number: site for site in sites}
    begun = rows[:, :, 0, 1][rows[:, :, 0, 3] > 0]
    since = int(begun.min()) if begun.size else 0
    events: list[ClockEvent] = []
    for block in range(len(rows)):
        warps = [warp for warp in range(rows.shape[1]) if rows[block, warp, 0, 3] > 0]
        if not warps:
            continue
        first = min(int(rows[block, warp, 0, 2]) for warp in warps)
        own = [
            event for warp in warps for event in _of_warp(rows[block, warp], block, warp, first, since, known)
        ]
        if events and len(events) + len(own) > MOST_KEPT:
            break
        events += own
    return tuple(events)


def _of_warp(
    rows: Any, block: int, warp: int, first: int, since: int, known: Mapping[int, TimedSite]
) -> list[ClockEvent]:
    unit, nanoseconds, start, end = (int(each) for each in rows[0])
    found = [
        ClockEvent(block, warp, "block", "block", unit, start - first, end - first, since=nanoseconds - since)
    ]
    for site, turn, began, ended in rows[1:].tolist():
        here = known.get(site)
        if here is not None:
            times = began - first, ended - first
            found.append(ClockEvent(block, warp, here.kind, here.name, turn, *times, line=here.line))
    return found


def timeline_text(record: RunRecord) -> str:
    """The first block of a run with clocks: what its warps did, in a table and a strip of letters each."""
    if record.failure or not record.events:
        return f"{record.kernel} on {record.target}: {record.failure or 'no clock was read'}"
    block = record.events[0].block
    events = [event for event in record.events if event.block == block]
    whole = [event for event in events if event.kind == "block"]
    last = max(event.end for event in whole)
    story, unit = story_of(record), record.event_unit
    place = f" on multiprocessor {whole[0].iteration}" if unit == "cycles" else ""
    out = [
        _disturbance(record),
        f"block {block}{place}: {len(whole)} warps, {last} {unit}",
        *(told(story) if story is not None else ()),
        "",
        *_table(events, len(whole), last, unit),
        "",
        *_strips(events, last, unit),
    ]
    return "\n".join(out)


def _disturbance(record: RunRecord) -> str:
    text = f"{record.kernel} on {record.target}"
    if record.event_unit != "cycles":
        return f"{text}: steps of the simulator, in their order; they are no time"
    if record.seconds and record.clocked_seconds:
        text += f": {record.seconds * 1e6:.4g} us without clocks, {record.clocked_seconds * 1e6:.4g} us with "
        text += f"them ({record.clocked_seconds / record.seconds:.2f} times)"
    return text


def _table(events: Sequence[ClockEvent], warps: int, last: int, unit: str) -> list[str]:
    """A row a site: how often a warp did it, cycles or steps of one, and its share of the block's."""
    sums: dict[tuple[str, str, int], list[int]] = {}
    for event in events:
        if event.kind != "block":
            counts = sums.setdefault((event.kind, event.name, event.line), [0, 0])
            counts[0] += 1
            counts[1] += event.end - event.start
    width = max([len(name) for _, name, _ in sums], default=4)
    one, share_of = f"{unit} each", "of the time" if unit == "cycles" else f"of the {unit}"
    rows = [f"  {'':8s} {'':{width}s}  {'line':>5s} {'times':>7s} {one:>12s} {share_of:>12s}"]
    for (kind, name, line), (times, cycles) in sums.items():
        share = cycles / warps / max(1, last)
        head = f"  {kind:8s} {name:{width}s}  {line or '':>5} {times / warps:7.4g}"
        rows.append(f"{head} {cycles / times:12.1f} {share:12.1%}")
    return rows


def _strips(events: Sequence[ClockEvent], last: int, unit: str) -> list[str]:
    """A line a warp: in each column the letter of what took most of it."""
    column = max(1, -(-last // COLUMNS))
    legend = ", ".join(f"{letter} {kind}" for kind, letter in LETTERS.items())
    out = [f"  a column is {column} {unit if column > 1 else unit.removesuffix('s')}: {legend}"]
    for warp in sorted({event.warp for event in events}):
        filled: list[dict[str, int]] = [{} for _ in range(-(-last // column))]
        for event in events:
            if event.warp == warp and event.kind in LETTERS:
                for place in range(event.start // column, min(len(filled), event.end // column + 1)):
                    inside = min(event.end, (place + 1) * column) - max(event.start, place * column)
                    letter = LETTERS[event.kind]
                    filled[place][letter] = filled[place].get(letter, 0) + inside
        strip = "".join(max(each, key=lambda k: each[k]) if each else "." for each in filled)
        out.append(f"  warp {warp:2d} {strip}")
    return out
