"""Latest wins: dropping, staleness, cancel, errors, close, many threads, leaks, the rate limit."""

from __future__ import annotations

import threading
import time

import pytest

from tests.waiting import LONG, answers_within, costs_less_than
from tilebench.runtime.cancel import Cancelled
from tilebench.runtime.job import Job
from tilebench.runtime.latest import LatestWins, RateLimit, Status, Ticket
from tilebench.runtime.worker import Worker


class Clock:
    """Stands where a test puts it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of what is tested here."""
    made = Clock()
    monkeypatch.setattr("tilebench.runtime.latest.time", made)
    return made


def test_of_forty_positions_only_the_last_is_answered(clock: Clock) -> None:
    answered: list[int] = []
    with LatestWins[int](lambda config, stale: answered.append(config), 0.05) as latest:
        with costs_less_than(0.04):
            for position in range(40):
                latest.submit(position)
        assert latest.status == Status("queued", 40)
        assert answered == []
        clock.now += 0.051
        assert latest.wait(LONG)
        assert answered == [39]
        assert latest.status == Status("done", 40)


@pytest.mark.parametrize("phase", ["compiling", "done", "failed"])
def test_what_is_dropped_while_it_speaks_says_nothing(phase: str) -> None:
    class Dropped(LatestWins[int]):
        """Its request is dropped between the worker's decision to speak and its word."""

        def say(self, status: Status, of: Ticket[int] | None = None) -> bool:
            if status.phase == phase:
                self.cancel()
            return super().say(status, of)

    def handler(config: int, ticket: Ticket[int]) -> None:
        if phase == "failed":
            raise ValueError
        ticket.phase("compiling")

    wrong: list[BaseException] = []
    with Dropped(handler, 0.0, on_error=wrong.append) as latest:
        latest.submit(1)
        assert latest.wait(LONG)
        assert latest.status == Status("cancelled", 1)
    assert wrong == []


def test_debounce_counts_from_the_last_move(clock: Clock) -> None:
    answered: list[int] = []
    with LatestWins[int](lambda config, stale: answered.append(config), 0.1) as latest:
        for position in range(4):
            clock.now += 0.03
            latest.submit(position)
        clock.now += 0.099
        time.sleep(0.25)  # what must not begin would do so in this time
        assert answered == []
        clock.now += 0.002
        assert latest.wait(LONG)
    assert answered == [3]


def test_after_a_pause_nothing_is_waited_for(clock: Clock) -> None:
    """An answer that comes while the clock stands was not waited for."""
    answered: list[int] = []
    with LatestWins[int](lambda config, stale: answered.append(config), 0.3, pause_s=0.1) as latest:
        latest.submit(1)
        assert latest.wait(LONG)
        clock.now += 0.05
        latest.submit(2)
        latest.submit(3)
        time.sleep(0.4)  # what must not begin would do so in this time
        assert answered == [1]
        clock.now += 0.301
        assert latest.wait(LONG)
        latest.submit(4)
        assert latest.wait(LONG)
    assert answered == [1, 3, 4]


def test_later_tiers_of_a_stale_request_are_dropped() -> None:
    tiers: list[tuple[str, int]] = []
    in_first, go_on = threading.Event(), threading.Event()

    def handler(config: int, stale: Ticket[int]) -> None:
        tiers.append(("static", config))
        if config == 1:
            in_first.set()
            assert go_on.wait(LONG)
        if stale():
            return
        tiers.append(("compiled", config))

    said: list[str] = []
    with LatestWins[int](handler, 0.01, on_status=lambda status: said.append(str(status))) as latest:
        latest.submit(1)
        assert in_first.wait(LONG)
        latest.submit(2)
        go_on.set()
        assert latest.wait(LONG)
    assert tiers == [("static", 1), ("static", 2), ("compiled", 2)]
    assert said == ["queued", "stale", "queued", "done"]


def test_what_a_stale_request_says_is_not_shown() -> None:
    ready, go_on = threading.Event(), threading.Event()

    def handler(config: int, stale: Ticket[int]) -> None:
        if config == 1:
            ready.set()
            go_on.wait(LONG)
        stale.phase("measuring", config, 100)
        if config == 1:
            raise ValueError("nobody wants to know")

    said: list[Status] = []
    with LatestWins[int](handler, 0, on_status=said.append) as latest:
        latest.submit(1)
        assert ready.wait(LONG)
        latest.submit(2)
        go_on.set()
        assert latest.wait(LONG)
    assert [str(each) for each in said] == ["queued", "stale", "queued", "measuring 2/100", "done"]


def test_a_running_measurement_is_told_by_an_event() -> None:
    begun = threading.Event()
    ended: list[int] = []

    def handler(config: int, stale: Ticket[int]) -> None:
        if config == 1:
            begun.set()
            if stale.unwanted.wait(LONG):
                ended.append(config)
                raise Cancelled("stopped")

    with LatestWins[int](handler, 0) as latest:
        latest.submit(1)
        assert begun.wait(LONG)
        latest.submit(2)
        assert latest.wait(LONG)
        assert ended == [1]
        assert latest.status.phase == "done"


def test_cancel_drops_both_and_submit_works_again() -> None:
    answered: list[int] = []
    with LatestWins[int](lambda config, stale: answered.append(config), 0.05) as latest:
        latest.submit(1)
        latest.cancel()
        assert latest.status.phase == "cancelled"
        assert latest.wait(LONG)
        time.sleep(0.08)
        assert answered == []
        latest.submit(2)
        assert latest.wait(LONG)
        assert answered == [2]


def test_an_error_is_reported_and_the_thread_lives_on() -> None:
    errors: list[BaseException] = []

    def handler(config: int, stale: Ticket[int]) -> None:
        if config == 1:
            raise ValueError("one")

    with LatestWins[int](handler, 0, on_error=errors.append) as latest:
        latest.submit(1)
        assert latest.wait(LONG)
        assert latest.status.phase == "failed"
        assert latest.status.error is errors[0]
        latest.submit(2)
        assert latest.wait(LONG)
        assert latest.status.phase == "done"


def test_many_threads_submit_and_the_last_generation_is_answered() -> None:
    answered: list[int] = []
    with LatestWins[int](lambda config, stale: answered.append(stale.generation), 0.02) as latest:
        threads = [
            threading.Thread(target=lambda: [latest.submit(n) for n in range(50)]) for _ in range(8)
        ]  # fmt: skip
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert latest.wait(LONG)
        assert answered[-1] == latest.generation == 400


def test_close_joins_and_later_submits_are_ignored() -> None:
    entered = threading.Event()
    told: list[bool] = []

    def handler(config: int, stale: Ticket[int]) -> None:
        entered.set()
        told.append(stale.unwanted.wait(LONG))

    latest = LatestWins[int](handler, 0)
    latest.submit(1)
    assert entered.wait(LONG)
    latest.close(LONG / 2)
    assert told == [True]  # it was told, and waited for
    assert latest.submit(2) == 1
    latest.close()


def test_fifty_open_and_close_leave_no_thread() -> None:
    before = threading.active_count()
    for _ in range(50):
        latest = LatestWins[int](lambda config, stale: None, 0.001)
        latest.submit(1)
        latest.close()
    assert threading.active_count() == before


def test_inline_answers_within_submit_without_a_thread() -> None:
    before = threading.active_count()
    answered: list[int] = []
    latest = LatestWins[int](lambda config, stale: answered.append(config), inline=True)
    latest.submit(3)
    assert answered == [3]
    assert latest.status.phase == "done"
    assert latest.wait(0)
    assert threading.active_count() == before


def test_a_moved_slider_stops_the_measurement_in_the_child() -> None:
    """The tiers of the workbench in small: the worker's call ends at once when its request is stale."""
    with Worker() as worker:
        answers_within(1, lambda: moved_on(worker))


def moved_on(worker: Worker) -> float:
    """How long a second request takes that comes while a first one measures."""
    begun = threading.Event()
    results: list[tuple[int, int]] = []

    def handler(config: int, stale: Ticket[int]) -> None:
        job = Job(
            "tests.runtime.jobs:" + ("polite" if config == 1 else "count"),
            () if config == 1 else (config,),
        )
        results.append((config, worker.call(job, cancel=stale.unwanted, on_progress=lambda _: begun.set())))

    with LatestWins[int](handler, 0.01) as latest:
        latest.submit(1)
        assert begun.wait(LONG)
        start = time.monotonic()
        latest.submit(2)
        assert latest.wait(LONG)
        took = time.monotonic() - start
        assert latest.status.phase == "done"
    assert results == [(2, 2)]
    return took


def test_rate_limit_publishes_first_and_last(clock: Clock) -> None:
    out: list[int] = []
    limit = RateLimit[int](out.append, hz=16)
    for ticks in range(300):
        limit.offer(ticks)
        clock.now += 1 / 1024
    limit.flush()
    limit.flush()
    assert out == [0, 64, 128, 192, 256, 299]
