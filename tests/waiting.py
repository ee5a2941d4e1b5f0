"""Waiting for a state, and bounds of time, so that they hold on a machine that others keep busy."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Only a test that fails anyway waits so long.
LONG = 60.0


def until(what: Callable[[], object], seconds: float = LONG, pause: float = 0.005) -> None:
    """Wait until `what()` is true; it is looked at again and again."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(pause)


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def costs_less_than(seconds: float) -> Iterator[None]:
    """What this thread does inside takes less of a processor's time: others' work is not in it.

    Nor is its own waiting: this says nothing of a lock, a file or a process.
    """
    before = time.thread_time()
    yield
    cost = time.thread_time() - before
    assert cost < seconds, f"{cost:.3f} s, and {seconds:g} are allowed"


def answers_within(seconds: float, act: Callable[[], object], tries: int = 5) -> None:
    """`act()` takes less time in one of some tries: work of others delays one of them, a fault all.

    A fault that delays one now and then is not seen: what can be asked without a clock is asked so.
    What `act` returns, where it is a number, is what it took; else it is measured around it.
    """
    took: list[float] = []
    for _ in range(tries):
        before = time.perf_counter()
        told = act()
        took.append(told if isinstance(told, float) else time.perf_counter() - before)
        if took[-1] < seconds:
            return
    raise AssertionError(f"{min(took):.3f} s at best, and {seconds:g} are allowed")


def interrupted(act: Callable[[], object], after: float = 0.2) -> float:
    """Press Ctrl-C a while after `act()` has begun; the seconds until it was left."""
    sent: list[float] = []

    def press() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, press)
    try:
        timer.start()
        act()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    timer.cancel()
    raise AssertionError("it ended by itself")
