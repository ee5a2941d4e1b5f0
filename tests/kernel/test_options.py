"""Options of measurements and checks that can mean nothing are refused by name, before anything runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.kernels import add_kernel
from tilebench.errors import OptionError, ResourceError
from tilebench.kernel.measuring.measure import measure_against
from tilebench.profile.timing import Contender, measure


@pytest.fixture(scope="module")
def kernel() -> Any:
    return add_kernel.using(target="cpu")(16, 16, dtype="float32")


BENCH: list[tuple[dict[str, Any], str]] = [
    ({"seconds": -1}, "seconds cannot be -1"),
    ({"seconds": 0}, "seconds cannot be 0"),
    ({"seconds": math.nan}, "seconds cannot be nan"),
    ({"seconds": math.inf}, "seconds cannot be inf"),
    ({"seconds": "1"}, "seconds cannot be '1'"),
    ({"seconds": True}, "seconds cannot be True"),
    ({"seconds": None}, "seconds cannot be None"),
    ({"seconds": 10**400}, "seconds cannot be 1000"),
    ({"rounds": 4}, "rounds cannot be 4"),
    ({"rounds": -3}, "rounds cannot be -3"),
    ({"rounds": 5.5}, r"rounds cannot be 5\.5"),
    ({"rounds": True}, "rounds cannot be True"),
    ({"seed": -1}, "seed cannot be -1"),
    ({"seed": "a"}, "seed cannot be 'a'"),
    ({"seed": 1.0}, r"seed cannot be 1\.0"),
    ({"sizes": 5}, "sizes cannot be 5"),
    ({"sizes": ["n"]}, r"sizes cannot be \['n'\]"),
    ({"sizes": {"n": 3}}, "has no size or scalar n"),
]


@pytest.mark.parametrize(("options", "message"), BENCH)
def test_bench_refuses(kernel: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        kernel.bench(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check": 1}, "check cannot be 1"),
        ({"timeout": -1}, "timeout cannot be -1"),
        ({"timeout": math.inf}, "timeout cannot be inf"),
        ({"against": {"numpy": 3}}, "numpy is nothing to compare with"),
    ],
)
def test_measurements_refuse(kernel: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        measure_against(kernel, **options)


def test_checks_and_inputs_refuse(kernel: Any) -> None:
    for options, message in BENCH:
        if "seed" in options or "sizes" in options:
            with pytest.raises(OptionError, match=message):
                kernel.check(**options)
            with pytest.raises(OptionError, match=message):
                kernel.inputs(**options)


def test_arrays_and_sizes_together_are_refused(kernel: Any) -> None:
    arrays = [np.zeros((16, 16), np.float32) for _ in range(3)]
    for door in (kernel.check, kernel.bench):
        with pytest.raises(OptionError, match="sizes are read from the arrays that were given"):
            door(*arrays, sizes={"M": 3})


@pytest.mark.parametrize("seconds", [-1.0, 0, math.nan, math.inf])
def test_the_timing_itself_refuses(seconds: float) -> None:
    with pytest.raises(OptionError, match="seconds cannot be"):
        measure([Contender("a", lambda: None)], seconds=seconds)


def test_numbers_of_numpy_are_numbers(kernel: Any) -> None:
    run = kernel.bench(rounds=np.int64(5), seconds=np.float32(0.02), seed=np.uint8(3))
    assert run.seconds
    assert kernel.check(seed=np.int64(3)).ok


def test_sizes_that_no_memory_holds_are_told() -> None:
    for size in (2**30, 2**31 - 1):
        kernel = add_kernel.using(target="cpu")(size, size, dtype="float32")
        for door in (kernel.check, kernel.inputs):
            with pytest.raises(ResourceError, match="A takes more memory than there is"):
                door()


def test_a_stage_that_is_no_name_is_refused(kernel: Any) -> None:
    with pytest.raises(OptionError, match="has no stage 3"):
        kernel.stage(3)
