"""Votes and matches of a warp: the same on every road, and one instruction on a card."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError
from tilebench.reference import run_reference
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

VOTES = """
tx = T.get_thread_binding()
O[tx, 0] = T.cast(T.ballot(A[tx] > 1), "uint32")
O[tx, 1] = T.cast(T.any_sync(A[tx] > 3) + 2 * T.all_sync(A[tx] > -3), "uint32")
if tx // 32 != 1:
    O[tx, 2] = T.cast(T.ballot(A[tx] == 2), "uint32")
"""


def _bits(holds: Any) -> Any:
    """A number for each warp, in each of its threads."""
    words = (holds.reshape(-1, 32).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1)
    return np.repeat(words, 32).astype(np.uint32)


def test_votes() -> None:
    a = np.random.default_rng(0).integers(-4, 5, 128).astype(np.int32)
    a[:32] = np.abs(a[:32]) % 3
    head = 'A: T.Tensor((128,), "int32"), O: T.Tensor((128, 3), "uint32")'
    out = everywhere(VOTES, head, A=a, O=np.zeros((128, 3), np.uint32))["O"]
    np.testing.assert_array_equal(out[:, 0], _bits(a > 1))
    any_, all_ = _bits(a > 3) != 0, _bits(a > -3) == 0xFFFFFFFF
    assert any_.any() and not any_.all() and all_.any() and not all_.all()  # noqa: PT018
    np.testing.assert_array_equal(out[:, 1], any_ + 2 * all_)
    np.testing.assert_array_equal(out[:, 2], np.where(np.arange(128) // 32 == 1, 0, _bits(a == 2)))


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
     "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_matches(dtype: str) -> None:
    """Of equal numbers: zeros of both signs are equal, and a NaN is not even itself."""
    body = """
    tx = T.get_thread_binding()
    O[tx, 0] = T.match_any_sync(A[tx])
    O[tx, 1] = T.match_all_sync(A[tx])
    """
    kind = T.dtype(dtype).numpy
    a = np.random.default_rng(1).integers(0, 5, 64).astype(kind)
    a[32:] = 3
    if T.dtype(dtype).numpy.kind == "f" or "float" in dtype:
        a[[1, 5, 9]] = [-0.0, 0.0, np.nan]
    head = f'A: T.Tensor((64,), "{dtype}"), O: T.Tensor((64, 2), "uint32")'
    out = everywhere(body, head, threads=64, A=a, O=np.zeros((64, 2), np.uint32))["O"]
    wide = a.astype(np.float64).reshape(2, 32)
    equal = wide[:, :, None] == wide[:, None, :]
    bits = (equal.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32).reshape(-1)
    np.testing.assert_array_equal(out[:, 0], bits)
    np.testing.assert_array_equal(out[:, 1], np.where(np.arange(64) < 32, 0, 0xFFFFFFFF))
    for arch in ("sm_80", "sm_90a"):
        text = kernel_of(body, head, 64).using(target=f"cuda:{arch}")().stage("cuda")
        compile_cuda(text, machine_of(arch))
        assert "__match_any_sync" in text
        assert "shfl" not in text


def test_a_vote_is_one_instruction() -> None:
    head = 'A: T.Tensor((128,), "int32"), O: T.Tensor((128, 3), "uint32")'
    text = kernel_of(VOTES, head).using(target="cuda:sm_80")().stage("cuda")
    assert text.count("__ballot_sync(0xffffffffu, ") == 4
    assert "shfl" not in text
    compile_cuda(text, machine_of("sm_80"))


def test_threads_in_two_dimensions_and_a_loop() -> None:
    body = """
    tx = T.get_thread_binding(0)
    ty = T.get_thread_binding(1)
    seen = T.alloc_var("uint32")
    for k in T.serial(3):
        seen = seen + T.cast(T.ballot((tx + ty) % 3 == k), "uint32") * (k + 1)
    O[ty, tx] = seen
    """
    out = everywhere(body, HEAD_2D, threads=(16, 8))["O"]  # type: ignore[arg-type]
    sums = np.add.outer(np.arange(8), np.arange(16)).reshape(-1) % 3
    right = sum(_bits(sums == k).astype(np.uint64) * (k + 1) for k in range(3)).astype(np.uint32)
    np.testing.assert_array_equal(out.reshape(-1), right)


HEAD_2D = 'O: T.Tensor((8, 16), "uint32")'


def test_part_of_a_warp_does_not_vote() -> None:
    body = """
    tx = T.get_thread_binding()
    if tx < 40:
        O[tx] = T.cast(T.ballot(tx > 3), "uint32")
    """
    with pytest.raises(TileError, match="exchange values under a condition that differs among them"):
        kernel_of(body, 'O: T.Tensor((128,), "uint32")')()


def _by_warps(x: Any, turn: Any) -> Any:
    """What a loop over single warps leaves: `turn` gives the next values of a warp, None at its end."""
    out = x.copy().reshape(-1, 32)
    for row in out:
        while (new := turn(row)) is not None:
            row[:] = new
    return out.reshape(-1)


def test_a_loop_that_goes_on_while_the_warp_votes_for_it() -> None:
    body = """
    tx = T.get_thread_binding()
    x = T.alloc_var("int32")
    x = A[tx]
    while T.any_sync(x > 5):
        x = T.if_then_else(x > 5, x - 3, x // 2)
    O[tx] = x
    """
    a = np.random.default_rng(2).integers(0, 40, 128).astype(np.int32)
    a[32:64] = 4
    head = 'A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")'
    out = everywhere(body, head, A=a, O=np.zeros(128, np.int32))["O"]

    def turn(row: Any) -> Any:
        return np.where(row > 5, row - 3, row // 2) if (row > 5).any() else None

    np.testing.assert_array_equal(out, _by_warps(a, turn))


def test_a_warp_leaves_a_loop_in_which_all_exchange() -> None:
    """Under a condition that its threads share, which decides who goes in; a shuffle, a vote and a break."""
    body = """
    tx = T.get_thread_binding()
    x = T.alloc_var("int32")
    x = A[tx]
    some = T.any_sync(x == 7)
    if some != 0:
        for k in T.serial(20):
            y = T.shfl_xor(x, 1)
            if T.all_sync(x < 12):
                break
            x = x // 2 + y // 3
    O[tx] = x
    """
    a = np.random.default_rng(3).integers(0, 900, 128).astype(np.int32)
    a[[3, 70]] = 7
    head = 'A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")'
    out = everywhere(body, head, A=a, O=np.zeros(128, np.int32))["O"]
    right = a.copy().reshape(-1, 32)
    for number in (0, 2):
        row = right[number].copy()
        for _ in range(20):
            if (row < 12).all():
                break
            row = row // 2 + row[np.arange(32) ^ 1] // 3
        right[number] = row
    np.testing.assert_array_equal(out, right.reshape(-1))


@pytest.mark.parametrize(
    "loop", ["while x > 5:", "while T.any_sync(x > 5) + x > 6:"], ids=["its own value", "a vote and its own"]
)
def test_threads_of_a_warp_that_leave_at_different_times_do_not_vote(loop: str) -> None:
    body = f"""
    tx = T.get_thread_binding()
    x = T.alloc_var("int32")
    x = tx
    {loop}
        x = x - 1 - T.any_sync(x > 7)
    O[tx] = x
    """
    with pytest.raises(TileError) as caught:
        kernel_of(body, 'O: T.Tensor((128,), "int32")')()
    assert caught.value.message in (
        "threads run this loop differently (by its condition), and all of them have to take part inside",
        "threads of a warp exchange values under a condition that differs among them",
    )


def test_those_whom_a_condition_leaves_out_have_told_nothing() -> None:
    """Nothing that was never written is read, also of warps that do not come."""
    body = """
    tx = T.get_thread_binding()
    if tx < 64:
        O[tx] = T.cast(T.ballot(tx % 3 == 1), "uint32")
    """
    function = kernel_of(body, 'O: T.Tensor((128,), "uint32")')().calls.traced.function
    out = run_reference(function, {"O": np.zeros(128, np.uint32)}, uninitialised="raise")["O"]
    np.testing.assert_array_equal(out[:64], _bits(np.arange(64) % 3 == 1))
    assert not out[64:].any()
