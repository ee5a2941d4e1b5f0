"""What clocks inside a kernel mean: how much copies and arithmetic overlap, where nobody computes, who waits.

All of it is of one block, whose warps share a clock. A copy that goes on by itself is in flight from where it
is issued to the end of the wait that it was for; of copies of one name the first belongs to the first wait,
as a ring issues them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..record import ClockEvent, RunRecord

Spans = list[tuple[int, int]]
# A gap shorter than this share of the block's time is no bubble.
BUBBLE = 0.002


@dataclass(frozen=True)
class SiteTotal:
    """A statement: how often a warp did it, cycles of one, and its share of the warps' time."""

    kind: str
    name: str
    line: int
    times: float
    each: float
    share: float


@dataclass(frozen=True)
class LastComer:
    """A barrier: the warp that came last most often, at which share of turns, and what others waited each."""

    line: int
    name: str
    warp: int
    share: float
    waited: float
    turns: int


@dataclass(frozen=True)
class StageWait:
    """What warps waited on average for one stage of a ring of `stages`."""

    stage: int
    cycles: float


@dataclass(frozen=True)
class BlockStory:
    """One block, times in `unit`s since it began.

    `computing` and `in_flight` are shares of its time in which some warp computes or some copy is under way,
    `overlap` the share of that time in flight in which some warp computes (None where nothing is loaded).
    `bubbles` are the times between the first and the last computation in which no warp computes.
    """

    block: int
    multiprocessor: int
    warps: int
    length: int
    unit: str
    computing: float
    in_flight: float
    overlap: float | None
    bubbles: tuple[tuple[int, int], ...]
    roles: tuple[str, ...]
    totals: tuple[SiteTotal, ...]
    meetings: tuple[LastComer, ...]
    stages: tuple[StageWait, ...] = ()

    @property
    def idle(self) -> int:
        """Time in bubbles."""
        return sum(end - begin for begin, end in self.bubbles)


def blocks_of(record: RunRecord) -> tuple[int, ...]:
    """The numbers of the blocks that a record has times of."""
    return tuple(dict.fromkeys(event.block for event in record.events))


def story_of(record: RunRecord, block: int | None = None) -> BlockStory | None:
    """What one block did, the first by default; None where the record has no times."""
    numbers = blocks_of(record)
    if not numbers or (block is not None and block not in numbers):
        return None
    own = [event for event in record.events if event.block == (numbers[0] if block is None else block)]
    whole = [event for event in own if event.kind == "block"]
    events = [event for event in own if event.kind != "block"]
    length = max(event.end for event in whole)
    computing = _joined((e.start, e.end) for e in events if e.kind == "compute")
    flight = _joined(span for warp in _by_warp(events).values() for span in _in_flight(warp))
    both = _size(_common(computing, flight))
    return BlockStory(
        own[0].block, whole[0].iteration, len(whole), length, record.event_unit,
        _size(computing) / max(1, length), _size(flight) / max(1, length),
        both / _size(flight) if _size(flight) else None, _gaps(computing, length), _roles(events, whole),
        _totals(events, len(whole), length), _meetings(events), _stage_waits(record, events),
    )  # fmt: skip


def _by_warp(events: Iterable[ClockEvent]) -> dict[int, list[ClockEvent]]:
    found: dict[int, list[ClockEvent]] = {}
    for event in sorted(events, key=lambda e: e.start):
        found.setdefault(event.warp, []).append(event)
    return found


def _in_flight(events: Sequence[ClockEvent]) -> Spans:
    """From where a warp's copies are issued to the end of their waits."""
    waits = [event for event in events if event.kind == "wait"]
    spans: Spans = []
    seen: Counter[str] = Counter()
    for event in events:
        if event.kind == "load":
            place = seen[event.name]
            seen[event.name] += 1
            end = waits[place].end if place < len(waits) else event.end
            spans.append((event.start, max(event.end, end)))
    return spans


def _joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """The union of spans, in order."""
    out: Spans = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return out


def _common(one: Spans, other: Spans) -> Spans:
    """What lies in both of two unions."""
    out: Spans = []
    i = j = 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            out.append((begin, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return out


def _size(spans: Spans) -> int:
    return sum(end - begin for begin, end in spans)


def _gaps(computing: Spans, length: int) -> tuple[tuple[int, int], ...]:
    return tuple((a[1], b[0]) for a, b in pairwise(computing) if b[0] - a[1] > BUBBLE * length)


def _roles(events: Sequence[ClockEvent], whole: Sequence[ClockEvent]) -> tuple[str, ...]:
    """What each warp is for, by what it does."""
    kinds = {warp: {event.kind for event in own} for warp, own in _by_warp(events).items()}
    names: list[str] = []
    for event in whole:
        own = kinds.get(event.warp, set())
        loads, computes = "load" in own, "compute" in own
        alone = "loads" if loads else "computes" if computes else "stores" if "store" in own else "waits"
        names.append("loads and computes" if loads and computes else alone)
    return tuple(names)


def _totals(events: Sequence[ClockEvent], warps: int, length: int) -> tuple[SiteTotal, ...]:
    sums: dict[tuple[str, str, int], list[int]] = {}
    for event in events:
        counts = sums.setdefault((event.kind, event.name, event.line), [0, 0])
        counts[0] += 1
        counts[1] += event.end - event.start
    return tuple(
        SiteTotal(*site, times / warps, cycles / times, cycles / warps / max(1, length))
        for site, (times, cycles) in sums.items()
    )


def _meetings(events: Sequence[ClockEvent]) -> tuple[LastComer, ...]:
    """Barriers at which warps waited: the one who comes last is the one that the others wait for."""
    turns: dict[tuple[int, str], dict[tuple[int, int], list[ClockEvent]]] = {}
    for (line, name, warp), own in _barriers(events).items():
        for number, event in enumerate(own):
            turns.setdefault((line, name), {}).setdefault((number, 0), []).append(event)
            assert event.warp == warp
    found: list[LastComer] = []
    for (line, name), met in turns.items():
        complete = [group for group in met.values() if len(group) > 1]
        if not complete:
            continue
        last = Counter(max(group, key=lambda e: e.start).warp for group in complete)
        warp, count = last.most_common(1)[0]
        waits = [e.end - e.start for g in complete for e in g if e is not max(g, key=lambda e: e.start)]
        found.append(
            LastComer(line, name, warp, count / len(complete), sum(waits) / len(waits), len(complete))
        )
    return tuple(sorted(found, key=lambda each: -each.waited * each.turns))


def _barriers(events: Sequence[ClockEvent]) -> dict[tuple[int, str, int], list[ClockEvent]]:
    """The barriers of each statement as each warp met them, in order."""
    found: dict[tuple[int, str, int], list[ClockEvent]] = {}
    for event in sorted(events, key=lambda e: e.start):
        if event.kind == "barrier":
            found.setdefault((event.line, event.name, event.warp), []).append(event)
    return found


def _stage_waits(record: RunRecord, events: Sequence[ClockEvent]) -> tuple[StageWait, ...]:
    """Waits by the stage of the ring, where the configuration says how many it has."""
    stages = record.config.get("num_stages")
    if not isinstance(stages, int) or isinstance(stages, bool) or stages < 2:
        return ()
    waits: dict[int, list[int]] = {}
    for event in events:
        if event.kind == "wait":
            waits.setdefault(event.iteration % stages, []).append(event.end - event.start)
    return tuple(StageWait(stage, sum(own) / len(own)) for stage, own in sorted(waits.items()))


def cycles_per_microsecond(record: RunRecord) -> float:
    """The clock that was running, from the environment; 0 where it is not known, or steps are no time."""
    if record.event_unit != "cycles":
        return 0.0
    for name, value in record.environment.items():
        if name.endswith("sm_clock"):
            numbers = [float(word) for word in value.replace("MHz", " ").split() if _is_number(word)]
            return max(numbers, default=0.0)
    return 0.0


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def told(story: BlockStory) -> list[str]:
    """A block's story in sentences. Of steps none is about how long something takes."""
    unit = story.unit
    if unit != "cycles":
        order = f"Steps of block {story.block} in the simulator's order: what comes before what."
        return [order, "How long each takes, what overlaps and who waits only a card's clocks say."]
    out = [
        f"Some warp computes in {100 * story.computing:.0f} % of block {story.block}'s {story.length} {unit}."
    ]
    if story.overlap is not None:
        out.append(
            f"Copies are under way in {100 * story.in_flight:.0f} % of it; "
            f"in {100 * story.overlap:.0f} % of that time some warp computes (overlap)."
        )
    if story.bubbles:
        begin, end = max(story.bubbles, key=lambda span: span[1] - span[0])
        times = "one time" if len(story.bubbles) == 1 else f"{len(story.bubbles)} times"
        out.append(
            f"No warp computes at {times} between the first and the last computation, {story.idle} {unit} "
            f"together; the longest from {begin} to {end}."
        )
    for meeting in story.meetings[:3]:
        where = f" of line {meeting.line}" if meeting.line else ""
        out.append(
            f"At the {meeting.name}{where} the others wait for warp {meeting.warp} "
            f"({100 * meeting.share:.0f} % of {meeting.turns} times), {meeting.waited:.0f} {unit} each."
        )
    return out
