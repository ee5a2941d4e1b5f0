"""Where a measurement was made: processor, cores, clocks, versions. Small, quick, never raises."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

_PROCESSOR = Path("/sys/devices/system/cpu")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@lru_cache(maxsize=1)
def processor_name() -> str:
    """The processor's own name; its architecture where the system does not tell."""
    fields: dict[str, str] = {}
    for line in _read(Path("/proc/cpuinfo")).split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    name = fields.get("model name") or fields.get("Processor") or platform.processor() or platform.machine()
    if "model" in fields and "Processor" in name and not any(ch.isdigit() for ch in name):
        # A virtual machine hides the number behind a bare "Xeon Processor".
        name += (
            f" (family {fields.get('cpu family')} model {fields['model']} stepping {fields.get('stepping')})"
        )
    return name


def allowed_cores() -> int:
    """Cores this process may run on: the affinity mask, and a container's quota if that is less."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = _read(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(quota) == 2 and quota[0] != "max":
        with contextlib.suppress(ValueError, ZeroDivisionError):
            cores = min(cores, max(1, -(-int(quota[0]) // int(quota[1]))))
    return cores


@lru_cache(maxsize=1)
def last_level_cache_bytes() -> int:
    """Bytes of the largest cache the processor reports; 32 MiB where it reports none.

    A virtual machine reports the host's whole cache, of which it gets a share nobody tells.
    """
    largest = 0
    for size in _PROCESSOR.glob("cpu0/cache/index*/size"):
        text = _read(size)
        with contextlib.suppress(ValueError, IndexError):
            largest = max(largest, int(text[:-1]) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0))
    return largest or 32 << 20


def clock_mhz() -> str:
    """Clock of the first core now, in MHz, with its governor; empty where neither can be read."""
    governor = _read(_PROCESSOR / "cpu0/cpufreq/scaling_governor")
    khz = _read(_PROCESSOR / "cpu0/cpufreq/scaling_cur_freq")
    mhz = f"{int(khz) / 1000:.0f}" if khz.isdigit() else ""
    if not mhz:
        for line in _read(Path("/proc/cpuinfo")).splitlines():
            if line.startswith("cpu MHz"):
                mhz = f"{float(line.partition(':')[2]):.0f}"
                break
    return " ".join(each for each in (mhz, f"({governor})" if governor else "") if each)


def load() -> float:
    """Runnable threads of the whole machine, averaged over the last minute; 0 where unknown."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0


@lru_cache(maxsize=1)
def _fixed() -> dict[str, str]:
    """What does not change while the process lives."""
    import numpy

    return {
        "processor": processor_name(),
        "cores": str(os.cpu_count() or 1),
        "last_level_cache": f"{last_level_cache_bytes() / 2**20:.0f} MiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def environment(device: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a run, for `RunRecord.environment`. `device` is what a target says of its own."""
    found = {**_fixed(), "allowed_cores": str(allowed_cores())}
    clock = clock_mhz()
    if clock:
        found["clock_mhz"] = clock
    if load():
        found["load"] = f"{load():.2f}"
    return {**found, **(device or {})}
