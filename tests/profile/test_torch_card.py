"""The clock on torch's card, with a torch that plays a card which is early or late."""

from __future__ import annotations

from typing import Any

import pytest

from tilebench.profile import torch_card


class Event:
    def __init__(self, card: Card) -> None:
        self.card = card

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return self.card.early

    def elapsed_time(self, other: Event) -> float:
        return 0.0123456


class Card:
    """`early`: the card has come to the first event before the launch was in line."""

    def __init__(self) -> None:
        self.early, self.waits = False, list[int]()
        self.cuda = self

    def Event(self, enable_timing: bool) -> Event:
        return Event(self)

    def _sleep(self, clocks: int) -> None:
        self.waits.append(clocks)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the host's clock reads, in turn."""
    readings: list[float] = []
    monkeypatch.setattr(torch_card.time, "perf_counter", lambda: readings.pop(0))
    return readings


def test_a_launch_in_line_before_the_card_is_there_waits_for_nothing(ticks: list[float]) -> None:
    card: Any = Card()
    clock = torch_card.TorchLaunchClock(card)
    ticks += [0.0, 50e-6] * 3
    assert [clock.time(lambda: None) for _ in range(3)] == [12.346e-6] * 3
    assert card.waits == []


def test_behind_a_late_host_all_launches_wait_twice_as_long_as_it_took(ticks: list[float]) -> None:
    card: Any = Card()
    clock = torch_card.TorchLaunchClock(card)
    ticks += [0.0, 50e-6, 0.0, 20e-6, 0.0, 1.0, 0.0, 0.0]
    card.early = True
    clock.time(lambda: None)
    clock.time(lambda: None)
    clock.time(lambda: None)  # the first launch of a kernel is compiled first: no reason to wait for seconds
    card.early = False
    clock.time(lambda: None)
    # In clocks, of which a card has two a nanosecond or fewer.
    assert card.waits == [200_000, 200_000, 2_000_000]


def test_a_program_is_timed_with_its_host(ticks: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its share that is not on the card would be left out behind a wait."""
    card: Any = Card()
    card.early = True
    monkeypatch.setattr(card, "is_available", lambda: True, raising=False)
    monkeypatch.setitem(torch_card.sys.modules, "torch", card)
    clock = torch_card.torch_clock()
    assert clock is not None
    assert [clock.time(lambda: None) for _ in range(3)] == [12.346e-6] * 3
    assert card.waits == []
