"""A kernel under its target's profiler: a process of its own launches it once, and what is read off that.

python -m tilebench.kernel.measuring.profiled PACKAGE     what that process does
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import TargetError
from ...record import CompileRecord, LineCounter
from ...runtime.cancel import Cancelled
from ...runtime.codec import Spool, decode, encode
from ...targets import resolve_machine
from .package import Package

if TYPE_CHECKING:
    from ...compiler import Compilation


def why_not_profiled(compilation: Compilation) -> str:
    """Why no profiler counts on the lines of a kernel here; empty where one does."""
    profiler = compilation.manifest.profiler
    if profiler is None:
        return f"{compilation.manifest.name} has no profiler that counts on lines"
    return profiler.missing()


def profile_lines(
    package: Package, record: CompileRecord, *, cancel: threading.Event | None = None
) -> tuple[LineCounter, ...]:
    """The card's own counters of the lines of a record's code, from one launch on random arrays.

    Raises `TargetError` where the target has no profiler, or that fails; `Cancelled` when `cancel` is set.
    """
    manifest, _ = resolve_machine(package.target)
    cancel = cancel or threading.Event()
    if manifest.profiler is None:
        raise TargetError("{name} has no profiler that counts on lines", name=manifest.name)
    names = [str(row[0]) for row in package.data.get("launches", ())]
    with tempfile.TemporaryDirectory(prefix="tilebench-") as folder:
        path = Path(folder) / "package"
        path.write_bytes(encode(package, Spool()))
        command = [sys.executable, "-m", __name__, str(path)]
        report = manifest.profiler.run(command, names, cancel)
    if cancel.is_set():
        raise Cancelled("counting on the lines was stopped")
    return manifest.profiler.read(report, record)


def read_report(report: str, record: CompileRecord) -> tuple[LineCounter, ...]:
    """The same from a report that was collected before, as the profiler prints it.

    Raises `TargetError` where it is of other code.
    """
    manifest, _ = resolve_machine(record.target)
    if manifest.profiler is None:
        raise TargetError("{name} has no profiler that counts on lines", name=manifest.name)
    return manifest.profiler.read(report, record)


def main(path: str) -> None:
    """Launch the kernel of a package once; the package is one that this process's parent wrote."""
    from .measure import TimedKernel, random_inputs

    package: Package = decode(Path(path).read_bytes())
    TimedKernel(package, random_inputs(package, 0)).run()


if __name__ == "__main__":
    main(sys.argv[1])
