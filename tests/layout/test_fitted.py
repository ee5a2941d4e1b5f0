"""Layouts found in tables: what goes in as shape, stride and swizzle comes out with the same offsets."""

from __future__ import annotations

import numpy as np
import pytest

from tilebench.layout import Fragment, SharedLayout, Swizzle, atom_layout
from tilebench.layout.fitted import digits, fitted_fragment, fitted_shared

LAYOUTS = [
    SharedLayout.ordered((8, 12)),
    SharedLayout.ordered((8, 12), (1, 0), pad=3),
    SharedLayout.ordered((16, 32), swizzle=Swizzle(2, 3, 3)),
    SharedLayout.ordered((5, 64), swizzle=Swizzle(3, 3, 3)),
    SharedLayout(((4, 2), (8, 3)), ((8, 96), (1, 32))),
    atom_layout((16, 128), 16),
    atom_layout((24, 64), 16, 64),
    SharedLayout.ordered((7,)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_layout_is_found_again_in_its_offsets(layout: SharedLayout) -> None:
    found = fitted_shared(layout.all_offsets())
    assert found is not None
    np.testing.assert_array_equal(found.all_offsets(), layout.all_offsets())


def test_what_is_no_such_layout() -> None:
    rows, columns = np.indices((8, 8))
    assert fitted_shared(rows * 8 + (rows + columns) % 8) is None
    assert fitted_shared(63 - rows * 8 - columns) is None
    assert digits(np.array([0, 1, 2, 5, 6, 8])) is None
    assert digits(np.array([0, 1, 2, 5, 6, 7, 10])) == [(3, 1), (3, 5)]


FRAGMENTS = [
    Fragment((8, 8), ((8, 0, 1), (4, 1, 2)), ((2, 1, 1),)),
    Fragment((16, 8), ((4, 1, 2), (8, 0, 1)), ((2, 1, 1), (2, 0, 8))),
    Fragment((32,), ((32, 0, 1), (4, -1, 0))),
    Fragment((4, 4), ((2, -1, 0), (4, 0, 1)), ((4, 1, 1),)),
]


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_a_fragment_is_found_again(fragment: Fragment) -> None:
    threads, values = np.arange(fragment.threads)[:, None], np.arange(fragment.values)[None, :]
    where = fragment.coordinates(threads, values)
    index = np.zeros(fragment.extents, np.int64)
    index[where] = values
    holders: dict[tuple[int, ...], list[int]] = {}
    for thread in range(fragment.threads):
        for place in {tuple(int(c[thread, v % c.shape[1]]) for c in where) for v in range(fragment.values)}:
            holders.setdefault(place, []).append(thread)
    table = np.array([[holders[place][r] for place in np.ndindex(fragment.extents)]
                      for r in range(fragment.replicated_threads)])  # fmt: skip
    found = fitted_fragment(fragment.extents, table.reshape(-1, *fragment.extents), index)
    assert found is not None
    assert [c.tolist() for c in found.all_coordinates] == [c.tolist() for c in fragment.all_coordinates]


def test_threads_without_elements_are_no_fragment() -> None:
    thread = np.array([[0, 0, 2, 2]])
    assert fitted_fragment((4,), thread, np.array([0, 1, 0, 1])) is None
