# ruff: noqa: E501 -- stages and CUDA text are one statement a line
"""Barriers: where they stand, why, that one less is a race, and where they cannot stand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.lowering import gemm_text, lower, random
from tests.simulated import run_threaded
from tilebench.errors import IRError
from tilebench.ir import Const, Expr, Var, parse_function, print_function
from tilebench.language.words import registry
from tilebench.layout import Fragment, spread
from tilebench.passes.analysis.accesses import versions_differ
from tilebench.passes.context import Context
from tilebench.passes.threaded.insert_barriers import insert_barriers
from tilebench.simulator import SimulationError
from tilebench.targets.cuda.machines import machine_of

MAP = spread((32, 32), 64, 4, 32)
TURNED = spread((32, 32), 64, 1, 32)


def text_of(body: str, more: str = "") -> str:
    return f"""@T.prim_func
def kernel(A: T.Tensor((64, 32), T.float32), C: T.Tensor((64, 32), T.float32)):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((32, 32), T.float32, layout=T.SharedLayout((32, 32), (32, 1)){more})
{body}"""


def barriers(text: str) -> list[str]:
    """The reasons of the barriers, in order."""
    made = insert_barriers(parse_function(text, registry()), Context(machine_of("sm_80")))
    return re.findall(r'T\.sync_threads\(why="([^"]*)"\)', print_function(made).text)


def test_one_between_write_and_read_and_none_without_a_clash() -> None:
    load = f"        T.copy(A[0 : 32, 0 : 32], S, map={MAP})\n"
    use = f"        T.copy(S, C[0 : 32, 0 : 32], map={TURNED})\n"
    assert barriers(text_of(load + use)) == ["S: read after write"]
    again = f"        T.copy(S, C[32 : 64, 0 : 32], map={TURNED})\n"
    assert barriers(text_of(load + use + again)) == ["S: read after write"]
    assert barriers(text_of(load + use + use)) == ["S: read after write", "C: write after write"]
    assert barriers(text_of(load + use + load)) == ["S: read after write", "S: write after read"]
    halves = f"        T.copy(A[0 : 16, 0 : 32], S[0 : 16, 0 : 32], map={spread((16, 32), 64, 4, 32)})\n"
    other = f"        T.copy(S[16 : 32, 0 : 32], C[0 : 16, 0 : 32], map={spread((16, 32), 64, 4, 32)})\n"
    assert barriers(text_of(halves + other)) == []


def test_a_loop_is_walked_with_its_earlier_steps() -> None:
    body = f"""        for k in T.serial(2):
            T.copy(A[k * 32 : k * 32 + 32, 0 : 32], S, map={MAP})
            T.copy(S, C[k * 32 : k * 32 + 32, 0 : 32], map={TURNED})
"""
    assert sorted(barriers(text_of(body))) == ["S: read after write", "S: write after read"]


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_ring_takes_one_barrier_a_step_and_without_it_there_is_a_race(stages: int) -> None:
    text = gemm_text(32, 32, 128, stages=stages)
    function, _ = lower(text)
    shown = print_function(function).text
    assert shown.count("T.sync_threads") == 1
    bare = "\n".join(each for each in shown.splitlines() if "T.sync_threads" not in each) + "\n"
    arrays = {
        "A": random((32, 128), np.float32), "B": random((128, 32), np.float32), "C": np.zeros((32, 32), np.float32)
    }  # fmt: skip
    run_threaded(function, arrays, warp=32)
    with pytest.raises(SimulationError, match="race in shared memory"):
        run_threaded(parse_function(bare, registry()), arrays, warp=32)


def test_global_memory_that_is_written_and_read_again() -> None:
    body = f"""        T.copy(A[0 : 32, 0 : 32], C[0 : 32, 0 : 32], map={MAP})
        T.copy(C[0 : 32, 0 : 32], C[32 : 64, 0 : 32], map={TURNED})
"""
    assert barriers(text_of(body)) == ["C: read after write"]


def test_bytes_that_two_buffers_share() -> None:
    body = f"""        T.copy(A[0 : 32, 0 : 32], S, map={MAP})
        T.copy(S, C[0 : 32, 0 : 32], map={MAP})
        R = T.alloc_shared((32, 32), T.float32, layout=T.SharedLayout((32, 32), (32, 1)))
        T.copy(A[32 : 64, 0 : 32], R, map={MAP})
        T.copy(R, C[32 : 64, 0 : 32], map={MAP})
"""
    function, context = lower(text_of(body))
    shown = print_function(function).text
    assert "shared_bytes=4096" in shown
    assert shown.count("offset=0") == 2
    assert 'T.sync_threads(why="R takes the bytes of S")' in shown
    assert next(each.pass_name for each in context.remarks if each.kind == "applied") == "map_shared"


def test_a_condition_that_differs_from_thread_to_thread_is_refused() -> None:
    made, test = "        x = T.alloc_local((1,), T.int32)\n", "        if x[0] > 0:\n"
    flag = f"{made}        x[0] = T.thread_id()\n{test}"
    inner = f"""            T.copy(A[0 : 32, 0 : 32], S, map={MAP})
            T.copy(S, C[0 : 32, 0 : 32], map={TURNED})
"""
    with pytest.raises(IRError, match=r"differs from thread to thread \(by x\)"):
        barriers(text_of(flag + inner))
    # The block's own statements give the arrays of all its threads one value.
    for uniform in ("        if bx == 0:\n", f"{made}        x[0] = bx\n{test}"):
        assert barriers(text_of(uniform + inner)) == ["S: read after write"]


def test_a_barrier_for_what_follows_stands_before_the_branch() -> None:
    body = f"""        T.copy(A[0 : 32, 0 : 32], S, map={MAP})
        if bx == 0:
            T.copy(S, C[0 : 32, 0 : 32], map={TURNED})
        T.copy(S, C[32 : 64, 0 : 32], map={TURNED})
"""
    made = insert_barriers(parse_function(text_of(body), registry()), Context(machine_of("sm_80")))
    lines = print_function(made).text.splitlines()
    at = next(k for k, each in enumerate(lines) if "sync_threads" in each)
    assert lines[at + 1].strip() == "if bx == 0:"
    assert sum("sync_threads" in each for each in lines) == 1


def test_boxes_that_share_a_row_are_in_each_others_way() -> None:
    upper = f"        T.copy(A[0 : 17, 0 : 32], S[0 : 17, 0 : 32], map={spread((17, 32), 64, 4, 32)})\n"
    lower_half = f"        T.copy(S[16 : 32, 0 : 32], C[0 : 16, 0 : 32], map={spread((16, 32), 64, 4, 32)})\n"
    assert barriers(text_of(upper + lower_half)) == ["S: read after write"]
    turned = f"        T.copy(S[0 : 17, 0 : 32], C[0 : 17, 0 : 32], map={spread((17, 32), 64, 4, 32)})\n"
    filled = f"        T.copy(A[0 : 16, 0 : 32], S[16 : 32, 0 : 32], map={spread((16, 32), 64, 4, 32)})\n"
    assert barriers(text_of(turned + filled)) == ["S: write after read"]


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("0", "1", True), ("1", "1", False), ("k % 3", "k % 3", False), ("(k + 1) % 3", "k % 3", True),
        ("(k + 3) % 3", "k % 3", False), ("(k + 4) % 3", "(k + 1) % 3", False), ("k % 3", "k % 2", False),
        ("0", "k % 3", False), ("k", "k + 1", True), ("k", "n", False), ("k % 3", "n % 3", False),
    ],
)  # fmt: skip
def test_versions_differ_only_where_it_is_proved(a: str, b: str, differ: bool) -> None:
    names = {"k": Var("k"), "n": Var("n")}
    found = [eval(text, {}, names) for text in (a, b)]  # noqa: S307
    one, two = (value if isinstance(value, Expr) else Const(value) for value in found)
    assert versions_differ(one, two) is versions_differ(two, one) is differ


def test_what_a_branch_touches_is_pending_behind_it() -> None:
    load = f"        T.copy(A[0 : 32, 0 : 32], S, map={MAP})\n"
    for branch in (
        "if bx == 0:\n            {}",
        "if bx == 1:\n            C[0, 0] = T.float32(0)\n        else:\n            {}",
    ):
        use = branch.format(f"T.copy(S, C[32 : 64, 0 : 32], map={TURNED})\n")
        assert barriers(text_of(f"        {use}{load}"))[-1:] == ["S: write after read"]


def test_a_name_of_what_differs_from_thread_to_thread_differs_too() -> None:
    inner = f"""            T.copy(A[0 : 32, 0 : 32], S, map={MAP})
            T.copy(S, C[0 : 32, 0 : 32], map={TURNED})
"""
    names = "        v: T.int32 = T.thread_id() % 2\n        w: T.int32 = v + 1\n        if w == 1:\n"
    with pytest.raises(IRError, match=r"differs from thread to thread \(by w\)"):
        barriers(text_of(names + inner))


def test_the_memory_that_a_reduction_works_in_is_free_again_behind_a_barrier() -> None:
    source = Fragment((2, 64), ((64, 1, 1),), ((2, 0, 1),))
    one = "        T.reduce_sum(x, y, by=T.Instr('shared', lanes=64), scratch=P)\n"
    head = f"""        P = T.alloc_shared((4,), T.float32, layout=T.SharedLayout((4,), (1,)))
        x = T.alloc_fragment((2, 64), T.float32, layout={source})
        y = T.alloc_fragment((2,), T.float32, layout={source.reduce(1)})
        T.fill(x, T.float32(1), map={source})
"""
    assert barriers(text_of(head + one)) == []
    assert barriers(text_of(head + one + one)) == ["P: write after read"]
    assert barriers(
        text_of(
            head + one + "        T.fill(P, T.float32(0), map=T.Fragment((4,), ((4, 0, 1), (16, -1, 0))))\n"
        )
    ) == ["P: write after read"]
