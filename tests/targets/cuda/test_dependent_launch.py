"""Launches that begin while the one before them ends: where they wait, what the driver is told, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels import add_kernel
from tests.simulated import run_threaded
from tilebench.errors import ScheduleError
from tilebench.schedule import Schedule

from .test_clusters import product
from .test_driver import FakeDriver, _launch, fake

__all__ = ["fake"]
EARLY = Schedule.of(dependent_launch=True)


def lines(kernel: Any, stage: str) -> list[str]:
    return [line.strip() for line in kernel.stage(stage).splitlines()]


def test_it_waits_in_front_of_the_first_access_to_an_array() -> None:
    kernel = add_kernel.using(target="cuda:sm_90a", schedule=EARLY)(64, 128)
    text = lines(kernel, "threaded")
    head, wait = text.index("T.launch_dependents()"), text.index("T.wait_for_launches()")
    touched = [k for k, line in enumerate(text) if "T.vector_load(" in line or "T.vector_store(" in line]
    assert head < wait < min(touched)
    a, b = (np.full((64, 128), value, np.float16) for value in (1, 2))
    c = np.zeros_like(a)
    run_threaded(kernel.compilation.functions["threaded"], {"A": a, "B": b, "C": c}, warp=32)
    assert (c == 3).all()
    code = kernel.stage("sass")
    assert code.index("ACQBULK") < code.index("LDG")
    assert "PREEXIT" in code


def test_a_producer_waits_too_and_barriers_are_made_before() -> None:
    kernel = product(cluster=[1, 2], dependent_launch=True)
    text = lines(kernel, "threaded")
    wait = text.index("T.wait_for_launches()")
    assert max(k for k, line in enumerate(text) if line.startswith("T.mbarrier_init(")) < wait
    assert wait < min(k for k, line in enumerate(text) if line.startswith("T.tma_load("))


def test_another_machine_refuses_it_at_the_kernel() -> None:
    kernel = add_kernel.using(target="cuda:sm_80", schedule=EARLY)(64, 128)
    with pytest.raises(ScheduleError) as caught:
        kernel.stage("threaded")
    assert "cuda:sm_80 begins no launch before the one in front of it has ended" in str(caught.value)
    assert caught.value.hint == "leave the schedule's dependent_launch out"
    assert caught.value.place is not None


def test_a_processor_has_no_use_for_it() -> None:
    record = add_kernel.using(target="cpu", schedule=EARLY)(64, 128).record()
    told = [choice.why for choice in record.choices if choice.name == "dependent_launch"]
    assert told == ["not used by cpu: a call returns when it is done"]


def test_the_driver_is_told(fake: FakeDriver) -> None:
    _launch(fake, "i", (4,), dependent=True)(0, 1)
    assert fake.launched[0].attributes == [(6, (1, 0, 0))]
