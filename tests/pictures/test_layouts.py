"""Who holds what: against enumeration, against the stage's own text, and for mma against what a card gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels import gemm_kernel, reduce_kernel, softmax_kernel
from tests.pictures.test_accesses import kernel_at
from tests.targets.cuda.test_mma_recorded import recorded
from tilebench.errors import LayoutError
from tilebench.layout import Fragment, SharedLayout, Swizzle
from tilebench.pictures.tile_layouts import TileLayout

GEMM: dict[str, Any] = {"M": 128, "N": 128, "K": 256, "block_M": 64, "block_N": 64, "threads": 128}


def named(kernel: Any, name: str) -> TileLayout:
    return next(layout for layout in kernel.layouts() if layout.name == name)


def test_the_tiles_of_a_product_in_order() -> None:
    kernel = kernel_at(gemm_kernel, num_stages=3, **GEMM)
    assert [(one.kind, one.name) for one in kernel.layouts()] == [
        ("shared", "A_s"), ("shared", "B_s"), ("fragment", "C_l"), ("fragment", "C_l_narrow"),
        ("fragment", "C_l_as"), ("instruction", "mma m16n8k16: A"), ("instruction", "mma m16n8k16: B"),
        ("instruction", "mma m16n8k16: C"), ("mapping", "copy A to A_s"), ("mapping", "copy B to B_s"),
        ("mapping", "copy C_l to C_l_narrow"), ("mapping", "copy C_l_as to C"),
    ]  # fmt: skip
    assert named(kernel, "A_s").versions == 3
    assert [named(kernel, name).line for name in ("A_s", "copy A to A_s")] == [29, 34]


def test_a_fragment_holds_what_its_own_evaluation_says() -> None:
    """Every element of the accumulator: one thread and register, as the fragment's inverse has them."""
    kernel = kernel_at(gemm_kernel, **GEMM)
    layout = named(kernel, "C_l")
    fragment: Fragment = layout.fragment
    threads, registers = fragment.owner_of(tuple(np.indices(fragment.extents)))
    for index in [(0, 0), (0, 1), (8, 0), (63, 63), (17, 42)]:
        assert layout.holders(index) == ((int(threads[index]), int(registers[index])),)
    assert repr(fragment) in kernel.stage("laid_out")


def test_copies_are_all_told_the_owner_first() -> None:
    top = named(kernel_at(softmax_kernel, M=64, N=1000), "top")
    assert top.copies == 32
    holders = top.holders((2,))
    assert [holder.thread for holder in holders] == list(range(64, 96))
    assert {holder.register for holder in holders} == {0}


def test_ghosts_are_held_by_nobody_outside_the_tile() -> None:
    layout = named(kernel_at(softmax_kernel, M=64, N=1000), "X")
    assert layout.extents == (4, 1000)
    assert layout.holders((3, 999)) == ((124, 31),)


@pytest.mark.parametrize("name", ["A_s", "B_s"])
def test_offsets_are_those_of_the_shared_layout(name: str) -> None:
    layout = named(kernel_at(gemm_kernel, **GEMM), name)
    rows, columns = layout.extents
    own = SharedLayout(layout.extents, (columns, 1), Swizzle(*layout.swizzle))
    offsets = own.all_offsets()
    for index in [(0, 0), (1, 8), (7, 31), (rows - 1, columns - 1), (13, 5)]:
        assert layout.offset(index) == offsets[index]


def test_panels_are_modes_of_their_dimension() -> None:
    layout = TileLayout(
        "S",
        "shared",
        0,
        "float16",
        16,
        (128, 128),
        modes=(((128, 64),), ((64, 1), (2, 8192))),
        swizzle=(3, 3, 3),
    )
    own = SharedLayout((128, (64, 2)), (64, (1, 8192)), Swizzle(3, 3, 3)).all_offsets()
    assert all(
        layout.offset(index) == own[index] for index in [(0, 0), (1, 8), (5, 64), (127, 127), (9, 100)]
    )


def test_what_is_asked_of_the_wrong_kind_is_refused() -> None:
    kernel = kernel_at(gemm_kernel, **GEMM)
    with pytest.raises(LayoutError, match="A_s lies in shared memory, and no thread holds it"):
        named(kernel, "A_s").holders((0, 0))
    with pytest.raises(LayoutError, match="C_l is held by threads, and has no offsets"):
        named(kernel, "C_l").offset((0, 0))


def test_operands_of_mma_lie_as_the_card_takes_them() -> None:
    """The registers of PTX's figures for m16n8k16, lane by lane, and a card's products put through them.

    A: a row is the lane over 4, a column twice the lane's remainder; registers of pairs go 8 rows down first.
    """
    kernel = kernel_at(gemm_kernel, **GEMM)
    a, b, c = (named(kernel, f"mma m16n8k16: {letter}") for letter in "ABC")
    for lane in range(32):
        group, inside = divmod(lane, 4)
        for k in range(8):
            row = group + 8 * (k // 2 % 2)
            assert a.holders((row, 2 * inside + k % 2 + 8 * (k // 4))) == ((lane, k),)
        for k in range(4):
            assert b.holders((2 * inside + k % 2 + 8 * (k // 2), group)) == ((lane, k),)
            assert c.holders((group + 8 * (k // 2), 2 * inside + k % 2)) == ((lane, k),)


def test_recorded_products_are_those_of_the_operands_drawn() -> None:
    """Registers of a card's A and B, laid out by the picture's holders, give the sums that it recorded."""
    left, right, before, after = recorded("f16")
    kernel = kernel_at(gemm_kernel, **GEMM)
    layouts = {letter: named(kernel, f"mma m16n8k16: {letter}") for letter in "ABC"}
    shapes = {letter: layout.extents for letter, layout in layouts.items()}
    assert shapes == {"A": left.shape[1:], "B": right.shape[1:], "C": after.shape[1:]}
    registers: dict[str, Any] = {}
    for letter, tile in (("A", left[0]), ("B", right[0])):
        held = np.zeros((32, layouts[letter].fragment.values))
        for index in np.ndindex(*shapes[letter]):
            ((thread, register),) = layouts[letter].holders(index)
            held[thread, register] = tile[index]
        registers[letter] = held
    # What lane 5 brings: row 1 and 9 of A, column 1 of B; its sums are of those rows and its own columns.
    assert registers["A"][5, 0] == float(left[0][1, 2])
    a, b = (np.asarray(tile[0], np.float64) for tile in (left, right))
    product = a @ b + before[0]
    ((thread, register),) = layouts["C"].holders((1, 2))
    assert (thread, register) == (5, 0)
    size = np.abs(np.asarray(left[0], np.float64)) @ np.abs(np.asarray(right[0], np.float64)) + np.abs(
        before[0]
    )
    assert abs(product[1, 2] - after[0][1, 2]) <= 2.0**-19 * size[1, 2]


def test_conversions_have_their_price_and_the_other_ways() -> None:
    (change,) = kernel_at(gemm_kernel, **GEMM).conversions()
    assert (change.source, change.target, change.line, change.way) == ("C_l_narrow", "C_l_as", 37, "shfl")
    assert change.price == "16 shuffles, 48 selections"
    assert [way.name for way in change.ways] == ["shfl", "shared"]
    assert change.ways[0].words == change.price
    assert change.ways[0].cycles < change.ways[1].cycles
    assert kernel_at(reduce_kernel, M=64, N=1024).conversions() == ()
