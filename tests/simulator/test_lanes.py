# ruff: noqa: E501 -- stages and CUDA text are one statement a line
"""What the simulator of lanes finds: each wrong program at its statement, and right ones run."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilebench.errors import InternalError
from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.simulator import SimulationError, run_threaded


def run(body: str, blocks: Any = None, **arrays: Any) -> None:
    names = {"float32": "T.float32", "int32": "T.int32", "float16": "T.float16", "bfloat16": "T.bfloat16"}
    params = ", ".join(f"{n}: T.Tensor({a.shape}, {names[a.dtype.name]})" for n, a in arrays.items())
    lines = "\n".join("        " + each for each in body.strip("\n").splitlines())
    text = f"""@T.prim_func
def kernel({params}):
    with T.Kernel(2, threads=64, shared_bytes=1024) as bx:
        tid: T.int32 = T.thread_id()
{lines}
"""
    run_threaded(parse_function(text, registry()), arrays, blocks, warp=32)


def floats(n: int = 64) -> Any:
    return np.arange(n, dtype=np.float32)


def test_a_race_is_found_and_a_barrier_mends_it() -> None:
    race = """
S = T.alloc_shared((64,), T.float32, offset=0)
S[tid] = A[tid]
C[bx, tid] = S[63 - tid]
"""
    a, c = floats(), np.zeros((2, 64), np.float32)
    with pytest.raises(SimulationError, match="a read of S by thread 0, and thread 63 wrote it") as caught:
        run(race, A=a, C=c)
    assert caught.value.place is not None
    assert caught.value.place.line == 7
    run(race.replace("C[bx", "T.sync_threads()\nC[bx"), A=a, C=c)
    assert np.array_equal(c, np.stack([a[::-1]] * 2))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            "S = T.alloc_shared((64,), T.float32, offset=0)\nS[tid // 2] = A[tid]",
            "threads 0 and 1 write one element of S",
        ),
        (
            "S = T.alloc_shared((64,), T.float32, offset=0)\nA[tid] = S[tid]",
            "read before anything was written",
        ),
        ("A[tid] = A[tid + 1]", "A is accessed outside: index 64"),
        ("A[tid - 1] = T.float32(0)", "index -1 in dimension 0 of extent 64"),
        ("x = T.alloc_local((4,), T.float32)\nx[4] = T.float32(0)", "x is accessed outside"),
        ("x = T.alloc_local((2,), T.float32)\nT.vector_load(x, A[tid : tid + 2])", "outside|not aligned"),
        ("if tid < 3:\n    T.sync_threads()", "not all threads of a warp reach"),
        ("if tid < 3:\n    A[tid] = T.shfl_xor(A[tid], 1)", "not all lanes of a warp"),
        ("A[tid // 2] = T.float32(1)", "threads 0 and 1 write one element of A"),
        ("x: T.int32 = (tid + 1) * 1000000000 * 4", "int32 overflows"),
    ],
)
def test_what_a_gpu_must_not_do(body: str, what: str) -> None:
    with pytest.raises(SimulationError, match=what):
        run(body, blocks=[(0, 0, 0)], A=floats())


def test_bits_and_floats_are_no_indices() -> None:
    """Their integers wrap, as on a card; an index that leaves its range is a fault of a pass."""
    c = np.zeros((2, 64), np.int32)
    run("C[bx, tid] = (tid + 1) << 30", C=c)
    assert c[0, :4].tolist() == [1 << 30, -(1 << 31), -(1 << 30), 0]
    run("C[bx, tid] = T.reinterpret(T.float32(3), T.int32) * 2 + tid", C=c)
    assert c[0, :2].tolist() == [-0x7F800000, -0x7F7FFFFF]


def test_guards_stop_what_stands_behind_them() -> None:
    a, c = floats(), np.zeros((2, 64), np.float32)
    run(
        "C[bx, tid] = T.if_then_else(tid + 1 < 64 and A[tid + 1] > T.float32(5), A[tid + 1], T.float32(-1))",
        A=a,
        C=c,
    )
    wanted = np.append(a[1:], -1)
    wanted[wanted <= 5] = -1
    assert np.array_equal(c[0], wanted)


def test_shuffles_stay_in_their_warp_and_loops_have_bounds_of_their_own() -> None:
    a, c = floats(), np.zeros((2, 64), np.float32)
    run("C[bx, tid] = T.shfl_xor(A[tid], 16)", A=a, C=c)
    assert np.array_equal(c[1], a[np.arange(64) ^ 16])
    body = """
n = T.alloc_var(T.float32, init=T.float32(0))
for k in T.serial(tid % 5, start=1):
    n = n + T.float32(1)
C[bx, tid] = n
"""
    run(body, C=c)
    assert np.array_equal(c[0], np.maximum(np.arange(64) % 5 - 1, 0))


def test_narrow_floats_round_after_each_operation() -> None:
    a = np.full((64,), 2049, np.float32).astype(np.float16)
    c = np.zeros((2, 64), np.float16)
    run("C[bx, tid] = A[tid] + T.float16(1) + T.float16(1)", A=a, C=c)
    # 2048 + 1 ties to even, twice; one rounding at the end would give 2050.
    assert float(c[0, 0]) == 2048
    b = np.ones((64,), ml_dtypes.bfloat16)
    d = np.zeros((2, 64), np.dtype(ml_dtypes.bfloat16))
    run("D[bx, tid] = B[tid] + T.bfloat16(0.00390625)", B=b, D=d)
    assert float(d[0, 0]) == 1.0


def test_chosen_blocks_and_arrays_that_do_not_fit() -> None:
    c = np.zeros((2, 64), np.float32)
    run("C[bx, tid] = T.float32(1)", blocks=[(1, 0, 0)], C=c)
    assert c.sum(axis=1).tolist() == [0, 64]
    function = parse_function(
        "@T.prim_func\ndef k(A: T.Tensor((4,), T.float32)):\n    with T.Kernel(1, threads=32) as bx:\n        pass\n",
        registry(),
    )
    with pytest.raises(InternalError, match="the array A is missing"):
        run_threaded(function, {"A": np.zeros(5, np.float32)}, warp=32)


def test_a_variable_of_some_threads_starts_anew_in_each_turn() -> None:
    a, c = floats(), np.zeros((2, 64), np.float32)
    body = """
if tid < 40:
    for k in T.serial(2):
        n = T.alloc_var(T.float32, init=T.float32(0))
        n = n + A[tid]
        C[k, tid] = n
"""
    run(body, blocks=[(0, 0, 0)], A=a, C=c)
    assert np.array_equal(c, np.stack([np.where(np.arange(64) < 40, a, 0)] * 2))


def test_two_branches_have_buffers_of_one_name() -> None:
    """As in C, a name ends with its block: another one of that name may be longer, or of another dtype."""
    body = """
if tid < 32:
    x = T.alloc_local((2,), T.float32)
    x[1] = A[tid]
    A[tid] = x[1] + x[1]
if tid >= 32:
    x = T.alloc_local((4,), T.float32)
    x[3] = A[tid]
    A[tid] = x[3]
if tid >= 48:
    x = T.alloc_local((4,), T.int32)
    x[3] = 7
    A[tid] = T.cast(x[3], T.float32) / T.float32(2)
"""
    a = floats()
    want = np.concatenate([a[:32] * 2, a[32:48], np.full(16, 3.5, np.float32)])
    run(body, [(0, 0, 0)], A=a)
    assert np.array_equal(a, want)


def test_integers_divide_as_python_does_and_a_nan_loses_a_maximum() -> None:
    a, c, d = np.arange(-32, 32, dtype=np.int32), np.zeros((2, 64), np.int32), np.zeros((2, 64), np.int32)
    run("C[bx, tid] = A[tid] // 5\nD[bx, tid] = A[tid] % 5", A=a, C=c, D=d)
    assert np.array_equal(c[0], a // 5)
    assert np.array_equal(d[0], a % 5)
    b, e = np.where(floats() < 32, np.nan, floats()).astype(np.float32), np.zeros((2, 64), np.float32)
    run("E[bx, tid] = T.max(B[tid], T.float32(40))", B=b, E=e)
    assert np.array_equal(e[0], np.fmax(b, 40))
