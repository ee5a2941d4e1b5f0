"""The rehearsal: new code runs in the child first, once, and a crash there is told here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels import add_kernel
from tilebench.errors import LaunchError, OptionError
from tilebench.kernel.function import JitFunction
from tilebench.kernel.kernel import Kernel
from tilebench.kernel.measuring import rehearse
from tilebench.runtime import worker as worker_module


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A CPU kernel whose target asks for a rehearsal, as a device's does."""
    monkeypatch.setenv("TILEBENCH_GUARD", "first")
    monkeypatch.setattr(rehearse, "_rehearsed", set())
    function: JitFunction = add_kernel.using(target="cpu")
    kernel = function(9, 7, dtype="float32")
    kernel.compilation.manifest = replace(kernel.compilation.manifest, rehearse=True)
    return kernel


def test_code_is_rehearsed_once_and_then_runs(guarded: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    worker = worker_module.default_worker()

    class Counting:
        def call(self, job: object) -> object:
            calls.append("rehearsed")
            return worker.call(job)  # type: ignore[arg-type]

    monkeypatch.setattr(worker_module, "default_worker", Counting)
    a, b, c = (np.ones((9, 7), np.float32) for _ in range(3))
    guarded(a, b, c)
    guarded(a, b, c)
    assert calls == ["rehearsed"]
    assert (c == 2).all()


def test_a_crash_leaves_the_arrays_alone(guarded: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(package: object) -> None:
        import ctypes

        ctypes.string_at(0)

    real = rehearse.Job
    monkeypatch.setattr(rehearse, "Job", lambda _, args, name: real(crash, args, name=name))
    a, b, c = (np.ones((9, 7), np.float32) for _ in range(3))
    with pytest.raises(LaunchError, match="rehearsing add_kernel"):
        guarded(a, b, c)
    assert (c == 1).all()


def test_nothing_is_rehearsed_outside_a_notebook(guarded: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_GUARD", "off")
    monkeypatch.setattr(worker_module, "default_worker", lambda: pytest.fail("a child was asked"))
    a, b, c = (np.ones((9, 7), np.float32) for _ in range(3))
    guarded(a, b, c)
    assert (c == 2).all()


def test_an_unknown_choice_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_GUARD", "maybe")
    with pytest.raises(OptionError, match="auto, first, off"):
        rehearse.wanted()
