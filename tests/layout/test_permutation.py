"""Orders of elements in memory: told from what is none, and the same place by index as by number."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tilebench.errors import LayoutError
from tilebench.ir import Arith, Cast, Expr, Load, Var, map_children, show
from tilebench.ir.arith import evaluate
from tilebench.ir.dtypes import ALL
from tilebench.ir.expr import Buffer
from tilebench.layout.permutation import Permutation, offsets, placed

b, i, j, k, N = (Var(name) for name in ("b", "i", "j", "k", "N"))


def xor(x: Expr, y: Expr) -> Expr:
    return Arith("^", (x, y))


ORDERS: list[tuple[tuple[int, ...], tuple[Expr, ...]]] = [
    ((6, 10), (j, i)),
    ((16, 3, 64), (i // 8, j, k // 8, k % 2, i % 8 * 4 + k % 8 // 2)),
    ((24, 5, 48), (i // 8, j, k // 8, k % 2, i % 8 * 4 + k % 8 // 2)),
    ((8, 16), (i, xor(j, i % 8))),
    ((8, 16), (i * 16 + j,)),
    ((8, 6, 4), (k, j * 8 + i)),
    ((1, 7), (i, j)),
]


def numbers(expr: Expr, values: dict[str, Any]) -> Any:
    """As `evaluate`, with conversions, which change nothing where nothing wraps."""

    def plain(part: Any) -> Any:
        return plain(part.value) if isinstance(part, Cast) else map_children(part, plain)

    return evaluate(plain(expr), values)


@pytest.mark.parametrize(("shape", "index"), ORDERS, ids=lambda part: show(part))
def test_the_place_by_index_is_the_place_by_number(shape: tuple[int, ...], index: tuple[Expr, ...]) -> None:
    names = ("i", "j", "k")[: len(shape)]
    order = Permutation(shape, names, index)
    number = offsets(order)
    np.testing.assert_array_equal(np.sort(number, axis=None), np.arange(number.size))
    values = dict(zip(names, np.indices(shape), strict=True))
    place = placed(order, [Var(name) for name in names])
    found = [np.broadcast_to(numbers(part, values), shape) for part in place]
    np.testing.assert_array_equal(np.ravel_multi_index(found, shape), number)


def test_sizes_of_a_launch_change_places_as_a_whole() -> None:
    order = Permutation((4, N, 8), ("i", "j", "k"), (j, i, k))
    place = placed(order, (i, j, k))
    for n in (1, 3, 16):
        values: dict[str, Any] = dict(zip(("i", "j", "k"), np.indices((4, n, 8)), strict=True)) | {"N": n}
        found = [np.broadcast_to(numbers(part, values), (4, n, 8)) for part in place]
        wanted = values["j"] * 32 + values["i"] * 8 + values["k"]
        np.testing.assert_array_equal(np.ravel_multi_index(found, (4, n, 8)), wanted)


def test_numbers_past_int32_are_counted_in_64_bits() -> None:
    order = Permutation((3, 2**20, 5, 2**10), ("b", "i", "j", "k"), (b, j, i, k))
    place = placed(order, (b, i, j, k))
    assert {part.dtype for part in place} == {ALL["int32"]}
    values = {"b": 2, "i": 2**20 - 1, "j": 4, "k": 7}
    found = [int(numbers(part, values)) for part in place]
    number = ((found[0] * 2**20 + found[1]) * 5 + found[2]) * 2**10 + found[3]
    assert number == ((2 * 5 + 4) * 2**20 + 2**20 - 1) * 2**10 + 7
    assert "T.int64" in show(place[1])


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((12, 4), (i // 8, j, i % 8)),  # 12 is no multiple of 8: there are gaps
        ((8, 4), (i, i)),
        ((8, 4), (i,)),
        ((8, 8), (i * 2, j)),
        ((8, 8), (i // 2, j)),
        ((4, 4), (i + j, j)),
        ((8, 8), (xor(i, j), xor(i, j))),
    ],
)
def test_what_is_no_permutation(shape: tuple[int, ...], index: tuple[Expr, ...]) -> None:
    with pytest.raises(LayoutError, match="this layout is no permutation of the array"):
        Permutation(shape, ("i", "j"), index)


def test_an_index_below_zero() -> None:
    with pytest.raises(LayoutError, match="an index of the layout is below zero: i - j"):
        Permutation((8, 8), ("i", "j"), (Arith("-", (i, j)), j))


def test_what_cannot_be_asked() -> None:
    with pytest.raises(
        LayoutError, match=r"the extent of i is known only at a launch, .* takes it apart: i // 8"
    ):
        Permutation((N, 8), ("i", "j"), (i // 8, i % 8, j))
    with pytest.raises(
        LayoutError, match=re.escape("whole-number arithmetic of the element's indices, found A[i]")
    ):
        Permutation((8, 8), ("i", "j"), (Load(Buffer("A", (8,), ALL["int32"]), (i,)), j))
    with pytest.raises(LayoutError, match="cannot be checked: i \\^ j depends on 67108864 elements"):
        Permutation((8192, 8192), ("i", "j"), (i, xor(i, j)))


def test_a_large_array_is_checked_without_a_table() -> None:
    index = (b, i // 8, j, k // 8, k % 2, i % 8 * 4 + k % 8 // 2)
    order = Permutation((64, 65536, 32, 128), ("b", "i", "j", "k"), index)
    assert order.extents == (64, 8192, 32, 16, 2, 32)
