"""The algebra against the package `tensor-layouts`, and against the functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensor_layouts as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

import tilebench.layout as tl
from tilebench.errors import LayoutError
from tilebench.layout import Layout


def rebuilt(value: object) -> object:
    """What the printed form of `value` makes, read as the tile language."""
    return eval(repr(value), {"T": tl})  # noqa: S307


EXTENTS = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12])
STRIDES = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32])
MODES = st.lists(st.tuples(EXTENTS, STRIDES), min_size=1, max_size=3)
SHAPES = st.recursive(EXTENTS, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=4)


@st.composite
def compact(draw: st.DrawFn) -> Layout:
    """A bijection: a shape with compact strides in a random order."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3))
    strides, step = [0] * len(shape), 1
    for k in draw(st.permutations(range(len(shape)))):
        strides[k] = step
        step *= shape[k]
    return tl.from_modes(list(zip(shape, strides, strict=True)))


LAYOUTS = st.one_of(MODES.map(tl.from_modes), compact())


def theirs(layout: Layout) -> Any:
    return oracle.Layout(layout.shape, layout.stride)


def same_function(mine: Layout, other: Any) -> bool:
    if mine.size != oracle.size(other):
        return False
    if mine.size > 256:  # the oracle is called once an index
        return tl.offsets(mine)[-1] == other(mine.size - 1)
    return [int(x) for x in tl.offsets(mine)] == [other(i) for i in range(mine.size)]


def attempt(make: Callable[[], Any], *errors: type[Exception]) -> Any:
    try:
        return make()
    except errors:
        return None


@given(LAYOUTS)
@settings(derandomize=True, deadline=None, max_examples=100)
def test_sizes_and_evaluation_agree(a: Layout) -> None:
    b = theirs(a)
    assert (a.size, a.cosize, a.rank, a.depth) == (
        oracle.size(b), oracle.cosize(b), oracle.rank(b), oracle.depth(b),
    )  # fmt: skip
    assert same_function(a, b)
    assert np.array_equal(a(np.arange(a.size)), tl.offsets(a))
    assert np.array_equal(tl.offsets(a.coalesce()), tl.offsets(a))
    assert len(a.coalesce().modes) <= len(a.modes)


@given(SHAPES)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_compact_layouts_are_bijections_and_print(shape: Any) -> None:
    for layout in (tl.column_major(shape), tl.row_major(shape)):
        assert sorted(tl.offsets(layout)) == list(range(layout.size))
        assert rebuilt(layout) == layout
        assert np.array_equal(tl.offsets(layout.flatten()), tl.offsets(layout))
    assert np.array_equal(tl.offsets(tl.column_major(shape)), np.arange(tl.column_major(shape).size))


@given(LAYOUTS, LAYOUTS)
@settings(derandomize=True, deadline=None, max_examples=250)
def test_compose_is_exact_and_refuses_no_composition_the_oracle_gets_right(a: Layout, b: Layout) -> None:
    mine = attempt(lambda: tl.compose(a, b), LayoutError)
    other = attempt(lambda: oracle.compose(theirs(a), theirs(b)), Exception)
    if mine is not None:
        assert np.array_equal(tl.offsets(mine), a(tl.offsets(b)))
        assert mine.rank == b.rank or b.depth == 0
    elif other is not None and b.cosize <= a.size:
        assert [other(i) for i in range(b.size)] != [int(x) for x in a(tl.offsets(b))]


@given(LAYOUTS, st.sampled_from([24, 96, 100, 144]))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_complement(a: Layout, size: int) -> None:
    mine = attempt(lambda: tl.complement(a, size), LayoutError)
    if mine is None:
        return
    assert same_function(mine, oracle.complement(theirs(a), size))
    once = tl.from_modes([mode for mode in a.modes if mode[1]])
    assert sorted(tl.offsets(tl.join(once, mine))) == list(range(size))


@given(LAYOUTS)
@settings(derandomize=True, deadline=None, max_examples=100)
def test_inverses(a: Layout) -> None:
    right = tl.right_inverse(a)
    assert np.array_equal(a(tl.offsets(right)), np.arange(right.size))
    left = attempt(lambda: tl.left_inverse(a), LayoutError)
    if left is not None:
        assert np.array_equal(a(left(tl.offsets(a))), tl.offsets(a))
        if all(stride for extent, stride in a.modes if extent > 1):
            assert np.array_equal(left(tl.offsets(a)), np.arange(a.size))
            assert same_function(left, oracle.left_inverse(theirs(a)))


@given(compact())
@settings(derandomize=True, deadline=None, max_examples=100)
def test_a_bijection_has_both_inverses(a: Layout) -> None:
    assert tl.right_inverse(a).size == a.size
    assert same_function(tl.right_inverse(a), oracle.right_inverse(theirs(a)))
    assert np.array_equal(tl.offsets(tl.left_inverse(a)), tl.offsets(tl.right_inverse(a)))


@given(compact(), LAYOUTS)
@settings(derandomize=True, deadline=None, max_examples=120)
def test_divide_and_product(a: Layout, b: Layout) -> None:
    for mine_of, their_of in (
        (tl.logical_divide, oracle.logical_divide),
        (tl.logical_product, oracle.logical_product),
    ):
        mine = attempt(lambda f=mine_of: f(a, b), LayoutError)
        other = attempt(lambda f=their_of: f(theirs(a), theirs(b)), Exception)
        if mine is not None and other is not None:
            assert same_function(mine, other)


def test_known_divisions() -> None:
    a = Layout((12, (4, 8)), (59, (13, 1)))
    assert tl.compose(a, (Layout(3, 4), 8)) == Layout((3, (4, 2)), (236, (13, 1)))
    assert tl.logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)) == Layout(
        ((2, 2), (2, 3)), ((4, 1), (2, 8))
    )
    assert tl.zipped_divide(tl.column_major((4, 8)), (2, 4)) == Layout(((2, 4), (2, 2)), ((1, 4), (2, 16)))
    assert tl.logical_product(Layout(4, 1), Layout(3, 1)) == Layout((4, 3), (1, 4))
    assert tl.left_inverse(Layout((4, 8), (1, 5))) == Layout((5, 8), (1, 4))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tl.logical_divide(Layout(100, 1), 8),
        lambda: tl.complement(Layout(48, 1), 100),
        lambda: tl.complement(Layout((4, 2), (1, 6)), 12),
        lambda: tl.compose(Layout((4, 4), (1, 100)), Layout((3, 2), (1, 3))),  # 2 + 3 carries
        lambda: tl.compose(Layout((6, 2), (1, 10)), Layout(3, 4)),
        lambda: tl.compose(Layout(8, 1), Layout(4, 4)),
        lambda: tl.left_inverse(Layout((4, 4), (1, 2))),
        lambda: Layout((2, 2), 1),
        lambda: Layout((2, 0), (1, 2)),
        lambda: Layout((2, 3), (1, 2))(6),
        lambda: Layout(4, 1).mode(1),
    ],
)
def test_outside_divisibility_is_an_error(make: Callable[[], object]) -> None:
    with pytest.raises(LayoutError) as info:
        make()
    assert "layout error" in str(info.value)


def test_coordinates_may_be_nested_or_arrays() -> None:
    a = Layout(((2, 2), 8), ((1, 4), 16))
    assert a((1, 1), 3) == 53
    assert a(3, 3) == 53
    assert a(3 + 4 * 3) == 53
    rows, columns = np.arange(4)[:, None], np.arange(8)[None, :]
    assert np.array_equal(a(rows, columns).T.ravel(), tl.offsets(a))
