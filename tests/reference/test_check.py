"""Reports say what is wrong, where and by how much; poison is found; inputs repeat."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tilebench.errors import ArgumentError, OptionError
from tilebench.ir import dtype_of, parse_function
from tilebench.ir.dtypes import ALL
from tilebench.language.words import registry
from tilebench.machine import SM, Machine, MemoryLevel
from tilebench.passes.bounded.bound_accesses import bound_accesses
from tilebench.passes.context import Context
from tilebench.plain import to_plain
from tilebench.reference import (
    Bounded,
    CheckError,
    check_function,
    compare,
    make_inputs,
    poison,
    random_array,
    run_bounded,
    run_reference,
)
from tilebench.reference.check import poisoned

AXPY = """@T.prim_func
def main(
    X: T.Tensor((33, 20), T.float32),
    Y: T.StridedTensor((33, 20), (1, 40), T.float32),
    Z: T.Tensor((33, 20), T.float16),
):
    with T.Kernel(2, 3, threads=64) as (bx, by):
        s = T.alloc_shared((16, 16), T.float32)
        T.copy(X[by * 16, bx * 16], s)
        for i, j in T.Parallel(16, 16):
            x: T.float32 = s[i, j] * T.float32(3) + Y[by * 16 + i, bx * 16 + j]
            Z[by * 16 + i, bx * 16 + j] = T.cast(x, T.float16)
"""


def test_a_right_result_passes_and_a_wrong_one_is_drawn() -> None:
    function = parse_function(AXPY, registry())
    before = make_inputs(function, 7)
    after = run_reference(function, before)
    report = check_function(function, before, after)
    assert report.ok
    report.raise_if_wrong()
    assert "all within bounds" in str(report)
    assert 0 < report.largest.ratio <= 1
    after["Z"][4, 5] += np.float16(0.5)
    after["Z"][0, 1] = np.nan
    poison(after["Z"][30:31])
    wrong = check_function(function, before, after)
    assert not wrong.ok
    one = wrong.output("Z")
    assert (one.outside, one.unwritten, one.total) == (22, 20, 660)
    with pytest.raises(CheckError, match=r"22 of 660 elements of Z") as caught:
        wrong.raise_if_wrong()
    assert "Z: 20 elements were never written" in str(caught.value)
    assert "[0, 1]: got nan" in str(caught.value) or "[30, " in str(caught.value)
    assert json.loads(json.dumps(to_plain(report)))["outputs"][0]["name"] == "Z"


def test_bounded_text_means_the_same() -> None:
    function = parse_function(AXPY, registry())
    machine = Machine(
        name="test", warp=32, max_threads=1024, vector_bytes=(16, 8, 4), transaction_bytes=32,
        sm=SM(2048, 32, 65536, 256, 255), memory={"shared": MemoryLevel("shared", 1 << 17, banks=32)},
    )  # fmt: skip
    lower = bound_accesses(function, Context(machine))
    assert lower != function
    before = make_inputs(function, 3)
    want, got = run_bounded(function, before)["Z"], run_bounded(lower, before)["Z"]
    assert np.array_equal(want.value, got.value)
    assert np.array_equal(want.error, got.error)


def test_infinities_and_nan_must_match() -> None:
    value = Bounded(np.array([np.inf, -np.inf, np.nan, 1.0]), np.zeros(4))
    good = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert compare(good, value, dtype_of("float32")).ok
    for at, bad in ((0, -np.inf), (1, 0.0), (2, 0.0), (3, np.nan)):
        wrong = good.copy()
        wrong[at] = bad
        report = compare(wrong, value, dtype_of("float32"))
        assert report.outputs[0].outside == 1
        assert report.outputs[0].worst[0].index == (at,)


def test_large_integers_are_compared_as_integers() -> None:
    value = Bounded(np.array([2**62 + 1]), np.zeros(1))
    assert compare(np.array([2**62 + 1]), value, dtype_of("int64")).ok
    assert not compare(np.array([2**62]), value, dtype_of("int64")).ok


def test_shapes_and_dtypes_must_fit() -> None:
    value = Bounded(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="cannot be compared"):
        compare(np.zeros((3, 2), np.float32), value, dtype_of("float32"))
    with pytest.raises(ArgumentError, match="cannot be compared"):
        compare(np.zeros((2, 3), np.float64), value, dtype_of("float32"))


@pytest.mark.parametrize("name", list(ALL))
def test_poison_is_found_in_every_dtype(name: str) -> None:
    dtype = dtype_of(name)
    array = np.zeros((3, 4), dtype.numpy)
    assert not poisoned(array, dtype).any()
    poison(array[1:2])
    if name == "bool" or dtype.per_byte > 1:
        return
    assert poisoned(array, dtype).sum(axis=1).tolist() == [0, 4, 0]
    if dtype.is_float:
        assert np.isnan(array[1].astype(np.float64)).all()
        array[1] = np.nan
        if dtype.bits > 8:
            assert not poisoned(array, dtype).any(), "a NaN that was computed is no poison"


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("kind", ["uniform", "normal", "wide"])
def test_inputs_repeat_and_stay_in_range(name: str, kind: str) -> None:
    dtype = dtype_of(name)
    one, two = (random_array((50, 7), dtype, 11, kind) for _ in range(2))  # type: ignore[arg-type]
    other = random_array((50, 7), dtype, 12, kind)  # type: ignore[arg-type]
    assert one.dtype == dtype.numpy
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    wide = one.astype(np.float64)
    assert np.isfinite(wide).all()
    if kind == "uniform":
        assert np.abs(wide).max() <= (1 if dtype.is_float else 8)


def test_outputs_start_as_poison_with_their_strides() -> None:
    function = parse_function(AXPY, registry())
    made = make_inputs(function, 0)
    assert made["Y"].strides == (4, 160)
    assert poisoned(made["Z"], dtype_of("float16")).all()
    assert not np.isnan(made["X"]).any()
    again = make_inputs(function, 0)
    assert np.array_equal(made["Y"], again["Y"])
    with pytest.raises(OptionError, match="no inputs of kind"):
        make_inputs(function, 0, "strange")  # type: ignore[arg-type]


def test_some_blocks_of_a_large_result() -> None:
    function = parse_function(AXPY, registry())
    before = make_inputs(function, 7)
    after = run_reference(function, before)
    whole, part = run_bounded(function, before)["Z"], run_bounded(function, before, blocks=3)["Z"]
    assert part.known is not None
    # First block and last (rows 32 and 33 are its own, columns 16 to 20), and one of the four others.
    assert part.known[0, 0]
    assert part.known[32, 19]
    assert part.known.sum() in (260 + 256, 260 + 64, 260 + 16)
    assert np.array_equal(part.value[part.known], whole.value[part.known])
    assert check_function(function, before, after, blocks=3).ok
    after["Z"][0, 0] += np.float16(1)
    report = check_function(function, before, after, blocks=3)
    assert (report.outputs[0].outside, report.outputs[0].checked) == (1, int(part.known.sum()))
    assert "3 blocks" in str(report)
    unknown = np.argwhere(~part.known)[0]
    after = run_reference(function, before)
    after["Z"][tuple(unknown)] += np.float16(1)
    assert check_function(function, before, after, blocks=3).ok
    assert not check_function(function, before, after).ok


SUMS = """@T.prim_func
def main(X: T.Tensor((5, 7), T.{dtype}), Y: T.Tensor((5,), T.{dtype})):
    with T.Kernel(2, threads=32) as b0:
        x = T.alloc_fragment((4, 8), T.{dtype})
        s = T.alloc_fragment((4,), T.{dtype})
        {fill}
        T.copy(X[b0 * 4, 0], x)
        T.reduce_sum(x, s, dim=1, clear=False)
        T.copy(s, Y[b0 * 4])
"""


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_sum_that_begins_with_nothing_is_told_by_its_line(dtype: str) -> None:
    """A NaN that is expected says nothing to who forgot to clear a tile."""
    function = parse_function(SUMS.format(dtype=dtype, fill="T.sync_threads()"), registry())
    before = {"X": np.ones((5, 7), dtype), "Y": np.empty(5, dtype)}
    poison(before["Y"])
    report = check_function(function, before, {"Y": np.full(5, 7, dtype)})
    assert not report.ok
    assert "the kernel reads what it never wrote.\nlanguage error: 4 elements are read here" in str(report)
    assert "T.reduce_sum(x, s, dim=1, clear=False)" in report.unfilled
    assert "T.clear(...)" in report.unfilled
    cleared = parse_function(SUMS.format(dtype=dtype, fill=f"T.fill(s, T.{dtype}(0))"), registry())
    for right in (7, 8):
        report = check_function(cleared, before, {"Y": np.full(5, right, dtype)})
        assert (report.ok, report.unfilled) == (right == 7, "")
