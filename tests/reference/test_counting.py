"""Work counted from the text against work counted while the reference runs: two ways that share nothing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

import tilebench
from tests.wellknown.case import Case
from tests.wellknown.table import CASES
from tilebench.errors import remember_source
from tilebench.ir.sizes import for_sizes
from tilebench.passes.analysis.count_work import Work, count_work
from tilebench.reference.counting import CountedWork, count_running

# Kernels whose work only a run knows, each for what of it.
OPEN = {
    "attention bhsd causal sparse": "which blocks are seen", "attention bshd sparse": "which blocks are seen",
    "block_sparse": "which blocks are there", "grouped": "the rows of a group",
    "grouped_backward": "the rows of a group", "gemm persistent by a scheduler": "turns of a while",
    "gemm stream-K": "turns of a while",
}  # fmt: skip
# Where the two mean something else by the work that an operation has to do: by how much, and why.
APART = {
    "online_softmax": (0.2, "a kernel's own -inf beyond the last column counts as it runs"),
    "top_k": (0.2, "a comparison in a row that is not there counts as it runs"),
    "gemv_split": (0.25, "a part of the sum with no element at all is not added as it runs"),
    "gemv_by_threads": (0.03, "threads without an element of the row add nothing as it runs"),
    "decode_split": (1e-3, "a block without a key adds nothing as it runs"),
    "decode ": (0.02, "a block without a key adds nothing as it runs"),
}  # fmt: skip
# Arrays that are read in part; the count of the text takes each array whole.
IN_PART = ("chunk_scan", "convolution_im2col 1x9x7x5x19", "grouped", "block_sparse", "gemm stream-K",
           "attention bhsd causal sparse")  # fmt: skip


def both(kernel: Any, arrays: dict[str, Any]) -> tuple[Work, CountedWork]:
    passed = [arrays[each.name] for each in kernel.arguments if not each.is_scalar]
    function = for_sizes(kernel.meaning, kernel.call_of(passed, None).values)
    return count_work(function), count_running(function, arrays)


def of(table: Any, name: str) -> Any:
    return next((key for key in sorted(table, key=len, reverse=True) if name.startswith(key)), None)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES if not c.large])
def test_well_known_kernels(case: Case) -> None:
    told, ran = both(case.kernel.using(target="cpu")(**case.parameters), case.drawn())
    assert told.known == (of(OPEN, case.name) is None)
    if told.known:
        share = APART.get(of(APART, case.name), (0.0, ""))[0]
        assert abs(told.flops - ran.flops) <= share * ran.flops
        assert told.exact
    assert ran.bytes <= told.bytes if of(IN_PART, case.name) else ran.bytes == told.bytes


def floats(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(dtype)


_NUMBERS = itertools.count()


def counted(body: str, launch: str, more: str = "", **arrays: Any) -> tuple[Work, CountedWork]:
    """Both counts of a kernel with this body; `launch` is what stands between `T.Kernel(` and the colon."""
    head = ", ".join(f'{name}: T.Tensor({a.shape}, "{a.dtype.name}")' for name, a in arrays.items())
    text = "import tilebench.language as T\n\ndef kernel():\n    @T.prim_func\n"
    text += f"    def main({head}):\n        with T.Kernel({launch}:\n"
    text += indent(dedent(body).strip(), " " * 12) + "\n"
    text += indent(dedent(more).strip(), " " * 8) + "\n    return main\n"
    name = f"counting{next(_NUMBERS)}"
    remember_source(name, text)
    space: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), space)
    return both(tilebench.jit(space["kernel"]).using(target="cpu")(), arrays)


def same(found: tuple[Work, CountedWork], flops: Any, moved: Any) -> None:
    """Both counts are this one, which was derived by hand."""
    told, ran = found
    assert (told.flops, told.bytes, told.exact) == (flops, moved, True)
    assert (ran.flops, ran.bytes) == (flops, moved)


@dataclass(frozen=True)
class Ranked:
    """Arrays of one rank that no tile divides, the tile, the launch, and where a block's tile begins."""

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    launch: str
    corner: tuple[str, ...]

    @property
    def loop(self) -> str:
        names = NAMES[: len(self.shape)]
        return f"for {', '.join(names)} in T.Parallel({', '.join(map(str, self.tile))}):"

    @property
    def there(self) -> str:
        return ", ".join(f"{first} + {i}" for first, i in zip(self.corner, NAMES, strict=False))

    @property
    def inside(self) -> str:
        return ", ".join(NAMES[: len(self.shape)])

    @property
    def slices(self) -> str:
        """The tile of an array in slices, a unit dimension by its index alone."""
        pairs = zip(self.corner, self.tile, strict=True)
        return ", ".join(f"{first} : {first} + {size}" if size > 1 else first for first, size in pairs)


NAMES = "ijkl"
RANKS = {
    1: Ranked((13,), (8,), "2, threads=32) as b0", ("b0 * 8",)),
    2: Ranked((5, 13), (4, 8), "2, 2, threads=32) as (b0, b1)", ("b1 * 4", "b0 * 8")),
    3: Ranked((3, 5, 13), (1, 4, 8), "2, 2, 3, threads=32) as (b0, b1, b2)", ("b2", "b1 * 4", "b0 * 8")),
    4: Ranked((2, 5, 3, 13), (1, 4, 1, 8), "2, 2, 6, threads=32) as (b0, b1, b2)",
              ("b2 // 3", "b1 * 4", "b2 % 3", "b0 * 8")),
}  # fmt: skip
RANK = pytest.mark.parametrize("rank", RANKS)
# Expressions of one element of two arrays, and how many operations each has.
ELEMENTS = {
    "a + b": 1, "a - b * a": 2, "a / b": 1, "-a": 1, "T.exp(a)": 1, "T.max(a, b)": 1, "T.min(a, b)": 1,
    "T.sqrt(a) + T.rsqrt(b)": 3, "T.abs(a)": 1, "T.if_then_else(a > b, a, b)": 1, "a": 0,
    "T.cast(T.cast(a, 'float16'), 'float32')": 0, "a * 2.0 + 1.0": 2,
}  # fmt: skip


@RANK
@pytest.mark.parametrize("expression", ELEMENTS)
def test_elements_of_arrays(rank: int, expression: str) -> None:
    r = RANKS[rank]
    there = expression.replace("a", f"A[{r.there}]") if expression == "a" else expression
    body = f"{r.loop}\n    a = A[{r.there}]\n    b = B[{r.there}]\n    C[{r.there}] = {there}"
    found = counted(body, r.launch, A=floats(*r.shape), B=floats(*r.shape), C=floats(*r.shape))
    told, ran = found
    assert told.flops == ran.flops == ELEMENTS[expression] * np.prod(r.shape)
    assert told.exact


@RANK
@pytest.mark.parametrize("expression", ["a + b", "T.exp(a) * b"])
def test_elements_of_tiles(rank: int, expression: str) -> None:
    """Copied in by slices with unit dimensions, computed from tile to tile, copied out."""
    r = RANKS[rank]
    tile = tuple(n for n in r.tile if n > 1)
    names = NAMES[: len(tile)]
    body = f"""
        a_s = T.alloc_shared({tile}, "float32")
        b_s = T.alloc_fragment({tile}, "float32")
        c_s = T.alloc_fragment({tile}, "float32")
        T.copy(A[{r.slices}], a_s)
        T.copy(B[{r.slices}], b_s)
        for {", ".join(names)} in T.Parallel({", ".join(map(str, tile))}):
            a = a_s[{", ".join(names)}]
            b = b_s[{", ".join(names)}]
            c_s[{", ".join(names)}] = {expression}
        T.copy(c_s, C[{r.slices}])
    """
    size = int(np.prod(r.shape))
    weight = 1 if expression == "a + b" else 2
    same(counted(body, r.launch, A=floats(*r.shape), B=floats(*r.shape), C=floats(*r.shape)),
         weight * size, 3 * 4 * size)  # fmt: skip


@RANK
@pytest.mark.parametrize("atomic", ["add", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_atomics(rank: int, atomic: str, dtype: str) -> None:
    """An atomic is an operation on floats for each element that is there; on integers it is none."""
    r = RANKS[rank]
    body = f"{r.loop}\n    T.atomic_{atomic}(C[{r.there}], A[{r.there}])"
    size = int(np.prod(r.shape))
    arrays = {"A": floats(*r.shape, dtype=dtype), "C": floats(*r.shape, dtype=dtype)}
    same(counted(body, r.launch, **arrays), size if dtype == "float32" else 0, 3 * 4 * size)


REDUCED = ("sum", "max", "min", "absmax", "abssum", "bitand", "bitor", "bitxor")


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("kind", REDUCED)
def test_reductions(kind: str, dim: int) -> None:
    """One operation for each element that is there, along any dimension; bits and integers too."""
    dtype = "int32" if kind.startswith("bit") else "float32"
    shape, tile = (7, 5, 13), (8, 8, 16)
    out, out_tile = ([n for k, n in enumerate(s) if k != dim] for s in (shape, tile))
    body = f"""
        a = T.alloc_fragment({tile}, "{dtype}")
        r = T.alloc_fragment({tuple(out_tile)}, "{dtype}")
        T.copy(A[0, 0, 0], a)
        T.reduce_{kind}(a, r, dim={dim})
        T.copy(r, C[0, 0])
    """
    arrays = {"A": floats(*shape, dtype=dtype), "C": floats(*out, dtype=dtype)}
    size = int(np.prod(shape))
    weight = 2 if kind.startswith("abs") else 1  # the magnitude first
    same(counted(body, "1, threads=64) as b0", **arrays), weight * size, 4 * (size + np.prod(out)))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("word", ["cumsum", "cummax"])
def test_scans(word: str, dim: int) -> None:
    body = f"""
        a = T.alloc_shared((8, 16), "float32")
        c = T.alloc_shared((8, 16), "float32")
        T.copy(A[0, 0], a)
        T.{word}(a, c, dim={dim})
        T.copy(c, C[0, 0])
    """
    found = counted(body, "1, threads=64) as b0", A=floats(7, 13), C=floats(7, 13))
    same(found, 7 * 13, 2 * 4 * 7 * 13)


PRODUCTS = [("float16", "float32"), ("float32", "float32"), ("int8", "int32"), ("float64", "float64")]


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("dtype", "sums"), PRODUCTS)
def test_products(dtype: str, sums: str, ta: bool, tb: bool) -> None:
    """Two operations a term, of odd sizes; operands of rank 3 with a unit dimension first or between."""
    m, n, k = 21, 19, 37
    a, b = ((k, 2, m) if ta else (m, 2, k)), ((2, n, k) if tb else (2, k, n))
    rows, columns = "by * 16 : by * 16 + 16", "bx * 16 : bx * 16 + 16"
    along = "ko * 32 : ko * 32 + 32"
    of_a = f"A[{along}, bz, {rows}]" if ta else f"A[{rows}, bz, {along}]"
    of_b = f"B[bz, {columns}, {along}]" if tb else f"B[bz, {along}, {columns}]"
    body = f"""
        a = T.alloc_shared({(32, 16) if ta else (16, 32)}, "{dtype}")
        b = T.alloc_shared({(16, 32) if tb else (32, 16)}, "{dtype}")
        c = T.alloc_fragment((16, 16), "{sums}")
        T.clear(c)
        for ko in T.Pipelined(2, num_stages=2):
            T.copy({of_a}, a)
            T.copy({of_b}, b)
            T.gemm(a, b, c, transpose_A={ta}, transpose_B={tb})
        T.copy(c, C[bz, {rows}, {columns}])
    """
    bytes_of = np.dtype(dtype).itemsize
    same(
        counted(
            body,
            "2, 2, 2, threads=32) as (bx, by, bz)",
            A=floats(*a, dtype=dtype),
            B=floats(*b, dtype=dtype),
            C=floats(2, m, n, dtype=sums),
        ),
        2.0 * 2 * m * n * k,
        2 * (m * k + k * n) * bytes_of + 2 * m * n * floats(1, dtype=sums).nbytes,
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("s", "d"), [(64, 16), (50, 24), (1, 16)])
def test_attention_by_slices(causal: bool, s: int, d: int) -> None:
    """Heads between rows and columns, `Q[bz, rows, by, :]`; causal does the blocks up to its own."""
    batch, heads, block = 2, 3, 32
    rows = f"bx * {block} : (bx + 1) * {block}"
    turns = "bx + 1" if causal else f"T.ceildiv({s}, {block})"
    body = f"""
        q = T.alloc_shared(({block}, {d}), "float32")
        k = T.alloc_shared(({block}, {d}), "float32")
        p = T.alloc_fragment(({block}, {block}), "float32")
        p_s = T.alloc_shared(({block}, {block}), "float32")
        o = T.alloc_fragment(({block}, {d}), "float32")
        T.copy(Q[bz, {rows}, by, :], q)
        T.clear(o)
        for ko in T.Pipelined({turns}, num_stages=1):
            T.copy(K[bz, ko * {block} : (ko + 1) * {block}, by, :], k)
            T.clear(p)
            T.gemm(q, k, p, transpose_B=True)
            for i, j in T.Parallel({block}, {block}):
                p[i, j] = T.exp(p[i, j])
            T.copy(p, p_s)
            T.gemm(p_s, k, o)
        T.copy(o, Out[bz, {rows}, by, :])
    """
    blocks = -(-s // block)
    shape = (batch, s, heads, d)
    sizes = [min(block, s - block * x) for x in range(blocks)]
    pairs = sum(r * c for x, r in enumerate(sizes) for y, c in enumerate(sizes) if y <= x or not causal)
    found = counted(body, f"{blocks}, {heads}, {batch}, threads=32) as (bx, by, bz)",
                    **{name: floats(*shape) for name in ("Q", "K", "Out")})  # fmt: skip
    same(found, batch * heads * pairs * (2 * 2 * d + 1), 3 * 4 * np.prod(shape))


def test_more_rows_than_are_stored_are_no_work() -> None:
    """A block of 16 rows of which 4 are a group's, as decoding attention has them."""
    body = """
        q = T.alloc_shared((16, 32), "float32")
        k = T.alloc_shared((32, 32), "float32")
        s = T.alloc_fragment((16, 32), "float32")
        T.copy(Q[b0 * 4 : b0 * 4 + 16, :], q)
        T.copy(K, k)
        T.clear(s)
        T.gemm(q, k, s, transpose_B=True)
        for i, j in T.Parallel(16, 32):
            s[i, j] = T.exp(s[i, j])
        for i, j in T.Parallel(16, 32):
            if i < 4:
                C[b0 * 4 + i, j] = s[i, j]
    """
    found = counted(body, "2, threads=32) as b0", Q=floats(32, 32), K=floats(32, 32), C=floats(8, 32))
    told, ran = found
    assert told.flops == ran.flops == 2 * 4 * 32 * (2 * 32 + 1)


@pytest.mark.parametrize(
    "use",
    [
        "B[b0] = s[0]",
        "v = s[0]\nB[b0] = v",
        "if s[0] > 0.0:\n    B[b0] = 1.0\nelse:\n    B[b0] = 2.0",
        "for i in T.serial(T.cast(s[0], 'int32')):\n    B[b0] = 1.0",
        "T.copy(s, B[b0 : b0 + 1])",
    ],
)
def test_a_tile_that_is_read_by_the_element_is_needed(use: str) -> None:
    """The sum is work, whichever statement reads it."""
    body = """
x = T.alloc_fragment((1, 128), "float32")
s = T.alloc_fragment((1,), "float32")
T.copy(A[b0 : b0 + 1, 0:128], x)
T.reduce_sum(x, s, dim=1)
"""
    body += use
    told, _ = counted(body, "64, threads=128) as b0", A=floats(64, 128), B=floats(64))
    assert told.flops >= 64 * 127, told


def test_loops_with_guards_and_bounds_that_move() -> None:
    body = """
        for i in T.Parallel(16):
            for k in T.serial(b0 * 16 + i):
                if k < 20:
                    C[b0 * 16 + i] = C[b0 * 16 + i] + A[b0 * 16 + i, k]
    """
    told, ran = counted(body, "3, threads=32) as b0", A=floats(48, 48), C=floats(48))
    assert told.flops == ran.flops == sum(min(row, 20) for row in range(48))


def test_several_launches() -> None:
    second = """
        with T.Kernel(2, threads=32) as b1:
            for i in T.Parallel(8):
                C[b1 * 8 + i] = B[b1 * 8 + i] + 1.0
    """
    body = """
        for i in T.Parallel(8):
            B[b0 * 8 + i] = A[b0 * 8 + i] * 2.0
    """
    arrays = {"A": floats(13), "B": floats(13), "C": floats(13)}
    told, ran = counted(body, "2, threads=32) as b0", second, **arrays)
    assert told.flops == ran.flops == 2 * 13
    # What the first launch leaves for the second is moved twice by the text's count, and once as it runs.
    assert (told.bytes, ran.bytes) == (4 * 4 * 13, 3 * 4 * 13)


def test_a_count_that_data_decides_is_not_shown() -> None:
    body = """
        for k in T.serial(n[0]):
            for i in T.Parallel(32):
                C[i] = C[i] + A[i]
    """
    arrays: Any = {"A": floats(32), "n": np.array([5], np.int32), "C": floats(32)}
    told, ran = counted(body, "1, threads=32) as b0", **arrays)
    assert not told.known
    assert ran.flops == 5 * 32


def test_both_sides_of_a_choice_read_a_part_of_a_tile_each() -> None:
    """A rotary embedding: each half reads the other one, and all elements are worked on."""
    body = """
        s = T.alloc_shared((16, 24), "float32")
        w = T.alloc_fragment((16, 24), "float32")
        o = T.alloc_fragment((16, 24), "float32")
        T.copy(A[b0 * 16, 0], s)
        T.copy(C[b0 * 16, 0], w)
        for i, j in T.Parallel(16, 24):
            other = T.if_then_else(j < 12, s[i, j + 12], s[i, j - 12])
            o[i, j] = s[i, j] * w[i, j] + other * w[i, j]
        T.copy(o, B[b0 * 16, 0])
    """
    arrays = {"A": floats(37, 24), "B": floats(37, 24), "C": floats(37, 24)}
    found = counted(body, "3, threads=32) as b0", **arrays)
    same(found, 3 * 37 * 24, 3 * 4 * 37 * 24)


@pytest.mark.parametrize("guarded", [False, True])
def test_data_say_where_a_box_begins(guarded: bool) -> None:
    """Segments of a longer array: rows from lo to hi, in tiles that end behind them."""
    part = "A[lo + k * 8 + i, j]"
    part = f"T.if_then_else(lo + k * 8 + i < hi, {part}, 0.0)" if guarded else part
    body = f"""
        x = T.alloc_fragment((8, 16), "float32")
        lo = n[b0]
        hi = n[b0 + 1]
        for k in T.serial(T.ceildiv(hi - lo, 8)):
            for i, j in T.Parallel(8, 16):
                x[i, j] = {part} * 2.0
            for i, j in T.Parallel(8, 16):
                if lo + k * 8 + i < hi:
                    B[lo + k * 8 + i, j] = x[i, j]
    """
    arrays: Any = {"A": floats(40, 16), "n": np.array([0, 3, 3, 25, 40], np.int32), "B": floats(40, 16)}
    told, ran = counted(body, "4, threads=32) as b0", **arrays)
    assert not told.known
    assert (ran.flops, ran.bytes) == (40 * 16, 2 * 4 * 40 * 16 + 4 * 5)
