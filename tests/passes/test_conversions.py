"""Fragments that change their layout: every way gives every element, in the simulator and as CUDA text."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.passes.lowering import lower
from tests.simulated import run_threaded
from tilebench.errors import LayoutError
from tilebench.ir import dtype_of, show
from tilebench.layout import Fragment, spread
from tilebench.passes.analysis.conversions import Way, ways
from tilebench.targets.cuda.machines import machine_of

MACHINE = machine_of("sm_90a")
# What m16n8 atoms leave in a lane: two neighbours of a row, two rows 8 apart, four lanes a row.
ATOMS = Fragment(
    (64, 64), ((4, 1, 2), (8, 0, 1), (2, 1, 32), (2, 0, 32)), ((2, 1, 1), (2, 0, 8), (4, 1, 8), (2, 0, 16))
)
QUADS = Fragment((64, 64), ((4, 1, 8), (8, 0, 1), (2, 1, 32), (2, 0, 32)), ((8, 1, 1), (2, 0, 8), (2, 0, 16)))
ROWS = Fragment((64, 64), ((8, 1, 8), (16, 0, 1)), ((8, 1, 1), (4, 0, 16)))
KERNEL = """\
@T.prim_func
def main(A: T.Tensor({extents}, T.{dtype}), O: T.Tensor({extents}, T.{dtype})):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment({extents}, T.{dtype}, layout={src!r})
        y = T.alloc_fragment({extents}, T.{dtype}, layout={dst!r})
        T.copy(A[{box}], x, map={src_map!r})
        T.convert_layout(x, y, by={by}, through={through!r})
        T.copy(y, O[{box}], map={dst_map!r})
"""


def text_of(src: Fragment, dst: Fragment, dtype: str, way: Way) -> str:
    extents = src.extents
    box = ", ".join(f"0 : {extent}" for extent in extents)
    return KERNEL.format(
        extents=extents, dtype=dtype, threads=src.threads, src=src, dst=dst, box=box, by=show(way.by),
        through=way.through, src_map=without_ones(src), dst_map=without_ones(dst),
    )  # fmt: skip


def without_ones(layout: Fragment) -> Fragment:
    """The map of a copy of the tile, which leaves dimensions of extent 1 out."""
    kept = [k for k, extent in enumerate(layout.extents) if extent != 1] or [0]
    place = {dim: k for k, dim in enumerate(kept)}
    thread = tuple((c, place.get(d, -1), s if d in place else 0) for c, d, s in layout.thread)
    value = tuple((c, place[d], s) for c, d, s in layout.value if d in place)
    return Fragment(tuple(layout.extents[k] for k in kept), thread, value)


def converted(src: Fragment, dst: Fragment, dtype: str, way: Way) -> None:
    """Every element arrives, whichever bits it has."""
    function, _ = lower(text_of(src, dst, dtype, way), "sm_90a")
    kind = dtype_of(dtype)
    size = int(np.prod(src.extents))
    if dtype == "bool":
        values: Any = np.random.default_rng(1).integers(0, 2, size).astype(np.bool_)
    else:
        values = (np.arange(size) * 37 % 101 - (50 if kind.kind != "uint" else 0)).astype(kind.numpy)
    arrays = {"A": values.reshape(src.extents), "O": np.zeros(src.extents, values.dtype)}
    run_threaded(function, arrays, warp=32)
    assert (arrays["O"] == arrays["A"]).all()


def drawn(rng: random.Random, keep_warps: bool) -> tuple[Fragment, Fragment]:
    """Two layouts of one tile whose bits are homed anywhere, with copies; of one set of warps or not."""
    extents = [rng.randint(0, 4) for _ in range(rng.randint(1, 3))]
    bits = [(dim, 1 << k) for dim, count in enumerate(extents) for k in range(count)]
    threads = rng.choice((5, 6))
    held = min(threads, len(bits))

    def layout(bits: list[tuple[int, int]], count: int) -> Fragment:
        modes = [(2, dim, step) for dim, step in bits[:count]] + [(2, -1, 0)] * (threads - count)
        rng.shuffle(modes)
        values = tuple((2, dim, step) for dim, step in bits[count:])
        return Fragment(tuple(1 << count for count in extents), tuple(modes), values)

    rng.shuffle(bits)
    src = layout(bits, rng.randint(max(0, held - 2), held))
    if keep_warps and all(dim >= 0 for _, dim, _ in src.thread):
        moved = [*src.thread[:5], *src.value]
        rng.shuffle(moved)
        return src, Fragment(src.extents, (*moved[:5], *src.thread[5:]), tuple(moved[5:]))
    rng.shuffle(bits)
    return src, layout(bits, rng.randint(max(0, held - 2), held))


@pytest.mark.parametrize("seed", range(60))
def test_every_way_between_two_layouts_that_are_drawn_gives_every_element(seed: int) -> None:
    rng = random.Random(seed)
    src, dst = drawn(rng, keep_warps=seed % 3 > 0)
    dtype = rng.choice(
        ("float16", "float32", "int8", "float8_e4m3fn", "float64", "bfloat16", "bool", "int64")
    )
    for way in ways(src, dst, dtype_of(dtype), MACHINE):
        converted(src, dst, dtype, way)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_accumulator_comes_to_vectors_of_16_bytes(dtype: str) -> None:
    shuffles, memory = ways(ATOMS, QUADS, dtype_of(dtype), MACHINE)
    words = 16 if dtype == "float16" else 32
    assert (shuffles.by.name, shuffles.shuffles, shuffles.selections) == ("shfl", words, 3 * words)
    assert (memory.by.name, memory.barriers) == ("shared", 1)
    converted(ATOMS, QUADS, dtype, shuffles)
    converted(ATOMS, QUADS, dtype, memory)


def test_whole_rows_of_other_warps_come_through_shared_memory_without_conflicts() -> None:
    (way,) = ways(ATOMS, ROWS, dtype_of("float16"), MACHINE)
    assert (way.by.name, way.conflicts) == ("shared", 0)
    # 16 stores of two neighbours, 4 loads of 16 bytes.
    assert (way.accesses, way.bytes) == (16 + 4, 2 * 64 * 64 * 2)
    converted(ATOMS, ROWS, "float16", way)


def test_another_order_of_registers_costs_nothing() -> None:
    turned = Fragment(ATOMS.extents, ATOMS.thread, ATOMS.value[::-1])
    way = ways(ATOMS, turned, dtype_of("float16"), MACHINE)[0]
    assert (way.by.name, way.cycles, way.words) == ("rename", 0, "nothing")
    converted(ATOMS, turned, "float16", way)


@pytest.mark.parametrize("extents", [(40, 96), (33, 80), (7, 5), (100,)])
def test_tiles_of_odd_extents(extents: tuple[int, ...]) -> None:
    src, dst = spread(extents, 64, 1, 32), spread(extents, 64, 8, 32, len(extents) - 1)
    for way in ways(src, dst, dtype_of("float16"), MACHINE):
        converted(src, dst, "float16", way)


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("rename", "cannot come to where y has them by rename"),
        ("nonsense", "T.convert_layout has no code by the instruction 'nonsense'"),
    ],
)
def test_a_way_that_does_not_reach_is_refused(by: str, said: str) -> None:
    way = ways(ATOMS, QUADS, dtype_of("float16"), MACHINE)[0]
    text = text_of(ATOMS, QUADS, "float16", way).replace("'shfl'", f"'{by}'").replace('"shfl"', f'"{by}"')
    with pytest.raises(Exception, match=said):
        lower(text, "sm_90a")


def test_a_layout_of_another_tile_is_refused() -> None:
    way = ways(ATOMS, ROWS, dtype_of("float16"), MACHINE)[0]
    text = text_of(ATOMS, ROWS, "float16", way)
    wrong = text.replace(repr(way.through), "T.SharedLayout((32, 64), (64, 1))")
    with pytest.raises(LayoutError, match="x of extents \\(64, 64\\) goes through a layout of \\(32, 64\\)"):
        lower(wrong, "sm_90a")


# -- from a kernel's text

LAYOUTS = """
x = T.alloc_fragment((64, 64), "{dtype}")
y = T.alloc_fragment((64, 64), "{other}")
T.annotate_layout({{
    x: T.Fragment((64, 64), lambda i, j: ({warp} + {x})),
    y: T.Fragment((64, 64), lambda i, j: ({warp} + {y})),
}})
T.copy(A, x, coalesced_width=1)
T.copy(x, y)
T.copy(y, O, coalesced_width=1)
"""
WARP = "i // 32 * 64 + j // 32 * 32 + i % 8 * 4"
PAIRS = "j % 8 // 2, j % 2 + i // 8 % 2 * 2 + j // 8 % 4 * 4 + i // 16 % 2 * 16"
ROW = "j // 8 % 4, j % 8 + i // 8 % 2 * 8 + i // 16 % 2 * 16"
HEAD = 'A: T.Tensor((64, 64), "{dtype}"), O: T.Tensor((64, 64), "{other}")'


@pytest.mark.parametrize(
    ("dtype", "other", "changed"),
    [
        ("float16", "float16", "T.convert_layout(x, y, by"),
        ("float32", "float16", "T.convert_layout(x_narrow, y, by"),
        ("float16", "float32", "T.convert_layout(x, x_as, by"),
        ("int8", "int32", "T.convert_layout(x, x_as, by"),
        ("bool", "bool", "T.convert_layout(x, y, by"),
    ],
)
def test_a_copy_between_fragments_changes_places_in_the_narrower_dtype(
    dtype: str, other: str, changed: str
) -> None:
    body, head = (
        LAYOUTS.format(dtype=dtype, other=other, warp=WARP, x=PAIRS, y=ROW),
        HEAD.format(dtype=dtype, other=other),
    )
    everywhere(body, head)
    stage = kernel_of(body, head).using(target="cuda:sm_90a")().stage("laid_out")
    assert stage.count("T.convert_layout(") == 1
    assert changed in stage


def halves(y: str) -> tuple[str, str]:
    """The body and parameters of a kernel in float16, with how y lies."""
    return (
        LAYOUTS.format(dtype="float16", other="float16", warp=WARP, x=PAIRS, y=y),
        HEAD.format(dtype="float16", other="float16"),
    )


def test_the_price_of_each_way_is_told() -> None:
    record = kernel_of(*halves(ROW)).using(target="cuda:sm_90a")().record()
    (remark,) = [remark for remark in record.remarks if remark.pass_name == "convert_layouts"]
    assert remark.message == "x changes its layout for this statement by shfl: 16 shuffles, 48 selections"
    assert remark.values["cycles_shfl"] == 112
    assert float(remark.values["cycles_shared"]) > 112


def test_another_order_of_registers_is_no_conversion() -> None:
    body, head = halves("j % 8 // 2, i // 16 % 2 + j // 8 % 4 * 2 + i // 8 % 2 * 8 + j % 2 * 16")
    everywhere(body, head)
    assert "convert_layout" not in kernel_of(body, head).using(target="cuda:sm_90a")().stage("laid_out")


COLUMN = """
A_s = T.alloc_shared(({m}, 32), "float16")
B_s = T.alloc_shared((32, 1), "float16")
acc = T.alloc_fragment(({m}, 1), "float32")
y = T.alloc_fragment(({m}, 32), "float32")
T.copy(A, A_s)
T.copy(B, B_s)
T.gemm(A_s, B_s, acc, clear_accum=True)
for i, j in T.Parallel({m}, 32):
    y[i, j] = acc[i, 0] + A_s[i, j]
T.copy(acc, O)
T.copy(y, P)
"""


@pytest.mark.parametrize("m", [12, 64])
def test_the_one_column_of_a_product_is_used_by_the_lanes_that_have_it(m: int) -> None:
    """The other lanes have columns that are none: what they would compute with them is nobody's."""
    head = f'A: T.Tensor(({m}, 32), "float16"), B: T.Tensor((32, 1), "float16"), '
    head += f'O: T.Tensor(({m}, 1), "float32"), P: T.Tensor(({m}, 32), "float32")'
    found = everywhere(COLUMN.format(m=m), head, exact=False)
    right = found["A"].astype(np.float64) @ found["B"].astype(np.float64)
    np.testing.assert_allclose(found["P"], right + found["A"], rtol=0, atol=1e-4)
    stage = kernel_of(COLUMN.format(m=m), head).using(target="cuda:sm_80")().stage("laid_out")
    assert "T.convert_layout(acc" not in stage


def test_what_is_known_of_rows_serves_both_products_of_attention() -> None:
    """By multiply-adds of float32, where no warps' policy puts the rows of both on the same threads."""
    from tests.wellknown.table import CASES

    (case,) = [c for c in CASES if c.name == "attention bshd causal 2/2 heads 64x64x64 float32"]
    stage = case.kernel.using(target="cuda:sm_90a")(**case.parameters).stage("laid_out")
    assert 'by=T.Instr("fma")' in stage
    assert "T.convert_layout" not in stage


@tilebench.jit(target="cuda:sm_90a")
def squares_by_weights(rows: int, n: int) -> Any:
    """Weights lay out the loop at the end, and that the scales, which say nothing of squares."""

    @T.prim_func
    def main(
        x: T.Tensor((rows, n), "float16"),
        weight: T.Tensor((n,), "float16"),
        y: T.Tensor((rows, n), "float16"),
    ):
        with T.Kernel(1, threads=64) as bx:
            tile = T.alloc_shared((1, n), "float16")
            w = T.alloc_fragment((n,), "float16")
            T.copy(weight, w)
            for turn in T.Pipelined(rows, num_stages=2):
                T.copy(x[turn, 0], tile)
                v = T.alloc_fragment((1, n), "float32")
                square = T.alloc_fragment((1, n), "float32")
                scale = T.alloc_fragment((1,), "float32")
                T.copy(tile, v)
                for i, j in T.Parallel(1, n):
                    square[i, j] = v[i, j] * v[i, j]
                T.reduce_sum(square, scale, dim=1)
                for i, j in T.Parallel(1, n):
                    y[turn + i, j] = v[i, j] * scale[i] * w[j]

    return main


def test_what_is_reduced_lies_as_what_it_is_made_of() -> None:
    kernel = squares_by_weights(4, 1024)
    assert "convert_layout" not in kernel.stage("laid_out")
