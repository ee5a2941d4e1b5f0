"""Stages and orders that a kernel gives a pipelined loop itself: obeyed, or refused with what would work."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import ScheduleError

BODY = """
S = T.alloc_shared((8, 64), "float32")
R = T.alloc_shared((8, 64), "float32")
F = T.alloc_fragment((8, 64), "float32")
T.clear(F)
for k in T.Pipelined({head}):
    first = k * 8
    T.copy(A[first, 0], S)
    T.copy(A[(7 - k) * 8, 0], R)
    for i, j in T.Parallel(8, 64):
        F[i, j] = F[i, j] + S[i, j] * (k + 1) - R[i, j]
T.copy(F, O[0:8, :])
"""


@pytest.mark.parametrize(
    ("head", "stages", "text"),
    [
        ("8, stage=[0, 0, 1]", 2, "if k + 1 < 8:"),
        ("8, stage=[0, 0, 2], order=[0, 1, 2]", 3, "if k + 2 < 8:"),
        ("8, stage=[0, 1, 1], order=[2, 0, 1]", 2, "if k + 1 < 8:"),
        ("8, stage=[0, 0, 1], order=[0, 2, 1]", 2, "if k + 1 < 8:"),
        ("8, num_stages=3, stage=[0, 0, 1]", 3, "if k + 2 < 8:"),
        ("8, stage=[0, 0, 0]", 1, "for k in T.serial(8):"),
        ("8, order=[], stage=[], num_stages=2", 2, "if k + 1 < 8:"),
    ],
)
def test_what_a_ring_can_do_is_obeyed(head: str, stages: int, text: str) -> None:
    a = np.random.default_rng(0).integers(-4, 5, (64, 64)).astype(np.float32)
    found = everywhere(BODY.format(head=head), A=a)
    parts = a.reshape(8, 8, 64)
    wanted = sum((k + 1) * parts[k] - parts[7 - k] for k in range(8))
    np.testing.assert_array_equal(found["O"][:8], wanted)
    kernel = kernel_of(BODY.format(head=head)).using(target="cuda:sm_80")()
    assert f"plan=T.Plan({stages})" in kernel.stage("bounded")
    assert text in kernel.stage("pipelined")


def test_a_copy_that_is_issued_last_stands_behind_the_work() -> None:
    kernel = kernel_of(BODY.format(head="8, stage=[0, 0, 1], order=[0, 2, 1]")).using(target="cuda:sm_80")()
    assert "at_stage=T.Stage(0, can_be_async=True, last=True)" in kernel.stage("bounded")
    lines = [line.strip() for line in kernel.stage("pipelined").splitlines()]
    loop = lines[lines.index("for k in T.serial(8):") :]
    moved = [k for k, line in enumerate(loop) if line.startswith("T.copy(A[")]
    work = next(k for k, line in enumerate(loop) if line.startswith("for i, j in T.Parallel"))
    assert moved[0] < work < moved[1]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("8, order=[0, 1, 2]", "order= of T.Pipelined says nothing without stage="),
        ("8, stage=[0, 1]", "stage= of T.Pipelined has 2 entries, and the body 3 statements"),
        ("8, stage=[0, 0, 1], order=[0, 1, 1]", r"order= of T.Pipelined is \[0, 1, 1\]"),
        ("8, stage=[1, 1, 0]", "a statement at stage 0 of 2 is more than this version has"),
        ("8, stage=[0, 1, 2]", "a statement at stage 1 of 3 is more than this version has"),
        (
            "8, stage=[0, 0, 1], order=[1, 0, 2]",
            r"cannot issue the statements of a step in the order \[1, 0, 2\]",
        ),
        ("8, stage=3", "stage= of T.Pipelined is a list of whole numbers"),
    ],
)
def test_what_a_ring_cannot_do_is_refused(head: str, said: str) -> None:
    kernel = kernel_of(BODY.format(head=head))
    with pytest.raises(ScheduleError, match=said):
        kernel()


def test_a_copy_that_cannot_run_ahead_is_refused() -> None:
    body = """
        S = T.alloc_shared((8, 64), "float32")
        for k in T.Pipelined(8, stage=[0, 1]):
            T.copy(O[k * 8, 0], S)
            T.copy(S, O[(7 - k) * 8, 0])
        """
    kernel = kernel_of(body).using(target="cuda:sm_80")()
    with pytest.raises(
        ScheduleError, match="the copy into S cannot run ahead, as stage 0 says: O is written"
    ):
        kernel.stage("bounded")
