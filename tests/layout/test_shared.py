"""Layouts of shared memory with several modes a dimension: atoms, their banks, offsets as expressions."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilebench.layout as tl
from tilebench.errors import LayoutError
from tilebench.ir import Const, Expr, Var
from tilebench.ir.arith import evaluate
from tilebench.ir.facts import Facts
from tilebench.layout import AccessPattern, SharedLayout, Swizzle, atom_layout, offset_expr, swizzle_expr


def test_the_atom_of_128_bytes_is_spelled_as_panels() -> None:
    layout = atom_layout((128, 128), 16)
    assert repr(layout) == ("T.SharedLayout((128, (64, 2)), (64, (1, 8192)), swizzle=T.Swizzle(3, 3, 3))")
    assert (layout.extents, layout.cosize, layout.vector, layout.order) == ((128, 128), 16384, 8, (0, 1))
    # Row 5 of the second panel: unit 0 of 16 bytes lies where unit 5 would.
    assert layout.offset((5, 64)) == 8192 + 5 * 64 + 5 * 8
    assert atom_layout((64, 64), 16) == SharedLayout((64, 64), (64, 1), Swizzle(3, 3, 3))
    assert atom_layout((64, 128), 16, 64, (1, 0)) == SharedLayout(
        ((32, 2), 128), ((1, 4096), 32), Swizzle(2, 3, 3)
    )


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize("atom", [32, 64, 128])
@pytest.mark.parametrize("shape", [(8, 256), (64, 512), (100, 768), (3, 16, 256)])
def test_atoms_are_the_oracles(bits: int, atom: int, shape: tuple[int, ...]) -> None:
    import tensor_layouts as oracle

    width = atom * 8 // bits
    layout = atom_layout(shape, bits, atom)
    rows, panels = -(-shape[-2] // 8) * 8, -(-shape[-1] // width)
    # The atom: 8 rows of `atom` bytes; atoms follow each other along the rows, then along the columns.
    inner = oracle.Layout(((8, rows // 8), (width, panels)), ((width, 8 * width), (1, rows * width)))
    base = {4: 5, 8: 4, 16: 3, 32: 2}[bits]
    theirs = oracle.compose(oracle.Swizzle({32: 1, 64: 2, 128: 3}[atom], base, 3), inner)
    tile = rows * panels * width
    lead = shape[0] if len(shape) == 3 else 1
    for block in range(lead):
        for i in range(0, shape[-2], 3):
            for j in range(0, shape[-1], 7):
                index = (block, i, j) if len(shape) == 3 else (i, j)
                assert layout.offset(index) == theirs(i, j) + block * tile
    assert layout.is_injective()
    assert layout.cosize <= lead * tile


def test_an_atom_reads_rows_and_columns_of_units_without_conflicts() -> None:
    # ldmatrix: each phase of 8 lanes reads 8 rows at one unit of 16 bytes.
    layout = atom_layout((128, 128), 16)
    lane = np.arange(32)
    columns = AccessPattern((lane[None, :] % 128, np.arange(0, 128, 8)[:, None]), 8)
    rows = AccessPattern((np.arange(0, 128, 2)[:, None] + lane[None, :] // 16, lane[None, :] * 8 % 128), 8)
    found = tl.price(layout, 16, [columns, rows], 32, 4)
    assert found.wavefronts == found.ideal
    plain = tl.price(SharedLayout((128, (64, 2)), (64, (1, 8192))), 16, [columns], 32, 4)
    assert plain.wavefronts == 8 * plain.ideal
    assert found.bytes == 128 * 128 * 2


def test_atoms_are_candidates_where_rows_are_wider() -> None:
    assert atom_layout((64, 128), 16) in tl.candidates((64, 128), 16, 16)
    assert atom_layout((64, 96), 16, 64) in tl.candidates((64, 96), 16, 16)
    assert all(len(dim.modes) == 1 for each in tl.candidates((64, 64), 16, 16) for dim in each.dims)
    # Rows of 192 bytes in panels of 64: no conflict, and no padding.
    columns = AccessPattern((np.arange(32)[None, :], np.arange(0, 96, 8)[:, None]), 8)
    found = tl.price(atom_layout((64, 96), 16, 64), 16, [columns], 32, 4)
    assert (found.wavefronts, found.bytes) == (found.ideal, 64 * 96 * 2)


LAYOUTS = [
    SharedLayout((12, (4, 6)), (4, (1, 48))),
    SharedLayout(((2, 3, 2), 8), ((8, 48, 16), 1)),
    SharedLayout((4, (2, 3, 4)), (1, (4, 32, 8))),
    SharedLayout((6, 10), (12, 1)),
    atom_layout((16, 128), 16),
    atom_layout((9, 64), 32, 64),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_offsets_as_expressions_are_the_offsets(layout: SharedLayout) -> None:
    names = tuple(Var(f"i{k}") for k in range(len(layout.extents)))
    ranges = {name.name: (0, extent - 1) for name, extent in zip(names, layout.extents, strict=True)}
    plain = offset_expr(layout, names, Facts(ranges))
    where = {name.name: each for name, each in zip(names, np.indices(layout.extents), strict=True)}
    linear = evaluate(plain, where)
    swizzle = layout.swizzle
    if swizzle is not None:
        at = Var("at")
        linear = evaluate(swizzle_expr(swizzle, at), {"at": linear})
    assert np.array_equal(linear, layout.all_offsets())


def test_digits_that_ranges_prove_are_left_out() -> None:
    layout = SharedLayout((16, (64, 2)), (64, (1, 1024)))
    i, j, k = Var("i"), Var("j"), Var("k")
    facts = Facts({"i": (0, 15), "j": (0, 7), "k": (0, 1)})

    def text(index: Expr) -> Expr:
        return offset_expr(layout, (i, index), facts)

    assert text(j * 8) == i * 64 + j * 8
    assert text(j * 8 + 64) == i * 64 + j * 8 + 1024
    assert text(j * 8 + k * 64) == i * 64 + j * 8 + k * 1024
    assert text(j * 8 + k * 56) == i * 64 + (j * 8 + k * 56) % 64 + (j * 8 + k * 56) // 64 * 1024
    assert text(Const(70)) == i * 64 + 1030
    # A name stays a name where its division cannot be proved away, and opens up where it can.
    named_too = facts.with_let(Var("x"), j * 8 + k * 64).with_let(Var("y"), j * 16)

    def named(name: str) -> Expr:
        return offset_expr(layout, (i, Var(name)), named_too)

    assert named("x") == text(j * 8 + k * 64)
    assert named("y") == i * 64 + Var("y") % 64 + Var("y") // 64 * 1024


@given(
    st.lists(
        st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3), min_size=1, max_size=3
    ).filter(lambda shape: prod(prod(each) for each in shape) <= 2048),
    st.randoms(use_true_random=False),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_any_order_of_modes_round_trips_and_vectors_lie_together(shape, random) -> None:  # type: ignore[no-untyped-def]
    places = [(d, m) for d, each in enumerate(shape) for m in range(len(each))]
    random.shuffle(places)
    strides = [[0] * len(each) for each in shape]
    step = 1
    for d, m in places:
        strides[d][m] = step
        step *= shape[d][m]
    layout = SharedLayout(tuple(map(tuple, shape)), tuple(map(tuple, strides)))
    assert eval(repr(layout), {"T": tl}) == layout  # noqa: S307
    assert layout.is_injective()
    assert layout.cosize == layout.size == step
    fast, width = layout.contiguous_dim, layout.vector
    if fast is not None:
        every = np.moveaxis(layout.all_offsets(), fast, -1)
        first = every[..., ::width]
        for k in range(width):
            assert np.array_equal(every[..., k::width], first + k)
        assert (first % width == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SharedLayout((32, 32), (16, 1)), "share an offset"),
        (lambda: SharedLayout((4, (2, 2)), (1, (4, 4))), "share an offset"),
        (lambda: SharedLayout((4, (2, 2)), (1, 4)), "do not have the same profile"),
        (lambda: SharedLayout((4, 4), (4, 0)), "a stride of at least 1"),
        (lambda: atom_layout((8, 32), 16), "narrower than a swizzle atom of 128 bytes"),
        (lambda: atom_layout((8, 128), 16, 96), "no swizzle atom of 96 bytes"),
    ],
)
def test_wrong_layouts_are_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LayoutError, match=message):
        make()


@pytest.mark.parametrize("rows", range(1, 20))
@pytest.mark.parametrize("swizzle", [Swizzle(1, 3, 3), Swizzle(2, 3, 4), Swizzle(3, 3, 3), Swizzle(3, 0, 5)])
def test_a_buffer_holds_every_offset_that_its_swizzle_makes(rows: int, swizzle: Swizzle) -> None:
    layout = SharedLayout.ordered((rows, 24), swizzle=swizzle)
    assert layout.all_offsets().max() < layout.cosize
    assert layout.is_injective()
