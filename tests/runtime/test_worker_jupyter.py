"""The measuring child of a real Jupyter kernel: cell functions, threads, interrupt, a silent end."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
START = f"""
import sys, threading
sys.path.insert(0, {ROOT!r})
from tilebench.runtime.worker import Worker
from tilebench.runtime.job import Job
worker = Worker()
factor = 3
class Point:
    def __init__(self, x): self.x = x
def scaled(point):
    print("noise of the child")
    return Point(point.x * factor)
"""


class Kernel:
    """A kernel and what its cells print."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, interrupt_after: float | None = None) -> str:
        text: list[str] = []

        def collect(message: Any) -> None:
            content = message["content"]
            if message["msg_type"] == "execute_input" and interrupt_after is not None:
                # The cell begins: an interrupt before that would be nobody's.
                threading.Timer(interrupt_after, self.manager.interrupt_kernel).start()
            if message["msg_type"] == "stream":
                text.append(content["text"])
            elif message["msg_type"] == "error":
                text.append(content["ename"])

        self.client.execute_interactive(code, output_hook=collect, timeout=120)
        return "".join(text).strip()


def test_a_kernel_and_its_child() -> None:
    """In a process of its own: jupyter_client leaves event loops for the collector to warn about."""
    pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.strip() == "right", done.stderr


def main() -> None:
    start_new_kernel: Any = importlib.import_module("jupyter_client.manager").start_new_kernel
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        child = scenario(Kernel(manager, client))
    finally:
        # A kernel that is shut down takes its child along.
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    end = time.monotonic() + 60
    while running(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not running(child)
    print("right")


def scenario(kernel: Kernel) -> int:
    assert kernel.run(START) == ""
    # A function and a class of a cell go there and come back as themselves; its noise stays apart.
    run = "p = worker.call(Job(scaled, (Point(5),))); print(p.x, type(p) is Point)"
    assert kernel.run(run) == "15 True"
    assert kernel.run("print('noise of the child' in worker.log)") == "True"
    threaded = "t = threading.Thread(target=lambda: print(worker.call(Job('os:getpid')) == worker.pid))"
    assert kernel.run(threaded + "; t.start(); t.join()") == "True"
    # The interrupt of the notebook ends the job, not the kernel, and the next call works.
    start = time.monotonic()
    assert kernel.run("worker.call(Job('time:sleep', (60,)))", interrupt_after=0.3) == "KeyboardInterrupt"
    assert time.monotonic() - start < 30
    return int(kernel.run("print(worker.call(Job('os:getpid')))"))


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    main()
