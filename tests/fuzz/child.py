"""Programs run in a process of their own, so that one that hangs or dies is a finding and not an end."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from multiprocessing.connection import Connection
from typing import Any

from tests.fuzz.program import Program
from tests.fuzz.roads import FINDING, Outcome, Said

SECONDS = 30.0
# What a process keeps of its programs (texts, tables of words) grows with their number.
MOST_PROGRAMS = 2000


def _serve(pipe: Connection) -> None:
    os.environ["TILEBENCH_CACHE"] = "0"
    os.environ["TILEBENCH_GUARD"] = "off"
    os.environ["TILEBENCH_CPU_THREADS"] = "1"
    from tests.fuzz.roads import run

    pipe.send("ready")
    while True:
        try:
            program, options = pipe.recv()
        except EOFError:
            return
        try:
            outcome = run(program, **options)
        except Exception as error:  # what is outside all roads: inputs, this very code
            outcome = Outcome((Said("fuzz", FINDING, type(error).__name__, traceback.format_exc()[-1500:]),))
        pipe.send(outcome)


class Child:
    """A process that runs one program at a time. It starts when first needed, and again after a death."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._process: Any = None
        self._pipe: Any = None
        self._programs = 0

    def run(self, program: Program, **options: Any) -> Outcome:
        """What each road says; a finding `hangs` or `died` where no answer comes."""
        if self._process is None or self._programs >= MOST_PROGRAMS:
            self._start()
        self._programs += 1
        try:
            self._pipe.send((program, options))
            if self._pipe.poll(self.seconds):
                return self._pipe.recv()
            kind = f"hangs: no end after {self.seconds:g} seconds"
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(5)
            kind = f"died with {self._process.exitcode}"
        self.close()
        return Outcome((Said("process", FINDING, kind),))

    def _start(self) -> None:
        self.close()
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self._programs = 0
        # Its imports take longer than a program, and on a busy machine longer than one may take.
        if not self._pipe.poll(60) or self._pipe.recv() != "ready":
            raise RuntimeError("the process of the fuzzer did not start")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None
