"""Kernels of very many statements on the road to a card: what is compared with everything has an end."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.bench.long_kernels import FORMS, long_kernel
from tests.roads import everywhere, jitted
from tilebench.ir import walk
from tilebench.language.lowered.threads import SyncThreads
from tilebench.passes.threaded.insert_barriers import MOST_PENDING

N = 2 * MOST_PENDING + 100
A, OUT = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)


def barriers(body: str) -> int:
    kernel = jitted(body, A=A, O=OUT).using(target="cuda:sm_80")()
    kernel.stage("cuda")
    return sum(isinstance(each, SyncThreads) for each in walk(kernel.compilation.functions["threaded"]))


def test_accesses_that_are_told_apart_have_an_end() -> None:
    few = "\n".join(f"O[{k}] = A[{k}] * 2.0" for k in range(MOST_PENDING))
    many = "\n".join(f"O[{k}] = A[{k}] * 2.0" for k in range(N))
    assert barriers(few) == 0
    assert 0 < barriers(many) < 8
    assert np.array_equal(everywhere(many, A=A, O=OUT)["O"], A * 2)


def test_a_hazard_with_what_is_no_longer_told_apart_gets_its_barrier() -> None:
    body = "s = T.alloc_shared((640,), 'float32')\n"
    body += "\n".join(f"s[{k}] = A[{k}]" for k in range(N))
    body += "\nfor i in T.Parallel(64):\n    O[i] = s[63 - i]\n"
    after = everywhere(body, A=A, O=OUT)["O"]
    assert np.array_equal(after[:64], A[63::-1])


ROADS = {
    "cuda:sm_80": ("tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded", "cuda"),
    "cpu:x86-64-v4": ("tile", "scheduled", "bounded", "loops", "llvm"),
}


def calls_of(form: str, times: int, target: str) -> dict[str, int]:
    """Calls of functions for each stage: a clock that nothing else on the machine moves."""
    kernel = long_kernel(form, times).using(target=target)()
    found: dict[str, int] = {}
    stage = ""

    def called(frame: object, event: str, argument: object) -> None:
        found[stage] += event in ("call", "c_call")

    for stage in ROADS[target]:
        found[stage] = 0
        sys.setprofile(called)
        try:
            kernel.stage(stage)
        finally:
            sys.setprofile(None)
    return found


@pytest.mark.parametrize("target", ROADS)
@pytest.mark.parametrize("form", FORMS)
def test_compiling_takes_as_long_as_the_kernel_is(form: str, target: str) -> None:
    """Twice the length, twice the calls of each stage; what goes with the square takes four times as many."""
    calls_of(form, 1, target)  # what a process does once
    short, long = (calls_of(form, times, target) for times in ((2, 4) if form == "nest" else (4, 8)))
    growth = {stage: long[stage] / max(short[stage], 1000) for stage in short}
    assert max(growth.values()) < 2.4, growth
