"""What this machine can do at most, measured, for the lines above a chart.

Measured in a child of its own, because a thread count of BLAS is fixed when NumPy loads; kept on
disk by processor, thread count and NumPy, with the date. Takes under a second once.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import settings
from ..errors import OptionError
from ..record_files import from_plain, parse_json
from ..runtime.job import Job
from ..runtime.worker import Worker, default_worker
from .environment import allowed_cores, last_level_cache_bytes, load, processor_name
from .flush import available_bytes

# Raise it when the method below changes: results of another method are measured again.
_METHOD_VERSION = 2
# Every BLAS that NumPy may have been built with.
_THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_GEMM = {"float32": 1280, "float64": 1024}
_REPEATS = 4
# Runnable threads a core, averaged over a minute, above which figures are not those of this machine.
BUSY = 1.5
# Figures of a busy machine stand for this long, so that a day of charts is not drawn under them.
BUSY_AGE_S = 600.0
# A file of figures is one kilobyte.
MOST_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class Ceilings:
    """The most that was reached on this machine, with `threads` threads.

    `bandwidth_bytes_s` is a copy of large arrays, bytes read plus bytes written; `read_bytes_s`
    reads only. `flops_s` is by dtype, of NumPy's matrix product (2mnk operations). `method` says
    how, `when` is a date and time, `device` the name of what was measured. `busy` says that other work
    ran on the machine meanwhile; such figures are too low and are measured again after ten minutes.
    """

    bandwidth_bytes_s: float
    read_bytes_s: float
    flops_s: dict[str, float] = field(default_factory=dict[str, float])
    threads: int = 1
    method: str = ""
    when: str = ""
    device: str = ""
    busy: bool = False

    def peak(self, dtype: str) -> float | None:
        """Operations a second of a dtype; float32's where that one was not measured."""
        return self.flops_s.get(dtype) or self.flops_s.get("float32")

    @property
    def most_bytes_s(self) -> float:
        """The faster of copy and read: above this no figure from memory can be right."""
        return max(self.bandwidth_bytes_s, self.read_bytes_s)


def _best(work: Callable[[], object], repeats: int = _REPEATS) -> float:
    """Least seconds of some runs after one untimed: a ceiling is what was reached at best."""
    work()
    least = float("inf")
    for _ in range(repeats):
        start = time.perf_counter_ns()
        work()
        least = min(least, (time.perf_counter_ns() - start) * 1e-9)
    return least


def _bandwidth(threads: int) -> tuple[float, float, int]:
    """Bytes a second of a copy and of a read, and the bytes of both arrays together.

    The pair is as large as twice the last-level cache where memory allows, so that the cache holds
    little of it from one run to the next.
    """
    import numpy as np

    size = int(min(max(2 * last_level_cache_bytes(), 128 << 20), available_bytes() // 4)) // 2
    source, target = np.empty(size // 4, np.float32), np.empty(size // 4, np.float32)
    step = -(-len(source) // threads)
    parts = [slice(i, i + step) for i in range(0, len(source), step)]

    def fill(part: slice) -> None:
        source[part] = 1.0
        target[part] = 0.0

    def copy(part: slice) -> None:
        np.copyto(target[part], source[part])

    def read(part: slice) -> None:
        np.max(source[part])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, parts))
        copied = 2 * source.nbytes / _best(lambda: list(pool.map(copy, parts)))
        read_ = source.nbytes / _best(lambda: list(pool.map(read, parts)))
    return copied, read_, 2 * source.nbytes


def _gemm_rate(dtype: str, n: int) -> float:
    import numpy as np

    random = np.random.default_rng(0)
    a, b = (random.random((n, n), np.float32).astype(dtype) for _ in range(2))
    out = np.empty((n, n), dtype)
    return 2.0 * n**3 / _best(lambda: np.matmul(a, b, out=out))


def measure_ceilings(threads: int) -> dict[str, Any]:
    """Measure in this process; the fields of `Ceilings`. BLAS uses what its variables said at start."""
    copied, read, size = _bandwidth(threads)
    flops = {dtype: _gemm_rate(dtype, n) for dtype, n in _GEMM.items()}
    sizes = ", ".join(f"{n}^3 {dtype}" for dtype, n in _GEMM.items())
    method = (
        f"best of {_REPEATS} after one untimed, {threads} threads; copy: numpy.copyto of float32, arrays of "
        f"{size / 2**20:.0f} MiB together, bytes read and written; read: numpy.max of one of them; "
        f"arithmetic: numpy.matmul {sizes}"
    )
    when = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    busy = load() > BUSY * allowed_cores()
    if busy:
        method += "; the machine was busy with other work"
    return asdict(Ceilings(copied, read, flops, threads, method, when, processor_name(), busy))


def _file(threads: int) -> Path:
    import numpy

    machine = (processor_name(), os.cpu_count(), last_level_cache_bytes())
    about = repr((_METHOD_VERSION, machine, threads, numpy.__version__))
    name = hashlib.sha256(about.encode()).hexdigest()[:16]
    return Path(settings.cache_dir()).expanduser() / "ceilings" / f"{name}.json"


def _load(path: Path) -> Ceilings | None:
    try:
        if not path.is_file() or path.stat().st_size > MOST_FILE_BYTES:
            return None
        found = from_plain(Ceilings, parse_json(path.read_bytes(), str(path)), str(path))
        stale = found.busy and time.time() - path.stat().st_mtime > BUSY_AGE_S
    except (OSError, OptionError):
        return None
    rates = (found.bandwidth_bytes_s, found.read_bytes_s, *found.flops_s.values())
    sound = bool(found.flops_s) and all(0 < rate < math.inf for rate in rates)
    return found if sound and not stale else None


def ceilings(
    threads: int | None = None, *, refresh: bool = False, cancel: threading.Event | None = None
) -> Ceilings:
    """The ceilings of this machine for `threads` threads (default: those of a CPU launch).

    From disk when measured before; `refresh` measures again. `LaunchError` when the measuring
    child fails, `Cancelled` once `cancel` is set.
    """
    count = threads or settings.cpu_threads() or allowed_cores()
    path = _file(count)
    if not refresh:
        known = _kept.get(path) or (_load(path) if settings.cache() else None)
        if known is not None:
            _kept[path] = known
            return known
    with Worker(env=dict.fromkeys(_THREAD_VARIABLES, str(count))) as worker:
        found = Ceilings(
            **worker.call(
                Job(f"{__name__}:measure_ceilings", (count,), name="measuring the ceilings"), cancel=cancel
            )
        )
    if settings.cache():
        with suppress(OSError):  # a folder that cannot be written only costs the next process a second
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(asdict(found)))
            part.replace(path)
    _kept[path] = found
    return found


def device_ceilings(function: str, device: str, cancel: threading.Event | None = None) -> Ceilings:
    """The ceilings of a device, measured by a target's `module:function` in the child, once a process.

    `device` names it in the key. `LaunchError` when the child fails, `Cancelled` once `cancel` is set.
    """
    key = Path(device)
    known = _kept.get(key)
    if known is None:
        job = Job(function, name=f"measuring the ceilings of {device}")
        known = Ceilings(**default_worker().call(job, cancel=cancel))
        _kept[key] = known
    return known


# What this process has read or measured.
_kept: dict[Path, Ceilings] = {}
