"""The tests of interrupts end also where Ctrl-C is ignored, as under `nohup` or in a script's background."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# The tests that send themselves an interrupt while native code runs without an end of its own.
INTERRUPTED = (
    "tests/targets/cpu/test_pool.py", "tests/targets/cpu/test_loops_stage.py", "tests/runtime/test_worker.py",
    "tests/test_compiler.py",
)  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX starts processes that ignore an interrupt")
def test_interrupts_arrive_where_the_caller_ignores_them() -> None:
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *INTERRUPTED, "-k", "interrupt"]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
