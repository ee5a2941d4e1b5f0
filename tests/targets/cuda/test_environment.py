"""What is read of a card between turns, with made-up libraries and a made-up `nvidia-smi`."""

from __future__ import annotations

from pathlib import Path
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
    environment.forget()


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
    names = ("name", "driver", "sm_clock", "power", "power_limit", "temperature")
    fields = {name: name for name in names}
    found = environment.smi_card("NVIDIA H200, 550.1, 1980, 611.44, 700.00, [N/A]", fields)
    assert found == {
        "name": "NVIDIA H200", "driver": "550.1", "sm_clock": "1980 MHz", "power": "611 W",
        "power_limit": "700 W",
    }  # fmt: skip


def test_what_changes_is_asked_at_each_run_and_names_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without NVML, with a made-up `nvidia-smi` whose card gets one degree warmer with each question."""
    count = tmp_path / "count"
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\necho "$1" >> {count}\nn=$(wc -l < {count})\n'
        'case "$1" in *temperature*) echo "$((1900 + n)), 3201, 611.44, $((50 + n))";;\n'
        '*) echo "NVIDIA H200, 550.1, 700.00";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(environment.importlib, "import_module", no_module)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    clock = [100.0]
    monkeypatch.setattr(environment.time, "monotonic", lambda: clock[0])
    first = environment.environment()
    assert first == {
        "gpu0_name": "NVIDIA H200", "gpu0_driver": "550.1", "gpu0_power_limit": "700 W",
        "gpu0_sm_clock": "1902 MHz", "gpu0_memory_clock": "3201 MHz", "gpu0_power": "611 W",
        "gpu0_temperature": "52 C",
    }  # fmt: skip
    assert environment.environment() == first
    clock[0] += 1
    later = environment.environment()
    assert (later["gpu0_temperature"], later["gpu0_sm_clock"]) == ("53 C", "1903 MHz")
    assert [("driver" in line, "temperature" in line) for line in count.read_text().splitlines()] == [
        (True, False), (False, True), (False, True),
    ]  # fmt: skip


def test_that_nothing_tells_of_a_card_that_runs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.importlib, "import_module", no_module)
    monkeypatch.setattr(environment.shutil, "which", missing_program)
    monkeypatch.setattr(device, "available", lambda: (True, ""))
    assert environment.environment() == {"gpu_clocks": environment.ABSENT}
    monkeypatch.setattr(device, "available", lambda: (False, "no driver"))
    assert environment.environment() == {}


def no_module(name: str) -> Any:
    raise ImportError(name)


def missing_program(_: str) -> None:
    return None
