"""4-bit integers on the CPU: packed arrays, whole bytes, both ways to pass them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from kit import named_isa, runnable

from tests import kernels_packed
from tests.simulator.test_packed import SHAPES, patterns, same
from tilebench.errors import ArgumentError
from tilebench.ir.dtypes import ALL
from tilebench.ir.packing import pack, packed_shape, unpack
from tilebench.language.meanings.conversion import cast_meaning
from tilebench.reference.inputs import random_array

STORED = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("out", ["float16", "float32", "int8"])
def test_widening(shape: tuple[int, int], stored: str, out: str) -> None:
    a, c = patterns(shape, stored), np.full(shape, 77, ALL[out].numpy)
    kernels_packed.through_shared.using(target="cpu")(*shape, stored, out)(a, c)
    assert same(c, cast_meaning(a, ALL[stored], ALL[out]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("given_", ["float32", "float64"])
def test_narrowing(shape: tuple[int, int], stored: str, given_: str) -> None:
    a, c = random_array(shape, ALL[given_], 3, "normal") * 300, np.full(shape, 5, ALL[stored].numpy)
    kernels_packed.narrowed.using(target="cpu")(*shape, given_, stored)(a, c)
    assert same(c, cast_meaning(a, ALL[given_], ALL[stored]))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 70)),
    tile=st.tuples(st.integers(1, 20), st.sampled_from([2, 4, 6, 16, 34, 64])),
    pair=st.sampled_from(
        [("int4", "int4"), ("uint4", "int8"), ("int8", "uint4"), ("uint4", "int4"), ("int4", "float4_e2m1fn")]
    ),
)
def test_any_shape_and_tile(shape: tuple[int, int], tile: tuple[int, int], pair: tuple[str, str]) -> None:
    a, c = patterns(shape, pair[0]), np.full(shape, 5, ALL[pair[1]].numpy)
    made = kernels_packed.elementwise.using(target="cpu")(*shape, *pair, *tile)
    made(a, c)
    assert same(c, cast_meaning(a, ALL[pair[0]], ALL[pair[1]]))
    assert made.check().ok


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    "pair", [("uint4", "int64"), ("int64", "uint4"), ("int4", "float64"), ("uint4", "int4")]
)
@pytest.mark.parametrize("shape", [(3, 7), (2, 32)])
def test_vectors_of_one_byte(shape: tuple[int, int], pair: tuple[str, str], level: str) -> None:
    """Two lanes of 64 bits, all that SSE2 has, are one byte of an array: no vector of bytes."""
    if not runnable(named_isa(level)):
        pytest.skip("not this machine's instruction set")
    a = patterns(shape, pair[0] if pair[0] in STORED else "int8").astype(ALL[pair[0]].numpy)
    c = np.full(shape, 5, ALL[pair[1]].numpy)
    kernels_packed.elementwise.using(target=f"cpu:{level}")(*shape, *pair)(a, c)
    assert same(c, cast_meaning(a, ALL[pair[0]], ALL[pair[1]]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bytes_", [np.uint8, np.int8])
def test_bytes_are_taken_as_they_are(shape: tuple[int, int], bytes_: Any) -> None:
    a = patterns(shape, "int4")
    packed, out = pack(a).view(bytes_), np.full(packed_shape(shape, ALL["int4"]), 0x5A, np.uint8)
    kernels_packed.through_shared.using(target="cpu")(*shape, "int4", "int4")(packed, out)
    assert same(unpack(out, shape, ALL["int4"]), a)
    assert packed[0, 0] & 15 == int(a[0, 0]) & 15  # the even element is the low half


def test_other_arrays_are_refused() -> None:
    kernel = kernels_packed.elementwise.using(target="cpu")(8, 32, "int4", "int8")
    out = np.zeros((8, 32), np.int8)
    for wrong in (
        np.zeros((8, 32), np.int8),
        np.zeros((8, 16), np.int16),
        np.zeros((8, 32), np.uint8)[:, ::2],
    ):
        with pytest.raises(ArgumentError, match="A is not what a parameter of int4 takes") as caught:
            kernel(wrong, out)
    assert "uint8 or int8 of shape (8, 16), two elements a byte" in str(caught.value)
    assert "uint8 of shape (8, 16), not contiguous in rows" in str(caught.value)


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 8), (2, 3, 5)])
def test_packing_round_trips(name: str, shape: tuple[int, ...]) -> None:
    dtype = ALL[name]
    every = patterns((1, int(np.prod(shape, initial=1))), name).reshape(shape)
    packed = pack(every)
    assert packed.shape == packed_shape(shape, dtype)
    assert same(unpack(packed, shape, dtype), every)
    if shape == (7,):
        raw = every.view(np.uint8) & 15
        assert packed.tolist() == [int(raw[k]) | int(raw[k + 1] if k < 6 else 0) << 4 for k in range(0, 7, 2)]
