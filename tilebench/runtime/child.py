"""The parent's hold on one child process: pipes, the threads that read them, its end."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .codec import read_frame, sweep, write_frame

LOG_LINES = 200
LINE_CHARS = 2000
# A child that ignores SIGTERM gets this long; a spinning kernel's process is gone in 0.16 s.
KILL_AFTER_S = 0.2

# `-c` rather than `-m`: the parent's sys.path and variables must be there before the first import
# (thread counts of BLAS are read when NumPy loads), and `-m` would put the current folder first.
_BOOT = (
    "import json, os, sys; a = json.loads(sys.argv.pop()); sys.path[:] = a['path'];"
    " os.environ.update(a['env']); from tilebench.runtime.worker_main import main; main(a['idle'])"
)


_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


def last_lines(lines: Iterable[str], count: int = 12) -> str:
    """The end of a log or traceback for a message, without this package's own frames."""
    kept: list[str] = []
    skipping = False
    for line in lines:
        bare = line.strip()
        if bare.startswith("File "):
            skipping = _PACKAGE in line or '"<string>"' in line or '"<frozen ' in line
        elif skipping and not line.startswith("    "):
            skipping = False
        if bare and not skipping and not bare.startswith("Extension modules:"):
            kept.append(line)
    return "\n    ".join(kept[-count:])


class Message(NamedTuple):
    letter: bytes
    body: bytes


class ChildProcess:
    """One running child. `frames` ends with None when the child has ended and was reaped."""

    def __init__(self, env: Mapping[str, str], idle_s: float) -> None:
        self.owner = os.getpid()
        self.started = time.perf_counter()
        self.start_seconds: float | None = None
        self.ready = threading.Event()
        self.frames: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self.log: collections.deque[str] = collections.deque(maxlen=LOG_LINES)
        root = str(Path(__file__).resolve().parents[2])
        path = [root, *(each for each in sys.path if each != root)]
        about = json.dumps({"path": path, "env": dict(env), "idle": idle_s})
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, about],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Its own session: an interrupt for the notebook's process group must not reach it, and
            # what it starts ends with it.
            start_new_session=True,
        )
        self.pid = self.process.pid
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self._in, self._out, self._err = self.process.stdin, self.process.stdout, self.process.stderr
        self._writing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._read_log, name="tilebench-log", daemon=True),
            threading.Thread(target=self._read_frames, name="tilebench-frames", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, letter: bytes, body: bytes) -> None:
        """Send a frame; `OSError` when the child is gone."""
        with self._writing:
            if self._in.closed:
                raise BrokenPipeError
            write_frame(self._in.fileno(), letter, body)

    @property
    def alive(self) -> bool:
        return self.process.returncode is None and self.owner == os.getpid()

    def _read_frames(self) -> None:
        while True:
            try:
                frame = read_frame(self._out.fileno())
            except OSError:
                frame = None
            if frame is None:
                break
            if frame[0] == b"H":
                self.start_seconds = time.perf_counter() - self.started
                self.ready.set()
            else:
                self.frames.put(Message(*frame))
        # The stream ends only with the process, whose status is fixed by then. What it started itself
        # is ended before the number of the group is given back.
        self._signal(signal.SIGKILL)
        self.process.wait()
        self._threads[0].join(KILL_AFTER_S)
        sweep(self.pid)
        with self._writing:
            self._in.close()
        self._out.close()
        self.ready.set()
        self.frames.put(None)

    def _read_log(self) -> None:
        rest = b""
        while True:
            try:
                piece = self._err.read(65536)
            except (OSError, ValueError):
                break
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[-LINE_CHARS:]
            self.log.extend(line.decode("utf-8", "replace")[:LINE_CHARS] for line in lines)
        if rest:
            self.log.append(rest.decode("utf-8", "replace"))
        self._err.close()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.pid, number)
            else:
                self.process.send_signal(number)

    def terminate(self) -> None:
        """End the child at once, whatever it does, and wait until it is reaped."""
        if not self.alive:
            return
        self._signal(signal.SIGTERM)
        self._threads[1].join(KILL_AFTER_S)
        if self._threads[1].is_alive():
            self._signal(signal.SIGKILL)
            self._threads[1].join(5)

    def close(self, patience_s: float = 0.5) -> None:
        """Let the child go: it ends by itself when its pipe closes."""
        if not self.alive:
            return
        with self._writing:
            self._in.close()
        self._threads[1].join(patience_s)
        self.terminate()

    def abandon(self) -> None:
        """In a forked copy of the parent: let go of the pipes, leave the process to its real parent."""
        self.process.returncode = 0  # else its collection here would warn of a process still running
        for stream in (self._in, self._out, self._err):
            with contextlib.suppress(OSError):
                stream.close()
