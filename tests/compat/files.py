"""How many of TileLang's example files run on the CPU, imports as they are and sizes alone changed.

    python -m tests.compat.files --tilelang PATH             # a checkout of TileLang: all of the table
    python -m tests.compat.files --tilelang PATH gemm/ norm  # those whose names have one of the words in them
    python -m tests.compat.files --tilelang PATH --waves     # the well-known ones alone

Each file runs in a process of its own, after `tilebench.compat.install(device="cpu")`. It needs torch and
einops. A row says with which arguments, which texts stand for which in the file (sizes, and lists of
configurations that are tuned), and what is called where the file itself calls nothing. A file that gets to
its end has passed its own comparisons. Where Triton is not installed, files may import it and not run it.
Nothing of TileLang's is here.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import linecache
import os
import subprocess
import sys
import tempfile
import time
import types
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """A file below `examples/`: its arguments, texts that are replaced, and a call for its end."""

    file: str
    arguments: str = ""
    replaced: tuple[tuple[str, str], ...] = ()
    call: str = ""
    wave: int = 0


def run_here(row: Row, examples: Path) -> None:
    """The file of a row, in this process."""
    import tilebench.compat

    tilebench.compat.install(device="cpu")
    path = examples / row.file
    without_triton(path.parent)
    text = path.read_text()
    for old, new in row.replaced:
        if old not in text:
            sys.exit(f"{row.file} has no text {old!r}")
        text = text.replace(old, new)
    # Python finds the lines of a function by the file's name: these are the changed ones.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    sys.path.insert(0, str(path.parent))
    os.chdir(tempfile.mkdtemp())
    sys.argv = [str(path), *row.arguments.split()]
    module = types.ModuleType("example" if row.call else "__main__")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    if row.call:
        exec(row.call, module.__dict__)


class Elsewhere(types.ModuleType):
    """Triton, of which files import baselines for a card: any name is there, and a call says what lacks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Elsewhere(f"{self.__name__}.{name}")

    def __call__(self, *given: Any, **_: Any) -> Any:
        if given and callable(given[0]):
            return self  # a decorator, of a kernel that is not called
        if self.__name__.endswith((".jit", ".autotune", ".heuristics", ".Config")):
            return self
        raise RuntimeError(f"{self.__name__} needs a card")

    def __getitem__(self, _: object) -> Any:
        return self


def without_triton(folder: Path) -> None:
    """Let the files of a folder import Triton where it is not installed. Others see that there is none."""
    wanted = any("import triton" in file.read_text() for file in folder.rglob("*.py"))
    if wanted and importlib.util.find_spec("triton") is None:
        for name in ("", ".language", ".testing", ".tools", ".tools.tensor_descriptor", ".language.extra",
                     ".language.extra.libdevice"):  # fmt: skip
            sys.modules[f"triton{name}"] = Elsewhere(f"triton{name}")
        # torch's compiler would take Triton for itself.
        os.environ["TORCH_COMPILE_DISABLE"] = "1"


def outcome(row: Row, tilelang: Path, limit: float) -> tuple[bool, str, float]:
    """Whether the file got to its end, the last lines that say why not, and seconds."""
    command = [
        sys.executable,
        "-m",
        "tests.compat.files",
        "--here",
        json.dumps(asdict(row)),
        "--tilelang",
        str(tilelang),
    ]
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"ran longer than {limit:.0f} s", limit
    took = time.perf_counter() - began
    return done.returncode == 0, "" if done.returncode == 0 else reason(done.stderr), took


def reason(text: str) -> str:
    """What a traceback ends with: the error, and the user's line where it names one."""
    lines = [line for line in text.splitlines() if line.strip()]
    start = [n for n, line in enumerate(lines) if line[:1].strip() and "rror" in line.split(":")[0]]
    return "\n".join(lines[start[-1] :][:8] if start else lines[-3:])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*")
    parser.add_argument("--tilelang", type=Path, required=True)
    parser.add_argument("--waves", action="store_true")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        row = json.loads(given.here)
        run_here(Row(**{**row, "replaced": tuple(map(tuple, row["replaced"]))}), given.tilelang / "examples")
        return 0
    from tests.compat.table import ROWS

    chosen = [row for row in ROWS if not given.words or any(word in row.file for word in given.words)]
    chosen = [row for row in chosen if row.wave or not given.waves]
    passed: dict[str, bool] = {}
    for row in chosen:
        ok, why, took = outcome(row, given.tilelang, given.limit)
        passed[row.file] = passed.get(row.file, True) and ok
        print(f"{'ok  ' if ok else 'STOP'} {took:6.1f} s  {row.file} {row.arguments}", flush=True)
        if why:
            print("\n".join(f"        {line}" for line in why.splitlines()), flush=True)
    print(f"{sum(passed.values())} of {len(passed)} files run")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
