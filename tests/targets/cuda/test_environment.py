"""What is read of a card between turns, with made-up libraries and a made-up `nvidia-smi`."""

from __future__ import annotations

from typing import Any

import pytest

from tilebench.profile.timing import spans
from tilebench.targets.cuda.run import device, environment


class Nvml:
    """cuda-bindings' NVML of one card, whose clock changes with each question; it does not know its limit."""

    class ClockType:
        SM, MEM = 1, 2

    def __init__(self, clocks: list[int]) -> None:
        self.clocks = clocks

    def init_v2(self) -> None: ...

    def device_get_count_v2(self) -> int:
        return 1

    def device_get_handle_by_index_v2(self, index: int) -> int:
        return index

    def system_get_driver_version(self) -> str:
        return "580.1"

    def device_get_name(self, _: int) -> str:
        return "made-up card"

    def device_get_clock_info(self, _: int, kind: int) -> int:
        return self.clocks.pop(0) if kind == self.ClockType.SM else 3201

    def device_get_power_usage(self, _: int) -> int:
        return 612_400

    def device_get_enforced_power_limit(self, _: int) -> int:
        raise RuntimeError("not supported")

    def device_get_temperature_v(self, _: int, sensor: int) -> int:
        return 54 + sensor


@pytest.fixture(autouse=True)
def fresh() -> None:
    environment.nvml_queries.cache_clear()
    environment.smi_cards.cache_clear()


def test_cuda_bindings_are_asked_once_opened_and_their_clocks_make_a_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    held = Nvml([1980, 1755, 1830])

    def find(name: str) -> Any:
        opened.append(name)
        return held

    monkeypatch.setattr(environment.importlib, "import_module", find)
    readings = [environment.environment() for _ in range(3)]
    assert opened == ["cuda.bindings.nvml"]
    assert readings[0] == {
        "gpu0_driver": "580.1", "gpu0_name": "made-up card", "gpu0_sm_clock": "1980 MHz",
        "gpu0_memory_clock": "3201 MHz", "gpu0_power": "612 W", "gpu0_temperature": "54 C",
    }  # fmt: skip
    assert spans(readings) == {"gpu0_sm_clock": "1755 to 1980 MHz"}


def test_a_line_of_nvidia_smi() -> None:
    found = environment.smi_card("NVIDIA H200, 550.1, 1980, 3201, 611.44, 700.00, [N/A]")
    assert found == {
        "name": "NVIDIA H200", "driver": "550.1", "sm_clock": "1980 MHz", "memory_clock": "3201 MHz",
        "power": "611 W", "power_limit": "700 W",
    }  # fmt: skip


def test_that_nothing_tells_of_a_card_that_runs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(environment.importlib, "import_module", missing)
    monkeypatch.setattr(environment.shutil, "which", missing_program)
    monkeypatch.setattr(device, "available", lambda: (True, ""))
    assert environment.environment() == {"gpu_clocks": environment.ABSENT}
    monkeypatch.setattr(device, "available", lambda: (False, "no driver"))
    assert environment.environment() == {}


def missing_program(_: str) -> None:
    return None
