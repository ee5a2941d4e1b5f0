"""Functions that the worker's tests run in the child, named by `tests.runtime.jobs:...`."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from tilebench.errors import ShapeError
from tilebench.runtime.job import cancelled, in_child, report


def pid() -> int:
    return os.getpid()


def double(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array *= 2
    return array


def about(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return (array.shape, array.strides, array.dtype.name, array.ctypes.data % 256, array.flags.writeable,
            array.astype(np.float64).sum().item())  # fmt: skip


def crash(text: str) -> None:
    print(text)
    ctypes.string_at(0)


def spin() -> None:
    while True:
        pass


def spin_told() -> None:
    report("spinning")
    spin()


def deaf() -> None:
    """Ignores SIGTERM, like a process stuck in a driver call."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    report("deaf")
    while True:
        time.sleep(1)


def polite() -> str:
    report("begun")
    while not cancelled():
        time.sleep(0.005)
    from tilebench.runtime.job import stop_if_cancelled

    stop_if_cancelled()
    return "not reached"


def count(n: int) -> int:
    for i in range(n):
        report({"done": i + 1, "of": n})
    return n


def chatter() -> str:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"raw to 1\n")
    subprocess.run(["echo", "from a grandchild"], check=True)
    return "kept apart"


def grandchild() -> int:
    return subprocess.Popen(["sleep", "300"]).pid


def fails(kind: str) -> None:
    if kind == "tile":
        raise ShapeError("A is {rank}-dimensional", rank=3)
    if kind == "exit":
        sys.exit(3)
    raise ZeroDivisionError("one over nothing")


def setting() -> tuple[str, str, bool]:
    from tilebench import settings

    return settings.target(), os.environ.get("TILEBENCH_TEST_ENV", ""), in_child()


def unpicklable() -> Any:
    import threading

    return threading.Lock()
