"""`T.atomic_add`, `atomic_max`, `atomic_min`: elements that threads and blocks change together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.passes.test_thread_groups import TARGETS, outputs
from tilebench.errors import LaunchError, TileError
from tilebench.ir import parse_function, print_function
from tilebench.language.words import registry
from tilebench.reference import check_function, run_reference
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

DTYPES = [
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
]
COMBINED = {"add": np.add, "max": np.fmax, "min": np.fmin}


@tilebench.jit
def columns(N, M, dtype, how):
    """Every block has rows of its own; all of them change the columns."""

    @T.prim_func
    def main(A: T.Tensor((N, M), dtype), B: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(N, 16), threads=64) as bx:
            tile = T.alloc_fragment((16, M), dtype)
            T.copy(A[bx * 16, 0], tile)
            for i, j in T.Parallel(16, M):
                if bx * 16 + i < N:
                    if how == "add":
                        T.atomic_add(B[j], tile[i, j], memory_order="relaxed")
                    elif how == "max":
                        T.atomic_max(B[j], tile[i, j])
                    else:
                        T.atomic_min(B[j], tile[i, j])

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", COMBINED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_change_elements_together(dtype: str, how: str, target: str) -> None:
    kernel = columns.using(target=target)(40, 24, dtype, how)
    kind = T.dtype(dtype).numpy
    rng = np.random.default_rng(1)
    a = rng.integers(0 if dtype.startswith("u") else -4, 5, (40, 24)).astype(kind)
    b = rng.integers(0, 3, 24).astype(kind)
    wanted = COMBINED[how](b.astype(np.float64), COMBINED[how].reduce(a.astype(np.float64), axis=0))
    outputs(kernel, a, b)
    np.testing.assert_array_equal(b.astype(np.float64), wanted)
    if target == "cpu":
        kernel.check().raise_if_wrong()
    else:
        kernel.reach_code()


@tilebench.jit
def counted(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), H: T.Tensor((8,), "int32"), F: T.Tensor((1,), "float32")):
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            bins = T.alloc_shared((8,), "int32")
            T.clear(bins)
            for i in T.Parallel(256):
                if bx * 256 + i < N:
                    T.atomic_add(bins[A[bx * 256 + i]], 1)
            T.atomic_add(H, bins)
            T.atomic_add(F[0], 1)

    return main


@pytest.mark.parametrize("target", TARGETS)
def test_a_histogram_in_shared_memory_and_its_sum_over_blocks(target: str) -> None:
    n = 5000
    a = np.random.default_rng(0).integers(0, 8, n).astype(np.int32)
    h, f = np.ones(8, np.int32), np.zeros(1, np.float32)
    outputs(counted.using(target=target)(n), a, h, f)
    np.testing.assert_array_equal(h, 1 + np.bincount(a, minlength=8))
    assert f[0] == 20  # a statement of the block is done once by each


def test_the_lanes_of_a_processor_lose_nothing() -> None:
    """Many blocks in many threads on one element, by the instruction and by compare-and-swap."""
    for dtype in ("int32", "float32", "float16"):
        kernel = columns.using(target="cpu")(2048, 1, dtype, "add")
        b = np.zeros(1, dtype)
        kernel(np.ones((2048, 1), dtype), b)
        assert b[0] == 2048, dtype


TILES = """
S = T.alloc_shared((8, 32), "float32")
T.copy(A[8:16, 0:32], S)
T.atomic_{how}(O[3, 5], S)
T.atomic_{how}(O[20:28, 30:62], S)
T.atomic_{how}(O[60:64, 40:64], 2)
T.atomic_{how}(O[63:66, 60:70], A[0:3, 0:10])
F = T.alloc_fragment((32,), "float16")
T.copy(A[1, 0:32], F)
T.atomic_{how}(O[40, 0:32], F)
"""


@pytest.mark.parametrize("how", COMBINED)
def test_tiles(how: str) -> None:
    """Regions, a head address, one value for all, another dtype, and what lies outside."""
    rng = np.random.default_rng(2)
    a, o = (rng.integers(-9, 9, (64, 64)).astype(np.float32) for _ in range(2))
    wanted, f = o.copy(), COMBINED[how]
    found = everywhere(TILES.format(how=how), A=a, O=o)["O"]
    for place, value in (
        (np.s_[3:11, 5:37], a[8:16, :32]), (np.s_[20:28, 30:62], a[8:16, :32]), (np.s_[60:64, 40:64], 2),
        (np.s_[63:64, 60:64], a[0:1, 0:4]), (np.s_[40, :32], a[1, :32]),
    ):  # fmt: skip
        wanted[place] = f(wanted[place], value)
    np.testing.assert_array_equal(found, wanted)


def test_a_replicated_value_is_added_once() -> None:
    body = """
    R = T.alloc_fragment((64, 64), "float32")
    s = T.alloc_fragment((64,), "float32")
    T.copy(A, R)
    T.reduce_sum(R, s, dim=1)
    for i in T.Parallel(64):
        T.atomic_add(O[i, 0], s[i])
    """
    a = np.random.default_rng(3).integers(-3, 4, (64, 64)).astype(np.float32)
    o = np.ones((64, 64), np.float32)
    np.testing.assert_array_equal(everywhere(body, A=a, O=o)["O"][:, 0], 1 + a.sum(1))


def test_a_nan_loses_and_a_sum_keeps_it() -> None:
    body = """
    for i in T.Parallel(64):
        T.atomic_max(O[0, 0], A[0, i])
        T.atomic_min(O[0, 1], A[0, i])
        T.atomic_add(O[0, 2], A[0, i])
    """
    a = np.arange(4096, dtype=np.float32).reshape(64, 64)
    a[0, 7] = np.nan
    out = everywhere(body, A=a, O=np.full((64, 64), np.nan, np.float32))["O"]
    assert out[0, :2].tolist() == [63, 0]
    assert np.isnan(out[0, 2])


def test_the_printed_form_is_read_again() -> None:
    kernel = columns(40, 24, "float16", "max")
    for name in ("tile", "bounded"):
        kernel.stage(name)
        function = kernel.compilation.functions[name]
        text = print_function(function).text
        assert "T.atomic_max(B[" in text
        assert print_function(parse_function(text, registry())).text == text


def test_the_bound_of_a_sum_holds_for_every_order() -> None:
    """Large terms cancel first in the reference's order; where they do last, the ones are lost."""
    function = columns(48, 1, "float32", "add").calls.traced.function
    a = np.ones((48, 1), np.float32)
    a[0], a[1] = 2**25, -(2**25)
    other = np.float32(2**25)
    for _ in range(46):
        other = np.float32(other + np.float32(1))
    before = {"A": a, "B": np.zeros(1, np.float32)}
    assert other - np.float32(2**25) == 0
    check_function(function, before, {"A": a, "B": np.zeros(1, np.float32)}).raise_if_wrong()
    assert not check_function(function, before, {"A": a, "B": np.full(1, 1e4, np.float32)}).ok


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "F = T.alloc_fragment((8,), 'float32')\nT.atomic_add(F, 1)",
            "shared and global memory, and F is a frag",
        ),
        ("v = T.alloc_var('float32', init=0)\nT.atomic_add(v, 1)", "works on tiles, v is a scalar"),
        ("S = T.alloc_shared((8,), 'int8')\nT.atomic_max(S, 1)", "no single step for int8"),
        ("T.atomic_add(A[0:4, 0], A[0:5, 0])", "two sides of this sum have different extents"),
        ("T.atomic_add(A[0, 0], O[0, 0:4, 0:4])", "has rank 2|takes 2|2 dimensions"),
        ("for i in T.Parallel(8):\n    T.atomic_add(A[0:4, 0], A[4:8, 0])", r"T\.Parallel"),
        ("T.atomic_add(3, A[0, 0])", "works on buffers and regions, found int"),
    ],
)
def test_what_is_refused(body: str, said: str) -> None:
    with pytest.raises(TileError, match=said):
        kernel_of(body)()


def test_a_plain_access_near_atomic_ones_is_a_race() -> None:
    """Blocks that add to what another one reads: there is no order between them."""

    @tilebench.jit(target="cuda:sm_80")
    def racing():
        @T.prim_func
        def main(A: T.Tensor((8,), "int32"), B: T.Tensor((2, 8), "int32")):
            with T.Kernel(2, threads=32) as bx:
                for i in T.Parallel(8):
                    T.atomic_add(A[i], 1)
                for i in T.Parallel(8):
                    B[bx, i] = A[i]

        return main

    with pytest.raises(LaunchError, match=r"a race in global memory: .* of A by block"):
        outputs(racing(), np.zeros(8, np.int32), np.zeros((2, 8), np.int32))


def test_blocks_in_the_reference_add_in_order() -> None:
    kernel = counted(600)
    arrays: dict[str, Any] = {
        "A": np.arange(600, dtype=np.int32) % 8, "H": np.zeros(8, np.int32), "F": np.zeros(1, np.float32),
    }  # fmt: skip
    found = run_reference(kernel.calls.traced.function, arrays)
    assert found["H"].tolist() == [75] * 8
    assert found["F"][0] == 3


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "int16", "uint16"])
def test_bits_are_gathered(dtype: str) -> None:
    """By many iterations in one element, in global and in shared memory."""
    body = f"""
    S = T.alloc_shared((4,), "{dtype}")
    T.clear(S)
    for i, j in T.Parallel(4, 8):
        T.atomic_or(S[i], A[i, j])
        T.atomic_or(O[j], A[i, j], memory_order="relaxed")
    T.copy(S, P)
    """
    head = f'A: T.Tensor((4, 8), "{dtype}"), O: T.Tensor((8,), "{dtype}"), P: T.Tensor((4,), "{dtype}")'
    a = (1 << np.arange(32) % 15).reshape(4, 8).astype(dtype)
    found = everywhere(body, head, A=a, O=np.full(8, 4, dtype))
    np.testing.assert_array_equal(found["P"], np.bitwise_or.reduce(a, axis=1))
    np.testing.assert_array_equal(found["O"], np.bitwise_or.reduce(a, axis=0) | 4)


def test_what_gathers_bits_is_refused() -> None:
    for statement, what in (
        ("T.atomic_or(O[0, 0], 1)", "T.atomic_or takes integers, found float32"),
        ("T.add2(1, 2)", "T.add2 takes a vector"),
    ):
        with pytest.raises(TileError) as error:
            kernel_of(statement).using(target="cuda:sm_80")()
        assert what in str(error.value)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_gathered_bits_compile_for_cards(arch: str) -> None:
    for dtype in ("int16", "uint16", "int32", "uint64"):
        head = f'A: T.Tensor((64,), "{dtype}"), O: T.Tensor((64,), "{dtype}")'
        kernel = kernel_of("for i in T.Parallel(64):\n    T.atomic_or(O[i // 2], A[i])", head)
        compile_cuda(kernel.using(target=f"cuda:{arch}")().stage("cuda"), machine_of(f"cuda:{arch}"))
