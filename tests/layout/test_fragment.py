"""Fragments by enumeration, with widths that divide nothing."""

from __future__ import annotations

from math import gcd, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilebench.layout as tl
from tilebench.errors import LayoutError
from tilebench.layout import Fragment, Layout


def rebuilt(value: object) -> object:
    """What the printed form of `value` makes, read as the tile language."""
    return eval(repr(value), {"T": tl})  # noqa: S307


MMA_C = Fragment(
    (128, 128),
    thread=((4, 1, 2), (8, 0, 1), (2, 0, 64), (2, 1, 64)),
    value=((2, 1, 1), (2, 0, 8), (4, 0, 16), (8, 1, 8)),
)
EXTENT = st.sampled_from([1, 2, 3, 7, 16, 33, 48, 64, 96, 100])
EXTENTS = st.one_of(
    st.tuples(st.sampled_from([1, 7, 48, 96, 100, 1000, 4096])),
    st.tuples(EXTENT, EXTENT),
    st.tuples(EXTENT, EXTENT, st.sampled_from([1, 5, 8, 12])),
)
THREADS = st.sampled_from([1, 32, 64, 96, 128, 160, 256])


def check_by_enumeration(frag: Fragment) -> None:
    """Each true element once among the owners, and `owner_of` its inverse."""
    held = np.zeros(frag.padded, int)
    thread, value = np.meshgrid(np.arange(frag.threads), np.arange(frag.values), indexing="ij")
    owners = frag.owners[thread]
    at = frag.coordinates(thread, value)
    np.add.at(held, tuple(each[owners] for each in at), 1)
    assert (held == 1).all()
    t, v = frag.owner_of(at)
    assert np.array_equal(t[owners], thread[owners])
    assert np.array_equal(v, value)
    assert frag.is_bijective()
    assert frag.is_dense
    assert frag.real.sum() == frag.elements * frag.replicated_threads


def test_the_mma_accumulator_is_the_one_of_the_design() -> None:
    assert MMA_C.as_layouts() == (
        Layout((4, 8, 2, 2), (256, 1, 64, 8192)),
        Layout((2, 2, 4, 8), (128, 8, 16, 1024)),
    )
    check_by_enumeration(MMA_C)
    assert (MMA_C.threads, MMA_C.values, MMA_C.has_ghosts) == (128, 128, False)
    assert MMA_C.contiguous_values(1) == 2
    assert MMA_C.contiguous_values(0) == 1
    assert MMA_C.coordinates(5, 3) == (9, 3)
    assert rebuilt(MMA_C) == MMA_C
    assert hash(rebuilt(MMA_C)) == hash(MMA_C)
    assert [(int(i), int(j)) for i, j in zip(*MMA_C.coordinates(0, np.arange(128)), strict=True)] == list(
        MMA_C.value_offsets
    )


@given(EXTENTS, THREADS, st.sampled_from([1, 2, 4, 8, 16]))
@settings(derandomize=True, deadline=None, max_examples=120)
def test_spread_covers_any_tile_once(extents: tuple[int, ...], threads: int, vector: int) -> None:
    frag = tl.spread(extents, threads, vector, 32)
    assert frag.threads == threads
    check_by_enumeration(frag)
    width = gcd(frag.contiguous_values(len(extents) - 1), extents[-1])
    # No more than twice the least work: ghosts and idle threads included.
    assert frag.values <= 2 * max(width, -(-prod(extents) // threads)) or len(extents) == 3


@given(EXTENTS, THREADS, st.data())
@settings(derandomize=True, deadline=None, max_examples=80)
def test_reduced_threads_are_powers_of_two(
    extents: tuple[int, ...], threads: int, data: st.DataObject
) -> None:
    dim = data.draw(st.integers(0, len(extents) - 1))
    frag = tl.spread(extents, threads, 4, 32, dim)
    check_by_enumeration(frag)
    for divisor, count, at, _ in frag.thread_digits:
        if at == dim:
            assert count & (count - 1) == 0
            assert divisor & (divisor - 1) == 0
    row = frag.reduce(dim)
    check_by_enumeration(row)
    assert row.threads == threads
    if len(extents) > 1:
        others = [d for d in range(len(extents)) if d != dim]
        assert row.extents == tuple(extents[d] for d in others)
        assert frag.projects_onto(row, others)
        index = frag.value_map(row, others)
        assert index is not None
        assert max(index) < row.values
        thread, value = np.meshgrid(np.arange(threads), np.arange(frag.values), indexing="ij")
        mine = frag.coordinates(thread, value)
        theirs = row.coordinates(thread, np.array(index)[value])
        for d, at in zip(others, theirs, strict=True):
            assert np.array_equal(mine[d][frag.real], at[frag.real])


@pytest.mark.parametrize(
    ("extents", "threads", "vector", "dim", "thread", "value"),
    [
        ((128, 128), 128, 8, None, ((16, 1, 8), (8, 0, 1)), ((8, 1, 1), (16, 0, 8))),
        ((128, 32), 128, 8, None, ((4, 1, 8), (32, 0, 1)), ((8, 1, 1), (4, 0, 32))),
        ((4, 8192), 128, 8, 1, ((32, 1, 8), (4, 0, 1)), ((8, 1, 1), (32, 1, 256))),
        ((7,), 128, 4, None, ((8, 0, 1), (16, -1, 0)), ()),
        ((100, 100), 1, 8, None, (), ((4, 1, 1), (25, 1, 4), (100, 0, 1))),
    ],
)
def test_spread_golden(extents, threads, vector, dim, thread, value) -> None:  # type: ignore[no-untyped-def]
    assert tl.spread(extents, threads, vector, 32, dim) == Fragment(extents, thread, value)


@given(
    st.sampled_from([1, 7, 48, 64, 96, 100, 128]),
    st.sampled_from([1, 3, 48, 64, 96, 100, 128]),
    st.sampled_from([1, 32, 96, 128, 256]),
    st.sampled_from([(8, 8), (4, 4), (8, 16), (1, 3)]),
)
@settings(derandomize=True, deadline=None, max_examples=80)
def test_gemm_microtile_covers_any_tile(m: int, n: int, threads: int, block: tuple[int, int]) -> None:
    frag = tl.gemm_microtile(m, n, threads, *block, 32)
    assert frag.threads == threads
    assert frag.extents == (m, n)
    check_by_enumeration(frag)


def test_gemm_microtile_golden() -> None:
    frag = tl.gemm_microtile(128, 128, 256, 8, 8, 32)
    assert frag.value == ((4, 1, 1), (2, 1, 64), (8, 0, 16))
    assert frag.thread == ((8, 1, 4), (4, 0, 1), (2, 1, 32), (4, 0, 4))


def test_projection_needs_the_same_threads() -> None:
    row = MMA_C.reduce(1)
    assert row.replicated_threads == 8
    assert row.owners.sum() == 16
    assert not tl.spread((128, 128), 128, 4, 32).projects_onto(row, (0,))
    assert not MMA_C.projects_onto(tl.spread((128,), 64, 1, 32), (0,))
    assert MMA_C.value_map(MMA_C, (0, 1)) == tuple(range(128))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fragment((8,), ((4, 0, 1),)),
        lambda: Fragment((8,), ((8, 1, 1),)),
        lambda: Fragment((8,), ((8, 0, 1),), ((2, -1, 0),)),
        lambda: Fragment((8,), ((2, -1, 0),), ((8, 0, 1), (2, -1, 0))),
        lambda: Fragment((8,), ((8, 0, 0),)),
        lambda: Fragment((8,), ((4, 0, 1), (4, 0, 2))).owner_of((1,)),
        lambda: tl.spread((8, 8), 48, 4, 32),
        lambda: tl.spread((), 32, 4, 32),
        lambda: MMA_C.reduce(2),
        lambda: MMA_C.projects_onto(MMA_C, (0,)),
    ],
)
def test_wrong_fragments_are_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LayoutError):
        make()


def test_an_aliasing_fragment_is_seen() -> None:
    assert not Fragment((8,), ((4, 0, 1), (4, 0, 2))).is_bijective()


@pytest.mark.parametrize("table", [0, 1 << 20])
def test_value_map_by_table_and_by_search(monkeypatch: pytest.MonkeyPatch, table: int) -> None:
    from tilebench.layout import fragment

    monkeypatch.setattr(fragment, "_TABLE", table)
    frag = tl.spread((100, 48), 128, 4, 32, 1)
    row = frag.reduce(1)
    index = frag.value_map(row, (0,))
    assert index is not None
    rows = np.array([offset[0] for offset in frag.value_offsets])
    assert [row.value_offsets[w][0] for w in index] == rows.tolist()
    # Registers in another order: the map is the permutation; another owner: there is none.
    turned = Fragment(frag.extents, frag.thread, frag.value[::-1])
    found = frag.value_map(turned, (0, 1))
    assert found is not None
    assert sorted(found) == list(range(frag.values))
    assert [turned.value_offsets[w] for w in found] == list(frag.value_offsets)
    swapped = Fragment((2, 2), ((2, 0, 1),), ((2, 1, 1),))
    assert swapped.value_map(Fragment((2, 2), ((2, 1, 1),), ((2, 0, 1),)), (0, 1)) is None


@pytest.mark.parametrize(
    ("thread", "value", "covered"),
    [
        (((8, 0, 4),), (), (1,)),
        (((8, 0, 4),), ((3, 0, 1),), (3,)),
        (((4, 0, 1), (4, 0, 8)), (), (4,)),
        (((4, 0, 1),), ((2, 0, 4), (2, 0, 16)), (8,)),
    ],
)
def test_a_hole_in_a_fragment_is_refused(thread: Any, value: Any, covered: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match=rf"covers \({covered[0]},\) of a tile of extents \(29,\)"):
        Fragment((29,), thread, value)
    # A hole past the true extents is one among ghosts.
    Fragment(covered, thread, value)
