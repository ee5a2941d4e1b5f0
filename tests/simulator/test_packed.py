"""Integers of 4 bits and 8-bit floats in global memory, shared memory and registers, in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import kernels_packed
from tests.simulated import run_threaded
from tilebench.errors import DTypeError
from tilebench.ir.dtypes import ALL
from tilebench.ir.packing import of_codes
from tilebench.kernel import Kernel
from tilebench.language.meanings.conversion import cast_meaning
from tilebench.reference.inputs import random_array

SHAPES = [(16, 32), (33, 70), (5, 7), (17, 1), (1, 31)]


def simulate(kernel: Kernel, **arrays: Any) -> None:
    kernel.stage("threaded")
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)


def patterns(shape: tuple[int, int], dtype: str, seed: int = 0) -> Any:
    """Every value of an 8-bit or 4-bit dtype, in some order."""
    kind = ALL[dtype]
    bits = np.random.default_rng(seed).integers(0, 1 << kind.bits, shape, np.uint8)
    return bits.view(kind.numpy) if kind.bits == 8 else of_codes(bits, kind)


@np.errstate(invalid="ignore")
def same(found: Any, expected: Any) -> bool:
    return np.array_equal(found.astype(np.float64), expected.astype(np.float64), equal_nan=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stored", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
@pytest.mark.parametrize("out", ["float16", "float32"])
def test_widening_through_shared_memory_and_registers(shape: tuple[int, int], stored: str, out: str) -> None:
    a, c = patterns(shape, stored), np.full(shape, 77, ALL[out].numpy)
    simulate(kernels_packed.through_shared.using(target="cuda:sm_80")(*shape, stored, out), A=a, C=c)
    assert same(c, cast_meaning(a, ALL[stored], ALL[out]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stored", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_narrowing_stores_whole_bytes(shape: tuple[int, int], stored: str) -> None:
    a = random_array(shape, ALL["float32"], 3, "normal") * 300
    c = np.full(shape, 5, ALL[stored].numpy)
    simulate(kernels_packed.narrowed.using(target="cuda:sm_80")(*shape, "float32", stored), A=a, C=c)
    assert same(c, cast_meaning(a, ALL["float32"], ALL[stored]))


@pytest.mark.parametrize(
    "pair",
    [
        ("int4", "int8"),
        ("uint4", "float16"),
        ("int8", "int4"),
        ("int4", "int4"),
        ("int4", "float4_e2m1fn"),
        ("float4_e2m1fn", "uint4"),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_element_by_element_in_global_memory(shape: tuple[int, int], pair: tuple[str, str]) -> None:
    given_, out = pair
    a, c = patterns(shape, given_), np.full(shape, 5, ALL[out].numpy)
    simulate(kernels_packed.elementwise.using(target="cuda:sm_80")(*shape, given_, out), A=a, C=c)
    assert same(c, cast_meaning(a, ALL[given_], ALL[out]))


@pytest.mark.parametrize("shape", SHAPES)
def test_fills(shape: tuple[int, int]) -> None:
    c = np.full((2, *shape), 5, ALL["int4"].numpy)
    simulate(kernels_packed.filled.using(target="cuda:sm_80")(*shape), C=c)
    assert (c == -3).all()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 70)),
    tile=st.tuples(st.integers(1, 20), st.sampled_from([2, 4, 6, 16, 34, 64])),
    threads=st.sampled_from([32, 64, 128]),
    stored=st.sampled_from(["int4", "uint4", "float4_e2m1fn"]),
)
def test_any_shape_and_tile(shape: tuple[int, int], tile: tuple[int, int], threads: int, stored: str) -> None:
    a, c = patterns(shape, stored), np.full(shape, 5, ALL[stored].numpy)
    made = kernels_packed.through_shared.using(target="cuda:sm_80")(*shape, stored, stored, *tile, threads)
    simulate(made, A=a, C=c)
    assert same(c, a)


def test_half_a_byte_is_refused_at_the_line_of_the_store() -> None:
    with pytest.raises(DTypeError, match="store half a byte of C, and lose") as caught:
        kernels_packed.narrowed.using(target="cuda:sm_80")(8, 15, "float32", "int4", 8, 15).stage("threaded")
    assert caught.value.place is not None
    assert "T.copy(C_s, C[by * block_M, bx * block_N])" in caught.value.place.text
    with pytest.raises(DTypeError, match="store half a byte of C, and lose") as caught:
        kernels_packed.elementwise.using(target="cpu")(8, 45, "int8", "int4", 8, 15).stage("bounded")
    assert caught.value.place is not None
    assert "C[by * block_M + i, bx * block_N + j] =" in caught.value.place.text
