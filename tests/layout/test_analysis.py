"""Bank conflicts, coalescing, vectors, conversions and shared layouts, against known figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilebench.layout as tl
from tilebench.errors import LayoutError
from tilebench.layout import AccessPattern, Fragment, SharedLayout, Swizzle


def rebuilt(value: object) -> object:
    """What the printed form of `value` makes, read as the tile language."""
    return eval(repr(value), {"T": tl})  # noqa: S307


LANE = np.arange(32)


def banks(
    layout: SharedLayout, index: tuple[np.ndarray, ...], element_bytes: int, elements: int = 1
) -> tl.BankConflicts:
    return tl.bank_conflicts(layout.offset(index) * element_bytes, elements * element_bytes, 32, 4)


def test_known_bank_conflicts() -> None:
    plain = SharedLayout.ordered((32, 32))
    zero = np.zeros(32, int)
    assert banks(plain, (LANE, zero), 4).degree == 32  # a column of f32
    assert banks(plain, (zero, LANE), 4).degree == 1  # a row
    assert banks(plain, (zero, zero), 4).total == 1  # a broadcast
    assert banks(SharedLayout.ordered((32, 32), pad=1), (LANE, zero), 4).degree == 1
    assert banks(plain, (LANE // 2, zero), 4).degree == 16  # pairs of lanes share a word
    assert banks(SharedLayout.ordered((32, 64)), (zero, LANE * 2), 4).degree == 2
    assert banks(SharedLayout.ordered((1, 64)), (zero, LANE), 2).total == 1  # two f16 in a word


def test_wide_accesses_go_in_phases() -> None:
    wide = tl.bank_conflicts(LANE * 16, 16, 32, 4)
    assert (wide.total, wide.excess) == (4, 0)
    half = tl.bank_conflicts(LANE * 8, 8, 32, 4)
    assert (half.total, half.excess) == (2, 0)
    rows = SharedLayout.ordered((32, 64))  # f16: 128 bytes a row, 16 bytes a lane, all in bank 0
    assert banks(rows, (LANE, LANE * 0), 2, 8).total == 32
    swizzled = SharedLayout.ordered((32, 64), swizzle=Swizzle(3, 3, 3))
    assert banks(swizzled, (LANE, LANE * 0), 2, 8).degree == 1
    assert swizzled.vector == 8
    assert swizzled.is_injective()
    assert swizzled.cosize == 2048
    only = tl.bank_conflicts(LANE * 16, 16, 32, 4, active=LANE < 3)
    assert (only.total, int(only.ideal[0])) == (1, 1)
    assert tl.bank_conflicts(LANE * 16, 16, 32, 4, active=LANE < 0).total == 0


@given(st.lists(st.integers(0, 255), min_size=32, max_size=32), st.sampled_from([4, 8, 16]))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_bank_conflicts_against_counting_by_hand(slots: list[int], size: int) -> None:
    expected = 0
    step = 128 // size
    for start in range(0, 32, step):
        words: dict[int, set[int]] = {}
        for slot in slots[start : start + step]:
            for word in range(slot * size // 4, (slot * size + size) // 4):
                words.setdefault(word % 32, set()).add(word)
        expected += max(len(each) for each in words.values())
    assert tl.bank_conflicts(np.array(slots) * size, size, 32, 4).total == expected


def test_known_sectors() -> None:
    assert tl.coalescing(LANE * 4, 4, 32).sectors.tolist() == [4]
    assert tl.coalescing(LANE * 4, 4, 32).efficiency == 1.0
    assert tl.coalescing(LANE * 4 + 4, 4, 32).sectors.tolist() == [5]
    assert tl.coalescing(LANE * 128, 4, 32).efficiency == 0.125
    assert tl.coalescing(LANE * 16, 16, 32).sectors.tolist() == [16]
    assert tl.coalescing(LANE * 0, 4, 32).sectors.tolist() == [1]
    assert tl.coalescing(LANE * 64, 64, 32).sectors.tolist() == [64]
    masked = tl.coalescing(np.stack([LANE * 4, LANE * 4]), 4, 32, np.stack([LANE < 8, LANE < 0]))
    assert masked.sectors.tolist() == [1, 0]
    assert masked.efficiency == 1.0


@pytest.mark.parametrize(
    ("strides", "extents", "size", "alignment", "multiple", "width"),
    [
        ((1024, 1), (128, 32), 2, 16, 0, 8),
        ((1100, 1), (128, 32), 2, 16, 0, 4),
        ((1100, 1), (1, 32), 2, 16, 0, 8),
        ((1001, 1), (128, 32), 2, 16, 0, 1),
        ((None, 1), (128, 32), 2, 16, 0, 1),
        ((1, 1024), (128, 32), 2, 16, 0, 1),
        ((1024, 1), (128, 100), 4, 16, 0, 4),
        ((1024, 1), (128, 7), 4, 16, 0, 1),
        ((1024, 1), (128, 32), 4, 8, 0, 2),
        ((1024, 1), (128, 32), 4, 16, 6, 2),
    ],
)
def test_vector_width(strides, extents, size, alignment, multiple, width) -> None:  # type: ignore[no-untyped-def]
    assert tl.vector_width(strides, extents, 8 * size, alignment, (2, 4, 8, 16), multiple) == width


@given(
    st.tuples(st.sampled_from([1, 8, 48, 100, 128]), st.sampled_from([7, 32, 48, 64, 96, 100])),
    st.sampled_from([0, 4, 8]),
    st.sampled_from([None, Swizzle(1, 3, 3), Swizzle(2, 3, 3), Swizzle(3, 3, 3), Swizzle(3, 3, 4)]),
    st.sampled_from([(0, 1), (1, 0)]),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_shared_layouts_are_injective(shape, pad, swizzle, order) -> None:  # type: ignore[no-untyped-def]
    layout = SharedLayout.ordered(shape, order, pad, swizzle)
    assert layout.is_injective()
    assert layout.all_offsets().max() < layout.cosize
    assert rebuilt(layout) == layout
    assert layout.order == order or 1 in shape
    if swizzle is not None:
        flat = np.arange(swizzle.period)
        assert np.array_equal(swizzle(swizzle(flat)), flat)
        assert np.array_equal(swizzle(flat), flat ^ ((flat & swizzle.mask) >> swizzle.shift))


def test_swizzle_is_the_oracles() -> None:
    import tensor_layouts as oracle

    for bits, base, shift in [(1, 3, 3), (2, 4, 3), (3, 3, 3), (3, 2, 5)]:
        mine, theirs = Swizzle(bits, base, shift), oracle.Swizzle(bits, base, shift)
        assert [int(x) for x in mine(np.arange(4096))] == [theirs(i) for i in range(4096)]
    assert repr(SharedLayout.ordered((128, 32), swizzle=Swizzle(2, 3, 3))) == (
        "T.SharedLayout((128, 32), (32, 1), swizzle=T.Swizzle(2, 3, 3))"
    )


def rows_of_vectors(shape: tuple[int, int], vector: int) -> AccessPattern:
    """ldmatrix's way: 8 lanes a phase read 8 rows at one column."""
    return AccessPattern((LANE[None, :] % shape[0], np.arange(0, shape[1], vector)[:, None]), vector)


@pytest.mark.parametrize("columns", [32, 64, 128, 96])
def test_best_swizzle_has_no_conflicts(columns: int) -> None:
    shape = (64, columns)
    write = AccessPattern((np.arange(32)[None, :] * 8 // columns, np.arange(32)[None, :] * 8 % columns), 8)
    best = tl.best_swizzle(shape, 16, 16, [rows_of_vectors(shape, 8), write], 32, 4)
    assert best.wavefronts == best.ideal
    assert best.layout.is_injective()
    assert best.layout.vector % 8 == 0
    if columns != 96:
        assert best.layout.swizzle is not None
        assert best.bytes == 64 * columns * 2
    assert (
        tl.price(SharedLayout.ordered(shape), 16, [rows_of_vectors(shape, 8)], 32, 4).wavefronts > best.ideal
    )


def test_best_swizzle_keeps_it_plain_where_nothing_conflicts() -> None:
    row = AccessPattern((np.zeros((1, 32), int), LANE[None, :]))
    assert tl.best_swizzle((32, 32), 32, 16, [row], 32, 4).layout == SharedLayout.ordered((32, 32))
    assert len(tl.candidates((1000,), 32, 16)) == 1
    assert len(tl.candidates((8, 7), 32, 16)) == 1


def test_drawings() -> None:
    text = tl.draw_fragment(Fragment((2, 3), ((4, 1, 1),), ((2, 0, 1),)))
    assert text.splitlines() == ["0:0 1:0 2:0   .", "0:1 1:1 2:1   ."]
    grid = tl.draw_banks(SharedLayout.ordered((3, 8), swizzle=Swizzle(1, 2, 1)), 32, 32, 4).splitlines()
    assert grid[0].split() == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert grid[1].split() == ["12", "13", "14", "15", "8", "9", "10", "11"]
    with pytest.raises(LayoutError):
        tl.draw_fragment(tl.spread((4, 4, 4), 32, 4, 32))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Swizzle(3, 3, 2),
        lambda: SharedLayout((4, 4), (4,)),
        lambda: SharedLayout((4, 4), (4, 0)),
        lambda: SharedLayout.ordered((4, 4), (0, 0)),
        lambda: tl.bank_conflicts(np.zeros((2, 2, 2)), 4, 32, 4),
    ],
)
def test_wrong_layouts_are_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LayoutError):
        make()
