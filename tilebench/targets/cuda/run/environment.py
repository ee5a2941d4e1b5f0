"""What a run's record says of the cards: names, driver, clocks, power, by NVML or else by `nvidia-smi`.

NVML is asked through cuda-bindings, which the compiler brings, or pynvml. It is opened once in a process
(16 ms) and stays open: a query takes 3 us, so that clocks and power are read between turns. `nvidia-smi`
is a program (50 ms and more): what never changes is asked once, and the rest at each run.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

# Readings between the turns of one run are one answer of `nvidia-smi`, and another run has its own.
FRESH_S = 0.5
ABSENT = "not sampled: there is neither NVML (cuda-bindings, pynvml) nor nvidia-smi"
# What `nvidia-smi` is asked, and what a record calls it.
_FIXED = {"name": "name", "driver_version": "driver", "enforced.power.limit": "power_limit"}
_MOVING = {
    "clocks.sm": "sm_clock", "clocks.mem": "memory_clock", "power.draw": "power",
    "temperature.gpu": "temperature",
}  # fmt: skip
_UNITS = {"sm_clock": "MHz", "memory_clock": "MHz", "power": "W", "power_limit": "W", "temperature": "C"}


def cards() -> list[dict[str, str]]:
    """Cards with name, driver, clocks, power, temperature; empty where nothing tells of them."""
    queries = nvml_queries()
    if queries is None:
        return [dict(card) for card in smi_cards()]
    found: list[dict[str, str]] = []
    for of_one in queries:
        card: dict[str, str] = {}
        for name, query in of_one.items():
            with contextlib.suppress(Exception):  # a card need not answer every question
                card[name] = query()
        found.append(card)
    return found


def environment() -> dict[str, str]:
    """Every card's figures, as `gpu0_name` and so on; where nothing tells of a card that runs, that."""
    found = {
        f"gpu{index}_{name}": value for index, card in enumerate(cards()) for name, value in card.items()
    }
    if found:
        return found
    from .device import available

    return {"gpu_clocks": ABSENT} if available()[0] else {}


Queries = Mapping[str, Callable[[], str]]


@lru_cache(maxsize=1)
def nvml_queries() -> tuple[Queries, ...] | None:
    """Questions that NVML answers, for each card; None without a library or a driver."""
    for name, of_library in (("cuda.bindings.nvml", _by_bindings), ("pynvml", _by_pynvml)):
        with contextlib.suppress(Exception):  # the library's own error types cannot be named without it
            return of_library(importlib.import_module(name))
    return None


def _by_bindings(nvml: Any) -> tuple[Queries, ...]:
    nvml.init_v2()
    clock = nvml.ClockType
    handles = [nvml.device_get_handle_by_index_v2(k) for k in range(nvml.device_get_count_v2())]

    def of(handle: Any) -> Queries:
        return {
            "driver": lambda: str(nvml.system_get_driver_version()),
            "name": lambda: str(nvml.device_get_name(handle)),
            "sm_clock": lambda: f"{int(nvml.device_get_clock_info(handle, clock.SM))} MHz",
            "memory_clock": lambda: f"{int(nvml.device_get_clock_info(handle, clock.MEM))} MHz",
            "power": lambda: f"{int(nvml.device_get_power_usage(handle)) / 1000:.0f} W",
            "power_limit": lambda: f"{int(nvml.device_get_enforced_power_limit(handle)) / 1000:.0f} W",
            "temperature": lambda: f"{int(nvml.device_get_temperature_v(handle, 0))} C",
        }

    return tuple(of(handle) for handle in handles)


def _by_pynvml(nvml: Any) -> tuple[Queries, ...]:
    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(k) for k in range(nvml.nvmlDeviceGetCount())]

    def of(handle: Any) -> Queries:
        return {
            "driver": lambda: str(nvml.nvmlSystemGetDriverVersion()),
            "name": lambda: str(nvml.nvmlDeviceGetName(handle)),
            "sm_clock": lambda: f"{nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)} MHz",
            "memory_clock": lambda: f"{nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)} MHz",
            "power": lambda: f"{nvml.nvmlDeviceGetPowerUsage(handle) / 1000:.0f} W",
            "power_limit": lambda: f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000:.0f} W",
            "temperature": lambda: f"{nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)} C",
        }

    return tuple(of(handle) for handle in handles)


def smi_cards() -> tuple[Mapping[str, str], ...]:
    """The cards as `nvidia-smi` tells of them, not longer than `FRESH_S` ago; empty without it."""
    global _moving
    fixed = _smi_fixed()
    now = time.monotonic()
    if fixed and (_moving is None or now - _moving.when > FRESH_S):
        _moving = _Moving(now, _asked(_MOVING))
    moving = _moving.cards if _moving is not None else ()
    return tuple({**card, **(moving[k] if k < len(moving) else {})} for k, card in enumerate(fixed))


@dataclass(frozen=True)
class _Moving:
    """What `nvidia-smi` said of clocks, power and temperature, and when."""

    when: float
    cards: tuple[Mapping[str, str], ...]


_moving: _Moving | None = None


def forget() -> None:
    """Ask again for what is kept of the cards, as a process does that has just begun."""
    global _moving
    _moving = None
    nvml_queries.cache_clear()
    _smi_fixed.cache_clear()


@lru_cache(maxsize=1)
def _smi_fixed() -> tuple[Mapping[str, str], ...]:
    return _asked(_FIXED)


def _asked(fields: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """What `nvidia-smi` answers for each card; empty without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    words = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(smi_card(line, fields) for line in said.splitlines() if line.strip())


def smi_card(line: str, fields: Mapping[str, str]) -> dict[str, str]:
    """One line of `nvidia-smi`'s table; what it does not know (`[N/A]`) is left out."""
    out: dict[str, str] = {}
    for name, value in zip(fields.values(), line.split(","), strict=False):
        text = value.strip()
        if text and not text.startswith("["):
            number = text.partition(".")[0] if name in _UNITS else text
            out[name] = f"{number} {_UNITS[name]}" if name in _UNITS else text
    return out
