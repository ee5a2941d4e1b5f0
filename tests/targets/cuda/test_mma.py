"""Products by the tensor cores: values in the simulator, the instructions in the text, and cubins."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.errors import DTypeError, LanguageError, LayoutError
from tilebench.ir.dtypes import float16, float64
from tilebench.kernel.edited import compile_from
from tilebench.layout import Fragment
from tilebench.schedule import Schedule
from tilebench.targets import resolve
from tilebench.targets.cuda.instructions.tensor_sums import cut_off, product_sums
from tilebench.targets.cuda.tensor_cores import MmaShape, shape_named

NUMPY: dict[str, Any] = {
    name: np.dtype(getattr(ml_dtypes, name, None) or name)
    for name in (
        "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "float8_e4m3fn", "float8_e5m2",
    )
}  # fmt: skip


@tilebench.jit
def product(
    M, N, K, tile=(32, 32, 32), turned=(False, False), ab=("float16", "float16"), acc="float32", stages=2,
    threads=64, fragments="", promises=(False, False), policy=None, clear=None,
):  # fmt: skip
    bm, bn, bk = tile
    ta, tb = turned
    a_tile, b_tile = (bk, bm) if ta else (bm, bk), (bn, bk) if tb else (bk, bn)

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if ta else (M, K), ab[0]),
        B: T.Tensor((N, K) if tb else (K, N), ab[1]),
        C: T.Tensor((M, N), acc),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared(a_tile, ab[0])
            B_s = T.alloc_shared(b_tile, ab[1])
            A_l = T.alloc_fragment(a_tile, ab[0])
            B_l = T.alloc_fragment(b_tile, ab[1])
            C_l = T.alloc_fragment((bm, bn), acc)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if ta:
                    T.copy(A[ko * bk, by * bm], A_s)
                else:
                    T.copy(A[by * bm, ko * bk], A_s)
                if tb:
                    T.copy(B[bx * bn, ko * bk], B_s)
                else:
                    T.copy(B[ko * bk, bx * bn], B_s)
                if "a" in fragments:
                    T.copy(A_s, A_l)
                if "b" in fragments:
                    T.copy(B_s, B_l)
                T.gemm(
                    A_l if "a" in fragments else A_s,
                    B_l if "b" in fragments else B_s,
                    C_l,
                    transpose_A=ta,
                    transpose_B=tb,
                    allow_tf32=promises[0],
                    fast_accum=promises[1],
                    policy=policy,
                    clear_accum=False if clear is None else ko == clear,
                )
            T.copy(C_l, C[by * bm, bx * bn])

    return main


def numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Any:
    if dtype in ("int8", "uint8"):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(NUMPY[dtype])


def check(shape: tuple[int, int, int], arch: str = "sm_80", schedule: Any = None, **options: Any) -> str:
    """The product in the simulator against NumPy, within its bound; gives the stage `threaded`."""
    m, n, k = shape
    kernel = product.using(target=f"cuda:{arch}", schedule=schedule)(m, n, k, **options)
    text = kernel.stage("threaded")
    kernel.stage("cuda")
    ta, tb = options.get("turned", (False, False))
    ab, acc = options.get("ab", ("float16", "float16")), options.get("acc", "float32")
    rng = np.random.default_rng(1)
    a = numbers(rng, (k, m) if ta else (m, k), ab[0])
    b = numbers(rng, (n, k) if tb else (k, n), ab[1])
    c = np.full((m, n), 77, NUMPY[acc])
    run_threaded(kernel.compilation.functions["threaded"], {"A": a, "B": b, "C": c}, warp=32)
    x, y = (a.T if ta else a).astype(np.float64), (b.T if tb else b).astype(np.float64)
    size, exact = np.abs(x) @ np.abs(y), x @ y
    if options.get("clear") is not None:
        kept = options["clear"] * options.get("tile", (32, 32, 32))[2]
        size, exact = np.abs(x[:, kept:]) @ np.abs(y[kept:]), x[:, kept:] @ y[kept:]
    if ab[0] == "float32":
        size = size * (1 + 2.0**-9 / (k * 2.0**-23))
    if ab[0].startswith("float8"):
        # 14 bits of a sum of 128 terms, or of all.
        longest = k if options.get("promises", (False, False))[1] else 128
        size = size * (1 + min(k, longest) / 32 * 2.0**-12 / (k * 2.0**-23))
    if acc == "int32":
        np.testing.assert_array_equal(c, exact)
        return text
    # Cut off instead of rounded, in each of k steps; a narrow sum is rounded once a step of the loop.
    step = options.get("tile", (32, 32, 32))[2]
    roundoff = {"float32": 0.0, "float64": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}[acc]
    unit = 2.0**-52 if acc == "float64" else 2.0**-23
    bound = size * (k * unit + -(-k // step) * roundoff)
    assert (np.abs(c.astype(np.float64) - exact) <= bound).all()
    return text


EVERY_TURN = [(a, b) for a in (False, True) for b in (False, True)]


@pytest.mark.parametrize("turned", EVERY_TURN)
@pytest.mark.parametrize(
    ("shape", "options", "loads"),
    [
        ((64, 64, 64), {}, 2),
        # Extents that neither the tile nor the instruction divides, in rows of whole vectors and not.
        ((72, 72, 40), {"tile": (40, 48, 24)}, 4),
        ((50, 70, 33), {"tile": (20, 28, 12), "threads": 96, "stages": 3}, None),
        ((64, 64, 64), {"fragments": "a"}, 1),
        ((64, 64, 64), {"fragments": "b"}, 1),
        ((40, 44, 50), {"fragments": "ab", "tile": (24, 28, 20)}, 0),
        ((32, 32, 64), {"ab": ("bfloat16", "bfloat16"), "acc": "bfloat16"}, 2),
        ((32, 32, 64), {"acc": "float16", "threads": 128}, 2),
        ((64, 32, 64), {"arch": "sm_75"}, 2),
    ],
)
def test_products_of_16_bit_floats(
    turned: tuple[bool, bool], shape: tuple[int, int, int], options: dict[str, Any], loads: int | None
) -> None:
    text = check(shape, turned=turned, **options)
    assert "T.mma(" in text
    if loads is not None:
        assert text.count("T.ldmatrix(") == loads


@pytest.mark.parametrize("turned", EVERY_TURN)
@pytest.mark.parametrize(
    ("ab", "acc", "arch", "shape"),
    [
        (("int8", "int8"), "int32", "sm_80", "m16n8k32"),
        (("uint8", "int8"), "int32", "sm_80", "m16n8k32"),
        (("int8", "uint8"), "int32", "sm_75", "m8n8k16"),
        (("float64", "float64"), "float64", "sm_80", "m8n8k4"),
        (("float8_e4m3fn", "float8_e5m2"), "float32", "sm_89", "m16n8k32"),
    ],
)
def test_products_of_other_widths(
    turned: tuple[bool, bool], ab: tuple[str, str], acc: str, arch: str, shape: str
) -> None:
    for sizes, tile in (((32, 32, 64), (32, 32, 32)), ((20, 30, 50), (24, 24, 20))):
        text = check(sizes, arch, turned=turned, ab=ab, acc=acc, tile=tile)
        assert f'"{shape}")' in text
    # Rows of whole matrices run along k alone where elements are no 16 bits wide.
    whole = check((32, 32, 64), arch, turned=turned, ab=ab, acc=acc).count("T.ldmatrix(")
    assert whole == (0 if acc == "float64" else (not turned[0]) + turned[1])


def test_where_ordinary_lanes_are_as_fast_or_alone_exact() -> None:
    assert "T.mma(" not in check((32, 32, 32), "sm_86", ab=("float64", "float64"), acc="float64")
    assert "T.mma(" not in check((32, 32, 32), ab=("float32", "float32"))


@pytest.mark.parametrize("turned", EVERY_TURN)
def test_float32_is_cut_off_where_the_kernel_allows_it(turned: tuple[bool, bool]) -> None:
    cut = {"ab": ("float32", "float32"), "promises": (True, False)}
    text = check((40, 32, 36), turned=turned, **cut)
    assert '"m16n8k8")' in text
    # Elements of 4 bytes can only be read by rows as they lie; a ring may name such reads more than once.
    assert ("T.ldmatrix(" in text) == (not turned[0] or turned[1])
    assert "T.mma(" not in check((40, 32, 36), "sm_75", turned=turned, **cut)
    kernel = product.using(target="cuda:sm_80")(32, 32, 32, **cut)
    assert "m16n8k8.row.col.f32.tf32.tf32.f32" in kernel.stage("ptx")


@pytest.mark.parametrize(
    ("promises", "name", "which"),
    [((True, False), "allow_tf32", "float32"), ((False, True), "fast_accum", "8-bit floats")],
)
def test_an_option_that_means_nothing_is_refused(promises: tuple[bool, bool], name: str, which: str) -> None:
    with pytest.raises(DTypeError) as caught:
        product.using(target="cpu")(32, 32, 32, promises=promises)
    assert caught.value.message == f"{name}=True means nothing for operands of float16"
    assert f"expected: operands of {which}" in str(caught.value)


@pytest.mark.parametrize("depth", [96, 128, 256, 416])
def test_few_bits_of_a_sum_are_added_up_in_float32(depth: int) -> None:
    """An instruction on sm_89 keeps 13 bits: what 128 terms give is added to C in float32."""
    options = {
        "ab": ("float8_e4m3fn", "float8_e4m3fn"), "turned": (False, True), "tile": (32, 32, depth),
        "stages": 1,
    }  # fmt: skip
    assert "part[r0] = T.float32(0)" in check((32, 32, 512), "sm_89", **options)
    assert "part[r0]" not in check((32, 32, 512), "sm_89", promises=(False, True), **options)
    assert "part[r0]" not in check((32, 32, 512), "sm_90a", **options)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90a"])
def test_cubins(arch: str) -> None:
    dtypes = [(("float16", "float16"), "float32"), (("int8", "uint8"), "int32")]
    if arch != "sm_75":
        dtypes += [(("bfloat16", "bfloat16"), "float32"), (("float64", "float64"), "float64")]
    if arch in ("sm_89", "sm_90a"):
        dtypes.append((("float8_e4m3fn", "float8_e5m2"), "float32"))
    for ab, acc in dtypes:
        kernel = product.using(target=f"cuda:{arch}")(64, 64, 64, turned=(False, True), ab=ab, acc=acc)
        assert "mma.sync" in kernel.stage("ptx") or acc == "float64"


def test_the_fragments_cover_their_tiles() -> None:
    for row in resolve("cuda:sm_90a")[1].instructions_for("gemm"):
        if row.name == "mma":
            m, n, k = row.shape
            extents = [operand.fragment.extents for operand in row.operands if operand.fragment is not None]
            assert extents == [(m, k), (k, n), (m, n)]
    assert shape_named("m16n8k16", 16) == MmaShape(16, 8, 16, 16)
    # PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type".
    assert MmaShape(16, 8, 16, 16).a == Fragment(
        (16, 16), ((4, 1, 2), (8, 0, 1)), ((2, 1, 1), (2, 0, 8), (2, 1, 8))
    )


def test_sums_are_cut_off_and_not_rounded() -> None:
    """1 and 16 products of 2^-25: each alone would be lost, together they count."""
    a, b = np.full((1, 1, 16), 2.0**-12, np.float16), np.full((1, 16, 1), 2.0**-13, np.float16)
    one = np.ones((1, 1, 1), np.float32)
    dtype = float16
    assert product_sums(a, b, one, dtype)[0, 0, 0] == np.float32(1 + 2.0**-21)
    assert cut_off(np.array([1 + 1.9 * 2.0**-23]))[0] == np.float32(1 + 2.0**-23)
    assert cut_off(np.array([-1 - 1.9 * 2.0**-23]))[0] == np.float32(-1 - 2.0**-23)
    nan = product_sums(a * np.inf, b * 0, one, dtype)
    assert np.isnan(nan[0, 0, 0])
    wide = [part.astype(np.float64) for part in (a * np.inf, b * 0, one)]
    assert np.isnan(product_sums(*wide, float64)[0, 0, 0])  # without a word: a warning is an error here


@tilebench.jit
def chained(M, N, K, D, threads=64, policies=(None, None)):
    """(A B^T)^2 C, the squares narrowed to float16: a sum that is the next product's operand."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((N, D), "float16"),
        Out: T.Tensor((M, D), "float32"), Most: T.Tensor((M,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            A_s = T.alloc_shared((M, K), "float16")
            B_s = T.alloc_shared((N, K), "float16")
            C_s = T.alloc_shared((N, D), "float16")
            s = T.alloc_fragment((M, N), "float32")
            p = T.alloc_fragment((M, N), "float16")
            o = T.alloc_fragment((M, D), "float32")
            most = T.alloc_fragment((M,), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.copy(C, C_s)
            T.clear(s)
            T.clear(o)
            T.gemm(A_s, B_s, s, transpose_B=True, policy=policies[0])
            T.reduce_max(s, most, dim=1)
            for i, j in T.Parallel(M, N):
                p[i, j] = s[i, j] * s[i, j]
            T.gemm(p, C_s, o, policy=policies[1])
            T.copy(o, Out)
            T.copy(most, Most)

    return main


@pytest.mark.parametrize(
    ("extents", "policies", "in_registers"),
    [
        ((32, 32, 32, 48), (None, None), True),
        ((40, 48, 16, 40), (None, None), True),
        # Three atoms of columns are one and a half steps of k.
        ((40, 24, 16, 40), (None, None), False),
        ((32, 32, 32, 48), ("full_row", None), True),
        ((32, 32, 32, 48), ("square", "full_row"), False),
        ((32, 32, 32, 48), ("full_col", "full_col"), False),
        # One row of atoms for two warps: each product is split as suits it.
        ((16, 32, 32, 48), (None, None), False),
    ],
)
def test_a_sum_is_the_next_operand_where_it_lies(
    extents: tuple[int, int, int, int], policies: tuple[str | None, str | None], in_registers: bool
) -> None:
    m, n, k, d = extents
    kernel = chained.using(target="cuda:sm_80")(m, n, k, d, policies=policies)
    kernel.stage("cuda")
    assert ("T.convert_layout(" not in kernel.stage("laid_out")) == in_registers
    by_shuffles = 'T.reduce_max(s, most, by=T.Instr("shfl", lanes=4))' in kernel.stage("laid_out")
    assert by_shuffles or not in_registers
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k), (n, d)))
    out, most = np.full((m, d), np.nan, np.float32), np.full(m, np.nan, np.float32)
    arrays = {"A": a, "B": b, "C": c, "Out": out, "Most": most}
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    x, y, z = (part.astype(np.float64) for part in (a, b, c))
    s, size = x @ y.T, np.abs(x) @ np.abs(y).T
    assert (np.abs(most - s.max(axis=1)) <= size.max(axis=1) * k * 2.0**-23).all()
    error = 2 * np.abs(s) * size * (k + 1) * 2.0**-22 + s * s * 2.0**-11 + 2.0**-24
    bound = error @ np.abs(z) + (s * s) @ np.abs(z) * n * 2.0**-22
    assert (np.abs(out - (s * s) @ z) <= bound).all()


def test_a_larger_operand_is_fetched_where_it_is_used() -> None:
    """16 rows by 128 columns of a warp: of the second operand two atoms are there at a time."""
    text = check((32, 128, 64), tile=(32, 128, 32), turned=(False, True))
    assert "for p0 in T.unroll(" not in text
    text = check((32, 256, 64), tile=(32, 256, 32), turned=(False, True), threads=64)
    assert "for p0 in T.unroll(" in text


@pytest.mark.parametrize(
    ("policy", "groups"),
    [
        (None, "(2, 1, 32), (2, 0, 32)"),
        ("4x1", "(4, 0, 16)"),
        ("full_row", "(4, 0, 16)"),
        ("full_col", "(4, 1, 16)"),
        ("1x4", "(4, 1, 16)"),
    ],
)
def test_how_warps_split_a_tile(policy: str | None, groups: str) -> None:
    kernel = product.using(target="cuda:sm_80")(64, 64, 64, tile=(64, 64, 32), threads=128, policy=policy)
    assert f"thread=((4, 1, 2), (8, 0, 1), {groups})" in kernel.stage("laid_out")
    check((64, 64, 64), tile=(64, 64, 32), threads=128, policy=policy)


def test_a_schedule_splits_a_tile() -> None:
    chosen = Schedule.of(gemm={"C_l": {"policy": "1x4"}})
    kernel = product.using(target="cuda:sm_80", schedule=chosen)(64, 64, 64, tile=(64, 64, 32), threads=128)
    assert "(4, 1, 16)), value=" in kernel.stage("laid_out")


def test_a_split_is_one_of_the_warps_that_there_are() -> None:
    with pytest.raises(LayoutError) as caught:
        product.using(target="cuda:sm_80")(64, 64, 64, threads=128, policy="2x4").stage("laid_out")
    assert str(caught.value).startswith("layout error: 4 groups of threads cannot split a tile 2x4\n  at ")
    assert "expected: two numbers whose product is 4" in str(caught.value)
    with pytest.raises(LanguageError) as caught_word:
        product.using(target="cuda:sm_80")(64, 64, 64, policy="2x")
    assert "T.gemm has no policy '2x'" in str(caught_word.value)


@tilebench.jit
def twice(N, same):
    """P P of a fragment that is both operands, or P C into C."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float16"), B: T.Tensor((N, N), "float16"), C: T.Tensor((N, N), "float16")):
        with T.Kernel(1, threads=64):
            p = T.alloc_fragment((N, N), "float16")
            c = T.alloc_fragment((N, N), "float16")
            T.copy(A, p)
            T.copy(B, c)
            if same:
                T.gemm(p, p, c)
            else:
                T.gemm(p, c, c)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("same", [True, False])
def test_a_fragment_that_is_two_operands(same: bool) -> None:
    kernel = twice.using(target="cuda:sm_80")(32, same)
    assert "T.mma(" in kernel.stage("threaded")
    kernel.stage("cuda")
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    c = np.full((32, 32), np.nan, np.float16)
    run_threaded(kernel.compilation.functions["threaded"], {"A": a, "B": b, "C": c}, warp=32)
    np.testing.assert_array_equal(c, b + a @ (a if same else b))


def test_rows_that_start_anywhere_are_fetched_by_elements() -> None:
    """A layout that a person writes, whose rows are no multiple of 16 bytes apart."""
    kernel = product.using(target="cuda:sm_80")(32, 32, 32)
    text, count = re.subn(
        r"(A_s_swizzle =) .*",
        r"\1 T.SharedLayout((32, 32), (36, 1))",
        kernel.stage("laid_out").replace('T.Instr("cp.async", bytes=16)', 'T.Instr("ld.st", bytes=8)'),
    )
    assert count == 1
    edited = compile_from("laid_out", text, like=kernel)
    assert "T.ldmatrix(" not in edited.stage("threaded")
    edited.stage("cuda")
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    c = np.full((32, 32), np.nan, np.float32)
    run_threaded(edited.compilation.functions["threaded"], {"A": a, "B": b, "C": c}, warp=32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(
    ("arch", "stages", "late"), [("sm_80", 2, False), ("sm_80", 3, True), ("sm_75", 3, False)]
)
def test_copies_are_issued_behind_a_product_where_more_are_in_flight(
    arch: str, stages: int, late: bool
) -> None:
    kernel = product.using(target=f"cuda:{arch}")(64, 64, 256, stages=stages)
    step = kernel.stage("pipelined").split("for ko in T.serial(")[1]
    assert (step.index("T.gemm(") < step.index("T.copy(A[")) == late
    assert kernel.stage("threaded").split("for ko in T.serial(")[1].count("T.sync_threads(") == 1


@pytest.mark.parametrize("acc", ["float32", "float16"])
@pytest.mark.parametrize("clear", [0, 1, 2])
def test_a_sum_starts_again_where_the_kernel_says(acc: str, clear: int) -> None:
    check((40, 32, 96), acc=acc, clear=clear)
