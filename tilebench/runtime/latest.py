"""The slider path: whoever moves a slider only says what is wanted; one thread answers the latest.

A notebook may run slider callbacks on any of several threads, with or without an event loop, and
sends every intermediate position. So `submit` takes a lock, stores and returns; nothing else
happens on the caller's thread.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from .cancel import Cancelled

Config = TypeVar("Config")
Value = TypeVar("Value")
Phase = Literal[
    "idle", "queued", "compiling", "counting", "checking", "measuring", "done", "stale", "cancelled",
    "failed",
]  # fmt: skip


@dataclass(frozen=True)
class Status:
    """What a state chip shows. `done` of `total` samples while measuring; `error` when failed.

    `since` is when this phase of this request began, by `time.monotonic`.
    """

    phase: Phase
    generation: int = 0
    done: int = 0
    total: int = 0
    error: BaseException | None = None
    since: float = field(default_factory=time.monotonic, compare=False)

    @property
    def elapsed(self) -> float:
        """Seconds since the phase began."""
        return time.monotonic() - self.since

    def __str__(self) -> str:
        return f"{self.phase} {self.done}/{self.total}" if self.total else self.phase


class Ticket(Generic[Config]):
    """One request on its way. Calling it tells whether a newer one (or a cancel, or the end) came.

    `unwanted` is the same as an event, to hand to `Worker.call(cancel=...)`: a measurement of a
    configuration that nobody looks at any more ends at once.
    """

    def __init__(self, owner: LatestWins[Config], config: Config, generation: int) -> None:
        self.config = config
        self.generation = generation
        self.unwanted = threading.Event()
        self._owner = owner

    def __call__(self) -> bool:
        return self.unwanted.is_set()

    def phase(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        """Say where this request stands; ignored once it is stale."""
        self._owner.say(Status(phase, self.generation, done, total), of=self)


class LatestWins(Generic[Config]):
    """Runs `handler(config, stale)` on one thread of its own, for the latest submitted config.

    Work starts when nothing new came for `debounce_s` seconds (0.15 s: a drag sends positions every
    20 to 100 ms); a request after a pause of `pause_s` is no drag, and starts at once. `stale` is a
    `Ticket`; a handler with several tiers looks at it after each and returns. `on_status` gets every
    change of state, `on_error` what the handler raised; both run on the worker's thread, except `queued`,
    `cancelled` and `stale`, which come from the thread that caused them. `inline` answers within `submit`,
    for places without threads (headless).
    """

    def __init__(
        self,
        handler: Callable[[Config, Ticket[Config]], object],
        debounce_s: float = 0.15,
        *,
        pause_s: float = math.inf,
        on_status: Callable[[Status], None] | None = None,
        on_error: Callable[[BaseException], None] | None = None,
        inline: bool = False,
        name: str = "tilebench-latest",
    ) -> None:
        self._handler = handler
        self._debounce = debounce_s
        self._on_status = on_status
        self._on_error = on_error
        self._inline = inline
        self._name = name
        self._changed = threading.Condition()
        self._coming: Ticket[Config] | None = None
        self._want: Ticket[Config] | None = None
        self._running: Ticket[Config] | None = None
        self._pause = pause_s
        self._submitted = -math.inf
        self._due = 0.0
        self._closed = False
        self._generation = 0
        self._thread: threading.Thread | None = None
        self.status = Status("idle")

    @property
    def generation(self) -> int:
        """How many requests were submitted."""
        return self._generation

    def submit(self, config: Config) -> int:
        """Want `config`; returns its generation at once. Ignored (returns the last one) after `close`."""
        with self._changed:
            if self._closed:
                return self._generation
            self._generation += 1
            ticket = Ticket(self, config, self._generation)
            was_running = self._running is not None
            self._drop()
            self._coming = ticket
        # Said before the worker can see the ticket, so that no state of it comes before "queued".
        if was_running:
            self.say(Status("stale", ticket.generation - 1))
        self.say(Status("queued", ticket.generation))
        if self._inline:
            self._answer(ticket)
            return ticket.generation
        with self._changed:
            if self._coming is ticket:  # else a newer one, a cancel or the end came between
                self._coming = None
                now = time.monotonic()
                calm = now - self._submitted > self._pause
                self._want, self._submitted = ticket, now
                self._due = now if calm else now + self._debounce
                if self._thread is None:
                    self._thread = threading.Thread(target=self._drain, name=self._name, daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        return ticket.generation

    def cancel(self) -> None:
        """Drop what is wanted and what runs; a later `submit` works again."""
        with self._changed:
            had = self._busy()
            self._drop()
            self._changed.notify_all()
        if had:
            self.say(Status("cancelled", self._generation))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is wanted or running; False when `timeout` seconds passed before."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy(), timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Cancel, and join the thread (a handler that calls this on its own thread is not waited for)."""
        with self._changed:
            self._closed = True
            self._drop()
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def __enter__(self) -> LatestWins[Config]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def say(self, status: Status, of: Ticket[Config] | None = None) -> bool:
        """Make `status` the state, unless a newer one was said or nobody wants `of`; whether it is now."""
        with self._changed:
            # Asked with the lock held, for a request is dropped with it: no "compiling" after "cancelled".
            if of is not None and of():
                return False
            if status.generation < self._generation and status.phase != "stale":
                return False
            same = (self.status.phase, self.status.generation) == (status.phase, status.generation)
            status = replace(status, since=self.status.since) if same else status
            self.status = status
        if self._on_status is not None:
            self._on_status(status)
        return True

    def _drop(self) -> None:
        """With the lock held: what is wanted or running is not wanted any more."""
        for task in (self._coming, self._want, self._running):
            if task is not None:
                task.unwanted.set()
        self._want = self._coming = None

    def _busy(self) -> bool:
        return any(each is not None for each in (self._coming, self._want, self._running))

    def _drain(self) -> None:
        while True:
            with self._changed:
                while not self._closed:
                    if self._want is None:
                        self._changed.wait()
                        continue
                    left = self._due - time.monotonic()
                    if left <= 0:
                        break
                    self._changed.wait(left)
                if self._closed:
                    return
                ticket, self._want = self._want, None
                self._running = ticket
            assert ticket is not None
            self._answer(ticket)

    def _answer(self, ticket: Ticket[Config]) -> None:
        try:
            self._handler(ticket.config, ticket)
        except Cancelled:
            pass
        except KeyboardInterrupt:
            # A person's, inline: the answer is given up, and whoever asked learns why.
            self.say(Status("cancelled", ticket.generation))
            raise
        except BaseException as error:
            # A handler that fails after it became stale has nothing to say to anybody.
            said = self.say(Status("failed", ticket.generation, error=error), of=ticket)
            if said and self._on_error is not None:
                self._on_error(error)
        else:
            self.say(Status("done", ticket.generation), of=ticket)
        finally:
            with self._changed:
                self._running = None
                if self._coming is ticket:  # inline
                    self._coming = None
                self._changed.notify_all()


class RateLimit(Generic[Value]):
    """Passes values to `publish` at most `hz` times a second; of those between, the last is kept.

    There is no timer: what is kept goes out with a later `offer` or with `flush`, which belongs at
    the end of the work that offers.
    """

    def __init__(self, publish: Callable[[Value], object], hz: float = 10.0) -> None:
        self._publish = publish
        self._gap = 1.0 / hz
        self._next = 0.0
        self._kept: list[Value] = []
        self._guard = threading.Lock()

    def offer(self, value: Value) -> bool:
        """Publish now if it is time, else keep; True when it was published."""
        with self._guard:
            now = time.monotonic()
            self._kept = [value]
            if now < self._next:
                return False
            self._next = now + self._gap
            self._kept = []
        self._publish(value)
        return True

    def flush(self) -> None:
        """Publish what was kept, if anything."""
        with self._guard:
            kept, self._kept = self._kept, []
            self._next = time.monotonic() + self._gap if kept else self._next
        for value in kept:
            self._publish(value)
