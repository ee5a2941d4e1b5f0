"""What clocks mean: overlap, bubbles and who waits, on events whose answers are plain."""

from __future__ import annotations

from typing import Any

from tilebench.profile.overlap import cycles_per_microsecond, story_of, told
from tilebench.record import ClockEvent, RunRecord


def block(*events: tuple[int, str, int, int], warps: int = 2, length: int = 1000, **fields: Any) -> RunRecord:
    """A record of one block; an event is (warp, kind, start, end), its turn the number of those like it."""
    seen: dict[tuple[int, str], int] = {}
    made = [ClockEvent(0, warp, "block", "block", 7, 0, length) for warp in range(warps)]
    for warp, kind, start, end in events:
        turn = seen.get((warp, kind), 0)
        seen[warp, kind] = turn + 1
        made.append(ClockEvent(0, warp, kind, f"the {kind}", turn, start, end, line=len(kind)))
    return RunRecord("made up", "cuda:sm_90a", fields.pop("config", {}), events=tuple(made), **fields)


def story(*events: tuple[int, str, int, int], **fields: Any) -> Any:
    found = story_of(block(*events, **fields))
    assert found is not None
    return found


def test_copies_that_are_waited_for_at_once_overlap_with_nothing() -> None:
    events = (0, "load", 0, 200), (0, "compute", 200, 300), (0, "load", 300, 500), (0, "compute", 500, 600)
    found = story(*events, warps=1, length=600)
    assert (found.computing, found.in_flight, found.overlap) == (200 / 600, 400 / 600, 0.0)
    assert found.bubbles == ((300, 500),)
    assert found.idle == 200


def test_copies_of_a_ring_are_in_flight_until_their_wait_ends() -> None:
    """Issued at 0 and 10 for the waits that end at 60 and 160: in flight to 160, computed in 50 of that."""
    found = story((0, "load", 0, 5), (0, "load", 10, 15), (0, "wait", 50, 60), (0, "compute", 60, 110),
                  (0, "wait", 150, 160), (0, "compute", 160, 200), warps=1, length=200)  # fmt: skip
    assert found.in_flight == 160 / 200
    assert found.overlap == 50 / 160
    assert found.bubbles == ((110, 160),)


def test_other_warps_compute_meanwhile() -> None:
    """A warp that loads and one that computes all the time: everything overlaps."""
    found = story((0, "load", 0, 400), (1, "compute", 0, 400), length=400)
    assert found.overlap == 1.0
    assert found.roles == ("loads", "computes")
    assert found.bubbles == ()


def test_who_waits_for_whom() -> None:
    found = story((0, "barrier", 100, 300), (1, "barrier", 290, 300), (0, "barrier", 400, 600),
                  (1, "barrier", 590, 600))  # fmt: skip
    (meeting,) = found.meetings
    assert (meeting.warp, meeting.share, meeting.waited, meeting.turns) == (1, 1.0, 200.0, 2)
    assert "the others wait for warp 1 (100 % of 2 times), 200 cycles each" in " ".join(told(found))


def test_totals_and_stages() -> None:
    events = [(0, "wait", k * 100, k * 100 + 10 * (1 + k % 3)) for k in range(6)]
    found = story(*events, warps=1, config={"num_stages": 3})
    (total,) = found.totals
    assert (total.times, total.each, total.share) == (6, 20.0, 120 / 1000)
    assert [(s.stage, s.cycles) for s in found.stages] == [(0, 10.0), (1, 20.0), (2, 30.0)]


def test_steps_are_no_time() -> None:
    found = story((0, "load", 0, 1), (0, "compute", 1, 2), warps=1, length=3, event_unit="steps")
    text = " ".join(told(found))
    assert "%" not in text
    assert "only a card's clocks say" in text
    assert cycles_per_microsecond(block(event_unit="steps", environment={"gpu0_sm_clock": "1980 MHz"})) == 0


def test_cycles_are_microseconds_by_the_clock_that_ran() -> None:
    assert cycles_per_microsecond(block(environment={"gpu0_sm_clock": "1980 MHz"})) == 1980
    assert cycles_per_microsecond(block(environment={"gpu0_sm_clock": "1410 MHz to 1980 MHz"})) == 1980
    assert cycles_per_microsecond(block()) == 0


def test_a_record_without_times_has_no_story() -> None:
    assert story_of(RunRecord("k", "cpu", {})) is None
    assert story_of(block(), 5) is None
