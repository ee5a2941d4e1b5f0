"""`python -m tests.faults [NAME ...]`: switch each deliberate fault on and see whether its tests fail.

Without names all faults run, with names those whose name begins so. Prints a line each, `killed` or
`survived`, and ends with 1 when one survived or could not be tried.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.faults.fault import ROOT, Fault
from tests.faults.rows import FAULTS

KILLED, SURVIVED = "killed", "survived"
_WORDS = {
    0: SURVIVED, 1: KILLED, 2: "stopped: the tests did not load", 4: "stopped: no such test",
    5: "stopped: no test was run", 99: "stopped: its module was not imported",
}  # fmt: skip
# A fault may turn a loop into an endless one; no row's tests take half as long.
SECONDS = 120


def outcome(fault: Fault) -> tuple[str, str]:
    """`killed`, `survived` or why neither can be said, and what the tests printed."""
    environment = {**os.environ, "TILE_FAULT": fault.name, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider",
        "-p", "tests.faults.switch", *fault.tests,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return KILLED, f"no end after {SECONDS} seconds"
    return _WORDS.get(done.returncode, f"stopped with {done.returncode}"), done.stdout + done.stderr


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
