"""`python -m tests.faults [NAME ...]`: switch each deliberate fault on and see whether its tests fail.

Without names all faults run, with names those whose name begins so. First their tests run without any. Then
a line each says `killed` or `survived`; the exit code is 1 when one survived or could not be tried.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.faults.fault import ROOT, Fault
from tests.faults.rows import FAULTS

KILLED, SURVIVED = "killed", "survived"
_WORDS = {
    0: SURVIVED, 1: KILLED, 2: "stopped: the tests did not load", 4: "stopped: no such test",
    5: "stopped: no test was run", 99: "stopped: its module was not imported",
}  # fmt: skip
# No row's tests take half a minute on a quiet machine.
SECONDS = 300


def _run(tests: Iterable[str], fault: str) -> tuple[int, str]:
    """Pytest's exit code and output; `fault` is empty for the code as it is."""
    environment = {**os.environ, "TILE_FAULT": fault, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider",
        "-p", "tests.faults.switch", *tests,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=SECONDS if fault else None,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def outcome(fault: Fault) -> tuple[str, str]:
    """`killed`, `survived` or why neither can be said, and what the tests printed."""
    try:
        code, output = _run(fault.tests, fault.name)
    except subprocess.TimeoutExpired:
        return f"stopped: no end after {SECONDS} seconds", ""
    return _WORDS.get(code, f"stopped with {code}"), output


def main(arguments: list[str]) -> int:
    """Run the faults that are named; 0 when all were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", help="how the names of the faults begin; all without one")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="at one time")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the tests printed")
    options = parser.parse_args(arguments)
    chosen = [f for f in FAULTS if not options.names or f.name.startswith(tuple(options.names))]
    if not chosen:
        print("no fault is called so; there are: " + ", ".join(f.name for f in FAULTS))
        return 2
    start, bad = time.perf_counter(), 0
    # A test that fails anyway would kill every fault.
    code, output = _run(dict.fromkeys(test for fault in chosen for test in fault.tests), "")
    if code:
        print(output + "these tests do not pass without a fault")
        return 2
    with ThreadPoolExecutor(options.jobs) as pool:
        for fault, (word, output) in zip(chosen, pool.map(outcome, chosen), strict=True):
            bad += word != KILLED
            print(f"{word:9} {fault.name}: {fault.breaks}", flush=True)
            if options.verbose or word not in (KILLED, SURVIVED):
                print(output, flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} killed in {time.perf_counter() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
