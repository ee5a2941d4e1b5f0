"""Stages and orders that a kernel gives a pipelined loop itself: obeyed, or refused with what would work."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import IRError, ScheduleError
from tilebench.kernel.edited import compile_from

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
        ("8, stage=[-1, 0, 1]", "a stage of T.Pipelined is -1"),
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


# Two tiles come in, one is made of them, and two statements use that, at stages of their own.
CHAIN = """
S = T.alloc_shared((8, 64), "float32")
R = T.alloc_shared((8, 64), "float32")
W = T.alloc_shared((8, 64), "float32")
F = T.alloc_fragment((8, 64), "float32")
G = T.alloc_fragment((8, 64), "float32")
T.clear(F)
T.clear(G)
for k in T.Pipelined({head}):
    first = k * 8
    T.copy(A[first, 0], S)
    T.copy(A[(7 - k) * 8, 0], R)
    for i, j in T.Parallel(8, 64):
        W[i, j] = S[7 - i, j] * (k + 1) - R[i, 63 - j]
    for i, j in T.Parallel(8, 64):
        F[i, j] = F[i, j] * 2 + W[i, 63 - j]
    for i, j in T.Parallel(8, 64):
        G[i, j] = G[i, j] + W[7 - i, j] * R[i, j]
T.copy(F, O[0:8, :])
T.copy(G, O[8:16, :])
"""


@pytest.mark.parametrize("count", ["8", "1", "2", "0", "N[0]"])
@pytest.mark.parametrize(
    "lists",
    [
        "stage=[0, 0, 1, 2, 2]",
        "stage=[0, 1, 2, 3, 3]",
        "stage=[0, 0, 1, 2, 3]",
        "stage=[0, 0, 1, 3, 2]",
        "stage=[0, 0, 0, 1, 1]",
        "stage=[0, 0, 1, 1, 2]",
        "stage=[1, 0, 2, 2, 4]",
        "stage=[0, 0, 1, 2, 2], order=[3, 4, 2, 1, 0]",
        "stage=[0, 0, 1, 2, 2], order=[4, 0, 3, 2, 1]",
        "stage=[0, 0, 2, 2, 2], order=[1, 0, 2, 4, 3]",
        "stage=[0, 1, 1, 2, 2], order=[4, 0, 1, 3, 2]",
    ],
)
def test_every_statement_has_the_stage_and_place_that_it_was_given(lists: str, count: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (64, 64)).astype(np.float32)
    head = 'A: T.Tensor((64, 64), "float32"), N: T.Tensor((1,), "int32"), O: T.Tensor((64, 64), "float32")'
    given = {"A": a, "N": np.array([5], np.int32)}
    found = everywhere(CHAIN.format(head=f"{count}, {lists}"), head, **given)
    plain = everywhere(CHAIN.format(head=count), head, **given)
    np.testing.assert_array_equal(found["O"], plain["O"])


def test_stages_show_in_the_plan_and_in_the_ring() -> None:
    lists = "8, stage=[0, 0, 1, 2, 2], order=[3, 4, 2, 1, 0]"
    kernel = kernel_of(CHAIN.format(head=lists)).using(target="cuda:sm_80")()
    bounded = kernel.stage("bounded")
    assert "plan=T.Plan(3)" in bounded
    assert [line.strip() for line in bounded.splitlines() if "T.stage(" in line] == [
        "with T.stage(0, order=3):", "with T.stage(0, order=4):", "with T.stage(1, order=2):",
        "with T.stage(2, order=1):", "with T.stage(2):",
    ]  # fmt: skip
    lines = [line.strip() for line in kernel.stage("pipelined").splitlines()]
    assert [line.split("versions=")[1] for line in lines if "versions=" in line] == ["2)", "3)", "2)"]
    step = lines[lines.index("for k in T.serial(8):") + 1 :]
    assert step[0].startswith('T.wait("k_ahead", by=')
    stores = [line for line in step if " = " in line and "[" in line.split(" = ")[0]]
    assert [line[0] for line in stores] == ["G", "F", "W"]
    assert [line.split("], ")[1][0] for line in step if line.startswith("T.copy(A")] == ["S", "R"]


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ("stage=[1, 1, 0, 1, 1]", "S is filled at stage 1 only"),
        ("stage=[0, 0, 1, 0, 2]", "W is filled at stage 1 only"),
        ("stage=[0, 0, 0, 1, 1], order=[0, 2, 1, 3, 4]", "R is used by what stands before it, and order="),
    ],
)
def test_stages_that_cannot_be_had_are_refused_at_the_statement(lists: str, said: str) -> None:
    kernel = kernel_of(CHAIN.format(head=f"8, {lists}")).using(target="cuda:sm_80")()
    with pytest.raises(ScheduleError, match=said) as told:
        kernel.stage("bounded")
    assert told.value.place is not None


def test_what_keeps_its_value_has_one_stage() -> None:
    body = CHAIN.replace("G[i, j] = G[i, j] + W", "F[i, j] = F[i, j] + W")
    kernel = kernel_of(body.format(head="8, stage=[0, 0, 1, 2, 3]")).using(target="cuda:sm_80")()
    said = "F, which has stage 2 too, keeps what it holds for the next iteration"
    with pytest.raises(ScheduleError, match=said):
        kernel.stage("bounded")


def test_edited_stages_are_obeyed_or_refused() -> None:
    kernel = kernel_of(CHAIN.format(head="8, stage=[0, 0, 1, 2, 2]")).using(target="cuda:sm_80")()
    text = kernel.stage("laid_out")
    later = compile_from("laid_out", text.replace("T.stage(2, order=4)", "T.stage(1, order=4)"), like=kernel)
    assert later.stage("threaded") != kernel.stage("threaded")
    for old, new, said in [
        ("T.Plan(3)", "T.Plan(2)", "its statements have 3 stages, and its plan 2"),
        ("T.stage(1, order=2)", "T.stage(0, order=2)", "the copy into S cannot go on by itself here"),
        ("T.stage(2, order=3)", "T.stage(0, order=3)", "W is filled at stage 1 only"),
    ]:
        with pytest.raises(IRError, match=said):
            compile_from("laid_out", text.replace(old, new), like=kernel).stage("pipelined")
