"""The measuring child: one job after the other in its main thread, until its parent goes or it is idle.

Its file descriptors 0 and 1 are the pipes of the protocol when it starts. They are moved out of
reach first, and 1 is joined to 2, so that nothing a kernel or a library prints can get between the
frames. Imports here are few: the parent waits for the first frame (40 ms, of which Python itself 20).
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import queue
import sys
import threading
import traceback
from typing import Any

from ..errors import OptionError, TileError
from . import job
from .codec import Spool, decode, encode, read_frame, write_frame


class Child:
    """The child's side of the pipes."""

    def __init__(self) -> None:
        self.inward, self.outward = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.jobs: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self.current = 0
        self.unwanted = 0
        self.idle_s = 0.0
        self._sending = threading.Lock()
        self._stop = job.connect(self.say)

    def send(self, letter: bytes, value: object = None) -> None:
        """Encode and send; large arrays in it are taken away by the parent."""
        body = encode(value, Spool())
        with self._sending:
            write_frame(self.outward, letter, body)

    def say(self, value: object) -> None:
        self.send(b"P", (self.current, value))

    def listen(self) -> None:
        """Take frames while a job runs. When the stream ends the parent has gone, and this child goes too."""
        while True:
            frame = read_frame(self.inward)
            if frame is None:
                os._exit(0)
            letter, body = frame
            number = int.from_bytes(body[:8], "little")
            if letter == b"J":
                self.jobs.put((number, body[8:]))
            elif letter == b"S":
                self.unwanted = number
                if number == self.current:
                    self._stop.set()

    def serve(self) -> None:
        while True:
            try:
                number, body = self.jobs.get(timeout=self.idle_s or None)
            except queue.Empty:
                return
            self._stop.clear()
            self.current = number
            if self.unwanted >= number:  # stopped before it began
                self._stop.set()
            self.send(b"A", number)
            try:
                self.run(number, body)
            except OSError:
                return  # the parent closed the pipe: nobody wants the answer

    def run(self, number: int, body: bytes) -> None:
        try:
            function, args, kwargs, environment, self.idle_s = decode(body)
            os.environ.update(environment)  # noqa: TID251  # the parent's settings, as it sees them now
            result = resolve(function)(*args, **kwargs)
        except BaseException as error:
            self.fail(number, error)
            return
        try:
            self.send(b"R", (number, result))
        except TileError as error:
            self.fail(number, error)

    def fail(self, number: int, error: BaseException) -> None:
        """Send the error itself where it can travel, and always its text."""
        text = "".join(traceback.format_exception(error))
        summary = f"{type(error).__name__}: {error}"
        try:
            self.send(b"E", (number, error, summary, text))
        except TileError:
            self.send(b"E", (number, None, summary, text))


def resolve(function: Any) -> Any:
    """The callable that `module:function` names, or the callable itself."""
    if not isinstance(function, str):
        return function
    module, colon, name = function.partition(":")
    if not colon or not name:
        raise OptionError("{function!r} names no function", function=function, expected="module:function")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def main(idle_s: float) -> None:
    """Serve the parent until it goes away or nothing was wanted for `idle_s` seconds."""
    child = Child()
    child.idle_s = idle_s
    # A crash leaves the Python stack in the log, where the parent finds it for its message.
    faulthandler.enable(2, all_threads=False)
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)
    threading.Thread(target=child.listen, name="tilebench-listen", daemon=True).start()
    child.send(b"H", os.getpid())
    child.serve()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
