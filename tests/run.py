"""All checks in one command: style, types, room order, budgets, then the tests, spread over the processors.

Every check runs even when one before it has failed, so that one run tells everything. What is
given on the command line goes to pytest: `tests/run.py tests/ir -x`, and `-n 0` for one process. The exit
code is 0 only when all of them passed; pytest comes last so that its summary closes the output.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# name, words after the interpreter's own `bin` folder (or `python` for a script of ours)
CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ruff", ("ruff", "check", "--quiet", ".")),
    # Without it pyright looks at whatever python comes first on the PATH.
    ("pyright", ("pyright", "--pythonpath", sys.executable)),
    ("room order", ("lint-imports", "--no-cache")),
    ("budgets", ("python", "tests/project/budgets.py")),
)
# A process a processor (`tests/spread.py` says how), up to what the memory of a usual machine holds.
SPREAD = ("-n", "auto", "--maxprocesses", "8")


def _command(words: tuple[str, ...]) -> list[str]:
    if words[0] == "python":
        return [sys.executable, *words[1:]]
    return [str(Path(sysconfig.get_path("scripts")) / words[0]), *words[1:]]


def _passes(name: str, words: tuple[str, ...]) -> bool:
    """Run one check; print its output only when it fails, and its time always."""
    start = time.perf_counter()
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        _command(words), cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    good = done.returncode == 0
    print(f"{name}: {'ok' if good else 'FAILED'} in {time.perf_counter() - start:.1f} s", flush=True)
    if not good:
        print(done.stdout + done.stderr, flush=True)
    return good


def main(arguments: list[str]) -> int:
    """Run the checks and then pytest; 0 when everything passed."""
    failed = [name for name, words in CHECKS if not _passes(name, words)]
    if failed:
        print("failed before the tests: " + ", ".join(failed), flush=True)
    words = [sys.executable, "-m", "pytest", *SPREAD, *arguments]
    tests = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL)
    return tests.returncode or (1 if failed else 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
