"""What warps did when, as a tab: sentences, lanes on one axis, and the same in tables."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ...profile.overlap import BlockStory, blocks_of, cycles_per_microsecond, story_of, told
from ...record import ClockEvent, RunRecord
from ..chart import config_text
from .block_data import (
    ActionData,
    Block,
    CellData,
    LaneBlockData,
    LaneData,
    LanesData,
    LaneSiteData,
    TabData,
    TableData,
)

if TYPE_CHECKING:
    from ..picture import Picture

# Bars of one state: whole blocks, the first ones, and as much of the first as there is room for.
MOST_BARS = 3000
NO_CLOCKS = (
    "{target} has no clock that a kernel reads. Choose a card as the target: where none is here, the order "
    "of steps is the simulator's."
)
EMPTY = (
    "What each warp of a block does when: copies, waits, barriers, arithmetic and stores, by clocks that are "
    "put into the kernel around each statement."
)


def timeline_tab(picture: Picture, live: bool) -> TabData:
    """The tab of a bench: what was recorded, and a button that records at the position of now."""
    shown, record = picture.clocks, picture.record
    target = record.target if record is not None else ""
    if not _has_clock(target):
        return TabData("timeline", "Timeline", (Block(NO_CLOCKS.format(target=target), "quiet"),))
    out: list[Block] = []
    if shown is None:
        out.append(Block(EMPTY, "quiet"))
    elif shown.state == "recording":
        out.append(Block("Recording: the kernel is compiled once more, with clocks in it, and run.", "on"))
    elif shown.state == "failed":
        out.append(Block(f"No timeline: {shown.why}", "bad"))
    if live and (shown is None or shown.state != "recording"):
        out.append(Block(action=ActionData("Record" if shown is None else "Record again", "timeline")))
    if shown is not None and shown.run is not None and shown.state == "done":
        if shown.config != picture.wish.config:
            there = {k: v for k, v in shown.config.items() if picture.wish.config.get(k) != v}
            out.append(Block(f"Recorded at {config_text(there)}, not at the position of now.", "warn"))
        out += run_blocks(shown.run)
    return TabData("timeline", "Timeline", tuple(out))


@cache
def _has_clock(target: str) -> bool:
    """Whether a kernel for a target can read a clock."""
    from ...language.lowered.clocks import ReadClock
    from ...targets import resolve

    return ReadClock in resolve(target)[0].intrinsic_rows


def run_blocks(run: RunRecord) -> list[Block]:
    """A run with events: in words, as lanes and as tables."""
    story = story_of(run)
    if story is None:
        return [Block(f"No clock was read: {run.failure or 'the record has no events'}.", "bad")]
    out = [Block(disturbance(run), "quiet"), *(Block(each) for each in told(story))]
    out += [Block(lanes=lanes_of(run)), Block(table=_totals(story))]
    out += [Block(table=_roles(story))] if len(set(story.roles)) > 1 else []
    out += [Block(table=_meetings(story))] if story.meetings and story.unit == "cycles" else []
    out += [Block(table=_stages(story))] if story.stages and story.unit == "cycles" else []
    return out


def disturbance(run: RunRecord) -> str:
    """What the clocks cost, or that these are no times."""
    if run.event_unit != "cycles":
        return "Steps, not time: no card is here, and the simulator says only what comes before what."
    if not run.seconds or not run.clocked_seconds:
        return "How much longer the kernel takes with clocks in it is not known."
    return (
        f"{run.seconds * 1e6:.4g} us without clocks, {run.clocked_seconds * 1e6:.4g} us with them: what is "
        f"shown is the kernel slowed down {run.clocked_seconds / run.seconds:.2f} times."
    )


def lanes_of(run: RunRecord) -> LanesData:
    """The events as lanes, as many blocks as there is room for."""
    sites: dict[tuple[str, str, int], int] = {}
    for event in run.events:
        if event.kind != "block":
            sites.setdefault((event.kind, event.name, event.line), len(sites))
    blocks: list[LaneBlockData] = []
    room = MOST_BARS
    for number in blocks_of(run):
        own = [event for event in run.events if event.block == number]
        if blocks and len(own) > room:
            break
        blocks.append(_block(run, number, own, sites, room))
        room -= len(own)
    label = f"what the warps of {run.kernel} did when, in {run.event_unit}"
    known = tuple(LaneSiteData(*site) for site in sites)
    return LanesData(label, run.event_unit, cycles_per_microsecond(run), known, tuple(blocks))


def _block(
    run: RunRecord, number: int, own: list[ClockEvent], sites: dict[tuple[str, str, int], int], room: int
) -> LaneBlockData:
    story = story_of(run, number)
    assert story is not None  # it has events
    warps = sorted({event.warp for event in own})
    most = max(1, room // max(1, len(warps)))
    lanes: list[LaneData] = []
    for at, warp in enumerate(warps):
        bars: list[int] = []
        events = [event for event in own if event.warp == warp and event.kind != "block"]
        for event in sorted(events, key=lambda e: e.start)[:most]:
            site = sites[event.kind, event.name, event.line]
            bars += [event.start, event.end - event.start, site, event.iteration]
        role = story.roles[at] if len(set(story.roles)) > 1 else ""
        lanes.append(LaneData(f"warp {warp}" + (f" {role}" if role else ""), tuple(bars)))
    where = f" (unit {story.multiprocessor})" if run.event_unit == "cycles" else ""
    return LaneBlockData(f"block {number}{where}", story.length, tuple(lanes))


def _table(
    heads: tuple[str, ...], rows: list[tuple[str, ...]], caption: str, numeric: tuple[int, ...]
) -> TableData:
    cells = tuple(tuple(CellData(text) for text in row) for row in rows)
    return TableData(heads, cells, caption, numeric)


def _totals(story: BlockStory) -> TableData:
    rows = [
        (
            each.kind,
            each.name,
            str(each.line or ""),
            f"{each.times:.4g}",
            f"{each.each:.1f}",
            f"{100 * each.share:.1f} %",
        )
        for each in sorted(story.totals, key=lambda each: -each.share)
    ]
    heads = ("does", "what", "line", "times a warp", f"{story.unit} each", "of the block")
    return _table(heads, rows, f"Block {story.block} by statement", (2, 3, 4, 5))


def _roles(story: BlockStory) -> TableData:
    rows = [(f"warp {warp}", role) for warp, role in enumerate(story.roles)]
    return _table(("warp", "does"), rows, "Warps by what they are for", ())


def _meetings(story: BlockStory) -> TableData:
    rows = [
        (
            m.name,
            str(m.line or ""),
            f"warp {m.warp}",
            f"{100 * m.share:.0f} %",
            f"{m.waited:.0f}",
            str(m.turns),
        )
        for m in story.meetings
    ]
    heads = ("at", "line", "comes last", "of times", "others wait, cycles", "times")
    return _table(heads, rows, "Who waits for whom", (1, 3, 4, 5))


def _stages(story: BlockStory) -> TableData:
    rows = [(str(each.stage), f"{each.cycles:.0f}") for each in story.stages]
    return _table(("stage", "waited, cycles"), rows, "Waits by stage of the ring", (0, 1))
