"""Outputs before each turn of a measurement: poison, whoever wrote last, on a device without the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.workbench.bench_kernels import functions
from tilebench.kernel.measuring import measure
from tilebench.kernel.measuring.measure import TimedKernel, random_inputs
from tilebench.kernel.measuring.package import load_package, package_of
from tilebench.reference.check import poisoned
from tilebench.targets import resolve_machine


class Device:
    """A device's memory in NumPy, as the timing method wants it; it counts what goes to and fro."""

    clock = flush = None

    def __init__(self, executable: Any, arguments: Any, arrays: list[Any]) -> None:
        self.executable, self.arguments, self.host = executable, arguments, arrays
        self.copies = [array.copy() for array in arrays]
        self.kept: list[Any] = []
        self.log: list[str] = []

    def run(self) -> None:
        """On the copies: what the host's arrays hold is put back after it."""
        saved = [array.copy() for array in self.host]
        for array, copy in zip(self.host, self.copies, strict=True):
            array[...] = copy
        self.executable(self.arguments)
        for array, copy, old in zip(self.host, self.copies, saved, strict=True):
            copy[...] = array
            array[...] = old

    def upload(self) -> None:
        self.log.append("upload")
        for array, copy in zip(self.host, self.copies, strict=True):
            copy[...] = array

    def download(self) -> None:
        self.log.append("download")
        for array, copy in zip(self.host, self.copies, strict=True):
            array[...] = copy

    def keep(self) -> None:
        self.log.append("keep")
        self.kept = [copy.copy() for copy in self.copies]

    def restore(self) -> None:
        self.log.append("restore")
        for copy, kept in zip(self.copies, self.kept, strict=True):
            copy[...] = kept


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> TimedKernel:
    package = package_of(functions()["double"].using(target="cpu")(1000), {})
    arrays = random_inputs(package, 0)
    manifest, machine = resolve_machine(package.target)
    assert load_package(package) is not None
    with_device = replace(manifest, device_arrays=lambda run, passed: Device(run, passed, arrays))
    monkeypatch.setattr(measure, "resolve_machine", lambda _: (with_device, machine))
    return TimedKernel(package, arrays)


def output(session: TimedKernel) -> Any:
    device: Any = session.device
    return device.copies[1]


def is_poison(session: TimedKernel) -> bool:
    array = output(session)
    return bool(poisoned(array, measure.dtype_of(array.dtype.name)).all())


def test_each_turn_begins_with_poison_and_only_the_first_asks_the_host(session: TimedKernel) -> None:
    session.first_run()
    device: Any = session.device
    for _ in range(3):
        assert not is_poison(session)
        session.renew()
        assert is_poison(session)
        session.run()
    assert device.log == ["upload", "keep", "download", "restore", "restore", "restore"]
    assert session.same() == ""
    assert np.array_equal(output(session), 2 * session.arrays[0])


def test_without_a_check_the_first_turn_asks_the_host(session: TimedKernel) -> None:
    session.renew()
    session.renew()
    device: Any = session.device
    assert device.log == ["upload", "keep", "restore"]


def test_outputs_that_change_are_a_failure(session: TimedKernel) -> None:
    session.first_run()
    session.renew()
    session.run()
    output(session)[7] += 1
    assert session.same() == "the outputs changed from run to run: a race, or memory read that nothing wrote"
