"""The measuring worker: calls run in a child process that may crash, hang or be cancelled.

The child is a new interpreter (never a fork: CUDA does not survive one), started at the first call,
kept warm, and gone when idle for `settings.worker_idle` seconds, on `close` and at exit. A crash
costs the call that caused it; the next call starts another child.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from .. import settings
from ..errors import LaunchError, TileError, seconds_option
from .cancel import Cancelled
from .child import ChildProcess, last_lines
from .codec import Spool, decode, encode, sweep
from .job import Job

State = Literal["closed", "starting", "idle", "busy"]
START_LIMIT_S = 60.0
# A job that looks at `cancelled()` may stop by itself within this time and keep the child warm.
GRACE_S = 0.1
# How often a waiting call looks at its cancel event. Waking the parent 30 times a second takes
# under 0.2 % of a core from the measurement.
LOOK_S = 0.03
# Children that may end before they take a job, being idle for too long: on a busy machine a new one can, too.
ATTEMPTS = 5

_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """Runs jobs in one child process, one at a time. Safe from any thread.

    `env` is set in the child before anything is imported there.
    """

    def __init__(self, *, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(env or {})
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._child: ChildProcess | None = None
        self._busy = False
        self._unanswered = False
        self._number = 0
        self._last_log: list[str] = []
        _start_watching()
        _workers.add(self)

    @property
    def state(self) -> State:
        """`closed` (no child), `starting`, `idle` (a warm child waits) or `busy`."""
        child = self._child
        if child is None or not child.alive:
            return "closed"
        if self._busy:
            return "busy"
        return "idle" if child.ready.is_set() else "starting"

    @property
    def pid(self) -> int | None:
        """The process number of the child, or None."""
        child = self._child
        return child.pid if child is not None and child.alive else None

    @property
    def start_seconds(self) -> float | None:
        """Seconds from start to ready of the last child that became ready."""
        child = self._child
        return None if child is None else child.start_seconds

    @property
    def log(self) -> list[str]:
        """The last lines that the child (or the last one, if none runs) wrote to stdout and stderr."""
        child = self._child
        return list(child.log) if child is not None else list(self._last_log)

    def start(self) -> None:
        """Begin to start the child and return at once, so that the first call finds it warm."""
        self._living()

    def call(
        self,
        job: Job,
        *,
        timeout: float | None = None,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Any:
        """Run a job and return its result; arrays in it are new.

        `timeout` is in seconds of running (default `settings.worker_timeout`; 0 for none). `cancel`
        ends the job when set. `on_progress` gets what the job reports, in the calling thread.

        Raises `Cancelled`; `LaunchError` when the child crashed, took too long or its function
        failed (the original error is the cause); any `TileError` of the function as it is.
        """
        limit = settings.worker_timeout()
        if timeout is not None:
            limit = seconds_option("timeout", timeout, or_none=True)
        self._take_turn(cancel)
        try:
            self._busy = True
            for attempt in range(1, ATTEMPTS + 1):
                child = self._living()
                try:
                    return self._converse(child, job, limit, cancel, on_progress)
                except _Gone as gone:
                    if attempt == ATTEMPTS:
                        raise gone.how from None
                except BaseException:
                    # An interrupt, or an error in `on_progress`: nobody will read the answer.
                    if self._unanswered:
                        child.terminate()
                    raise
        finally:
            self._busy = self._unanswered = False
            self._turn.release()

    def close(self) -> None:
        """End the child. A call that is running raises `LaunchError`; a later one starts a new child."""
        with self._guard:
            child, self._child = self._child, None
        if child is not None:
            child.terminate() if self._busy else child.close()
            self._last_log = list(child.log)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            # At the end of the interpreter there is nothing left to close with.
            return

    def _take_turn(self, cancel: threading.Event | None) -> None:
        if cancel is None:
            self._turn.acquire()
            return
        while not self._turn.acquire(timeout=LOOK_S):
            if cancel.is_set():
                raise Cancelled("the measurement was cancelled before it began")

    def _living(self) -> ChildProcess:
        """The child, started if there is none."""
        with self._guard:
            if self._child is None or not self._child.alive:
                self._child = ChildProcess(self._env, settings.worker_idle())
            return self._child

    def _converse(
        self,
        child: ChildProcess,
        job: Job,
        limit: float,
        cancel: threading.Event | None,
        on_progress: Callable[[Any], None] | None,
    ) -> Any:
        self._number += 1
        number = self._number
        variables = {setting.name: str(setting()) for setting in settings.all_settings()}
        spool = Spool()
        try:
            # Encoding runs while a new child is still starting.
            body = encode((job.function, job.args, job.kwargs, variables, settings.worker_idle()), spool)
            self._wait_ready(child, cancel)
            self._unanswered = True
            with contextlib.suppress(OSError):  # gone already: the stream's end says how
                child.send(b"J", number.to_bytes(8, "little") + body)
            del body
            return self._wait(child, number, job, limit, cancel, on_progress)
        finally:
            spool.free()

    def _wait_ready(self, child: ChildProcess, cancel: threading.Event | None) -> None:
        end = time.monotonic() + START_LIMIT_S
        while not child.ready.wait(LOOK_S if cancel is not None else START_LIMIT_S):
            if cancel is not None and cancel.is_set():
                raise Cancelled("the measurement was cancelled while its child started")
            if time.monotonic() > end:
                child.terminate()
                raise LaunchError("the measuring child was not ready in {limit:.0f} s", limit=START_LIMIT_S)
        if child.start_seconds is None:
            child.terminate()
            raise LaunchError(
                "the measuring child could not start",
                found="its last lines:\n    {tail}",
                tail=last_lines(child.log),
            )

    def _wait(
        self,
        child: ChildProcess,
        number: int,
        job: Job,
        limit: float,
        cancel: threading.Event | None,
        on_progress: Callable[[Any], None] | None,
    ) -> Any:
        """Read frames until the job has ended one way or another."""
        end: float | None = None
        begun = stopping = False
        while True:
            if cancel is not None and cancel.is_set() and not stopping:
                stopping, end = True, time.monotonic() + GRACE_S
                with contextlib.suppress(OSError):
                    child.send(b"S", number.to_bytes(8, "little"))
            frame = _next(child, end, LOOK_S if cancel is not None and not stopping else None)
            if frame == "late":
                child.terminate()
                if stopping:
                    raise Cancelled("{name} was cancelled", name=job.title)
                raise LaunchError(
                    "{name} did not finish in {limit:g} s and was ended",
                    name=job.title,
                    limit=limit,
                    hint="an endless loop or a barrier some threads never reach? A longer limit:"
                    " timeout= or TILEBENCH_WORKER_TIMEOUT",
                )
            if frame == "look":
                continue
            if frame is None:
                raise self._ended(child, job, begun, stopping)
            letter, body = frame
            said = decode(body)
            if letter == b"A":
                begun = True
                if limit > 0 and not stopping:
                    end = time.monotonic() + limit
            elif said[0] != number:
                continue
            elif letter == b"P":
                if on_progress is not None and not stopping:
                    on_progress(said[1])
            elif letter == b"R":
                self._unanswered = False
                return said[1]
            else:
                self._unanswered = False
                raise_from_child(job, *said[1:])

    def _ended(self, child: ChildProcess, job: Job, begun: bool, stopping: bool) -> BaseException:
        """What to raise for a child that has ended without an answer."""
        code = child.process.returncode
        if stopping:
            return Cancelled("{name} was cancelled", name=job.title)
        how = f"exit status {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"signal {-code} ({signal.Signals(-code).name})"
        error = LaunchError(
            "the measuring child ended with {how} while it ran {name}",
            how=how,
            name=job.title,
            found="its last lines:\n    {tail}" if child.log else "it wrote nothing before",
            tail=last_lines(child.log),
            hint="this process and its arrays are untouched; the next measurement starts a new child",
        )
        # Idle too long, or killed from outside while it waited: the job has not had its turn.
        return error if begun or self._child is not child else _Gone(error)


class _Gone(Exception):
    """The child ended before it took the job; `how` says what to tell when the next one does too."""

    def __init__(self, how: LaunchError) -> None:
        super().__init__(str(how))
        self.how = how


def _next(child: ChildProcess, end: float | None, look: float | None) -> Any:
    """The next frame; None at the end; "late" after `end`, "look" after `look` seconds."""
    left = None if end is None else max(0.0, end - time.monotonic())
    waits = [wait for wait in (left, look) if wait is not None]
    try:
        return child.frames.get(timeout=min(waits) if waits else None)
    except queue.Empty:
        return "late" if end is not None and time.monotonic() >= end else "look"


def raise_from_child(job: Job, error: BaseException | None, summary: str, text: str) -> None:
    """Raise what went wrong in the child: a `TileError` as it is, others as the cause of a `LaunchError`."""
    if isinstance(error, TileError):
        raise error
    if error is not None:
        error.add_note("In the measuring child:\n" + text)
    raise LaunchError(
        "{name} failed in the measuring child: {summary}",
        name=job.title,
        summary=summary,
        found="{trace}",
        trace=last_lines(text.splitlines()),
    ) from error


@lru_cache(maxsize=1)
def default_worker() -> Worker:
    """The one measuring worker of this process."""
    return Worker()


@lru_cache(maxsize=1)
def _start_watching() -> None:
    """Once a process: end children at exit, keep forked copies off them, sweep what crashes left."""
    atexit.register(_close_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_abandon_all)
    sweep()


def _close_all() -> None:
    for worker in list(_workers):
        worker.close()


def _abandon_all() -> None:
    for worker in list(_workers):
        child = worker._child  # pyright: ignore[reportPrivateUsage]
        if child is not None:
            child.abandon()
        worker.__init__(env=worker._env)  # pyright: ignore[reportPrivateUsage]  # locks may be held by lost threads
