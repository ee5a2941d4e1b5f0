"""What is measured: an operator on arrays of given sizes, with a name that says all of it.

Names are `OPERATOR/WORDS/SIZES/DTYPE`, as `matmul/nt/4096x4096x4096/float16` or `softmax/16384x8192/float16`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import OptionError, nearest
from ..definition import ANY, ArrayArgument, Operator, Problem
from ..kernels.attention import ALL
from ..table import operator

CARD_ROWS = ((16384, 8192), (1001, 1003), (16383, 8191))
HOST_ROWS = ((4096, 4096), (1001, 1003))
FLOAT8 = "float8_e4m3fn"
# The order in memory of a and b: `nt` is a row-major and b transposed.
PRODUCTS = {"nn": (0, 0), "nt": (0, 1), "tn": (1, 0), "tt": (1, 1)}


@dataclass(frozen=True)
class BenchWork:
    """One row of the table: an operator, its sizes by dimension, a dtype and options."""

    name: str
    operator_name: str
    sizes: Mapping[str, int]
    dtype: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    absent: tuple[str, ...] = ()

    @property
    def operator(self) -> Operator:
        return operator(self.operator_name)

    @property
    def problem(self) -> Problem:
        return self.operator.problem(self.dtype, self.absent, **self.sizes, **self.options)

    @property
    def passed(self) -> dict[str, Any]:
        """The options that a call passes."""
        return {each.name: self.problem.options[each.name] for each in self.operator.options}

    def given(self) -> tuple[ArrayArgument, ...]:
        """The array arguments that are there."""
        return tuple(each for each in self.operator.arguments if each.name not in self.absent)

    def shape(self, argument: ArrayArgument) -> tuple[int, ...]:
        if argument.by_dims and not self.problem.options[f"{argument.name}_each"]:
            return (1,)
        return tuple(self.sizes[dim.lstrip(ANY)] for dim in argument.dims)


def rows(name: str, shapes: Sequence[tuple[int, int]], dtype: str, **options: Any) -> list[BenchWork]:
    """An operator of a matrix, at some shapes."""
    word = "".join(f"/{value}" for value in options.values())
    return [
        BenchWork(f"{name}{word}/{m}x{n}/{dtype}", name, {"M": m, "N": n}, dtype, options) for m, n in shapes
    ]


def adds(shapes: Sequence[tuple[int, int]], dtype: str) -> list[BenchWork]:
    return [BenchWork(f"add/{m}x{n}/{dtype}", "add", {"n": m * n}, dtype) for m, n in shapes]


def products(sizes: Sequence[tuple[int, ...]], orders: str, dtype: str) -> list[BenchWork]:
    a, b = PRODUCTS[orders]
    return [
        BenchWork(
            f"matmul/{orders}/{m}x{n}x{k}/{dtype}", "matmul", {"M": m, "N": n, "K": k}, dtype,
            {"a_order": a, "b_order": b}, ("bias", "residual"),
        )
        for m, n, k in sizes
    ]  # fmt: skip


def eight_bit_products(sizes: Sequence[tuple[int, ...]], dtype: str, fast: bool = False) -> list[BenchWork]:
    """Products of bytes into int32, and of 8-bit floats with a scale an operand; b lies transposed."""
    orders = {"a_order": 0, "b_order": 1, "b_dtype": dtype}
    name = "int_matmul" if dtype == "int8" else "scaled_matmul"
    options = orders if dtype == "int8" else {**orders, "fast_accum": fast}
    word = f"{name}{'/fast' if fast else ''}/nt"
    return [
        BenchWork(f"{word}/{m}x{n}x{k}/{dtype}", name, {"M": m, "N": n, "K": k}, dtype, options)
        for m, n, k in sizes
    ]


def many_products(sizes: Sequence[tuple[int, ...]], orders: str, dtype: str) -> list[BenchWork]:
    """Products of a batch: how many, and their sizes."""
    a, b = PRODUCTS[orders]
    return [
        BenchWork(
            f"batched_matmul/{orders}/{count}x{m}x{n}x{k}/{dtype}", "batched_matmul",
            {"B": count, "M": m, "N": n, "K": k}, dtype, {"a_order": a, "b_order": b},
        )
        for count, m, n, k in sizes
    ]  # fmt: skip


def grouped_products(sizes: Sequence[tuple[int, ...]], orders: str, dtype: str) -> list[BenchWork]:
    """Products of rows in groups of random sizes: how many groups, all rows, and the other sizes."""
    return [
        BenchWork(
            f"grouped_matmul/{orders}/{g}x{m}x{n}x{k}/{dtype}", "grouped_matmul",
            {"G": g, "M": m, "N": n, "K": k}, dtype, {"b_order": PRODUCTS[orders][1]},
        )
        for g, m, n, k in sizes
    ]  # fmt: skip


def gemvs(sizes: Sequence[tuple[int, int]], dtype: str) -> list[BenchWork]:
    return [BenchWork(f"gemv/{m}x{k}/{dtype}", "gemv", {"M": m, "K": k}, dtype) for m, k in sizes]


def attentions(batch: int, heads: int, length: int, dims: Sequence[int], dtype: str) -> list[BenchWork]:
    out: list[BenchWork] = []
    for dim in dims:
        for causal in (False, True):
            sizes = {"B": batch, "H": heads, "KV": heads, "SQ": length, "SK": length, "D": dim}
            word = "/causal" if causal else ""
            name = f"attention{word}/{batch}x{heads}x{length}x{dim}/{dtype}"
            out.append(BenchWork(name, "attention", sizes, dtype, {"causal": causal}))
    return out


def windows(
    batch: int, heads: int, length: int, dim: int, sides: Sequence[tuple[int, int]], dtype: str
) -> list[BenchWork]:
    """Attention in a window: how many keys before a query's own place, and behind it."""
    sizes = {"B": batch, "H": heads, "KV": heads, "SQ": length, "SK": length, "D": dim}
    return [
        BenchWork(
            f"attention/window{left}+{right}/{batch}x{heads}x{length}x{dim}/{dtype}", "attention", sizes,
            dtype, {"causal": right == 0, "left": left, "right": ALL if right == 0 else right},
        )
        for left, right in sides
    ]  # fmt: skip


def streaming(shapes: Sequence[tuple[int, int]], dtype: str) -> list[BenchWork]:
    """The works that are bound by memory."""
    names = ("rms_norm", "layer_norm", "softmax", "row_reduce", "column_reduce", "transpose", "bias_gelu")
    return [*adds(shapes, dtype), *(work for name in names for work in rows(name, shapes, dtype))]


CARD_WORKS = (
    *streaming(CARD_ROWS, "float16"),
    *gemvs(((8192, 8192), *CARD_ROWS[1:]), "float16"),
    *products(((16, 8192, 8192), (128, 8192, 8192)), "nt", "float16"),
    *(work for orders in ("nt", "nn") for work in products(((4096,) * 3, (8192,) * 3), orders, "float16")),
    *many_products(((16, 2048, 2048, 2048),), "nt", "float16"),
    *grouped_products(((8, 8192, 4096, 4096),), "nt", "bfloat16"),
    *eight_bit_products(((8192,) * 3,), "int8"),
    *(
        work
        for fast in (False, True)
        for work in eight_bit_products(((4096,) * 3, (8192,) * 3, (4096, 14336, 4096)), FLOAT8, fast)
    ),
    *attentions(4, 32, 4096, (64, 128, 256), "float16"),
    *windows(4, 32, 4096, 128, ((1024, 0), (512, 512)), "float16"),
)
HOST_WORKS = (
    *streaming(HOST_ROWS, "float32"),
    *gemvs(HOST_ROWS, "float32"),
    *products(((1024,) * 3, (1000, 1100, 1200)), "nn", "float32"),
    *products(((1024,) * 3,), "nt", "float32"),
    *many_products(((8, 256, 256, 256),), "nn", "float32"),
    *grouped_products(((4, 512, 256, 256),), "nn", "float32"),
    *eight_bit_products(((512,) * 3,), "int8"),
    *eight_bit_products(((256,) * 3,), FLOAT8),
    *attentions(1, 8, 512, (64,), "float32"),
    *windows(1, 8, 512, 64, ((100, 0),), "float32"),
)


def chosen(words: Sequence[str], known: Sequence[BenchWork]) -> list[BenchWork]:
    """The works that words name: a whole name, its beginning up to a `/`, or a pattern with `*`; all without.

    Raises `OptionError` for a word that names none.
    """
    out: dict[str, BenchWork] = {}
    for word in words or ["*"]:
        pattern = word.rstrip("/")
        found = [w for w in known if fnmatch.fnmatchcase(w.name, pattern) or w.name.startswith(pattern + "/")]
        if not found:
            names = list(dict.fromkeys(w.operator_name for w in known))
            close = nearest(word.partition("/")[0], names, limit=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OptionError(
                "no work is called {word}", word=word, names=", ".join(names),
                hint=hint + "works begin with: {names}; --list has all",
            )  # fmt: skip
        out |= {work.name: work for work in found}
    return list(out.values())
