"""A kernel's share of a longer program, and what making it faster brings at most."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tests.workbench.bench_kernels import functions
from tilebench.errors import ArgumentError, OptionError
from tilebench.kernel.measuring.within import KernelShare, share_within


@pytest.fixture(scope="module")
def double() -> Any:
    made: Any = functions()["double"]
    return made.using(target="cpu")


def test_the_share_and_amdahls_law() -> None:
    share = KernelShare("gemm", (1.0,) * 9, (0.5,) * 9, 3, "made up")
    assert share.part == (0.5, 0.5, 0.5)
    assert share.speedup(2) == pytest.approx((4 / 3,) * 3)
    assert share.speedup() == (2.0, 2.0, 2.0)
    assert "gemm is 50 % (50 to 50 %) of 1.00 s, in 3 launches a run." in str(share)
    assert "at most 2.00 times" in str(share)


def test_the_range_is_what_the_spread_allows() -> None:
    whole = tuple(1.0 + k / 100 for k in range(-4, 5))
    inside = tuple(0.5 + k / 100 for k in range(-4, 5))
    low, mid, high = KernelShare("gemm", whole, inside, 1, "").part
    # Nine runs: the interval of a median leaves the least and the greatest one out.
    assert (low, mid, high) == pytest.approx((0.47 / 1.03, 0.5, 0.53 / 0.97))
    assert KernelShare("gemm", (1.0,) * 9, (1.2,) * 9, 1, "").part == (1.0, 1.0, 1.0)


def test_a_program_that_does_other_work_too(double: Any) -> None:
    kernel = double(100_000)
    a, b = np.ones(100_000, np.float32), np.empty(100_000, np.float32)

    def program() -> None:
        kernel(a, b)
        kernel(b, a)
        a[...] = 1
        time.sleep(0.02)

    share = share_within(kernel, program, runs=5)
    assert share.launches == 2
    low, mid, high = share.part
    assert 0 < low <= mid <= high < 0.9
    assert min(share.whole) > 0.02
    assert min(share.whole) > max(0.0, min(share.inside))
    # The door that launches go through is as it was.
    kernel(a, b)
    assert share_within(kernel, program, runs=5).launches == 2


def test_what_cannot_be_a_share_is_told(double: Any) -> None:
    kernel = double(100)
    with pytest.raises(ArgumentError, match="the program does not launch double"):
        share_within(kernel, functions)
    with pytest.raises(OptionError):
        share_within(kernel, functions, runs=2)
