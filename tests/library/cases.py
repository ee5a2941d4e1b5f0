"""Problems that the tests and the device check of the library share: small and odd, and what is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tilebench.library import operator
from tilebench.library.definition import ANY, ArrayArgument, Operator, Problem
from tilebench.library.near import Exact, allowed, overflowed


@dataclass(frozen=True)
class LibraryCase:
    """An operator on arrays of these sizes; `options` and orders of axes by their names."""

    name: str
    sizes: Mapping[str, int]
    dtype: str = "float16"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    absent: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{k}={v}" for k, v in self.options.items()] + [f"no {name}" for name in self.absent]
        return " ".join([self.name, "x".join(map(str, self.sizes.values())), self.dtype, *words])

    @property
    def operator(self) -> Operator:
        return operator(self.name)

    @property
    def problem(self) -> Problem:
        return self.operator.problem(self.dtype, self.absent, **self.sizes, **self.options)

    @property
    def viewed(self) -> tuple[ArrayArgument, ...]:
        """The arguments that are there, and the result."""
        given = [each for each in self.operator.arguments if each.name not in self.absent]
        return (*given, self.operator.result)

    def arrays(self, seed: int = 0) -> dict[str, Any]:
        """Random arrays for the arguments that are there, in the order of memory that the problem says."""
        random = np.random.default_rng(seed)
        return {argument.name: self._drawn(argument, random) for argument in self.viewed[:-1]}

    def _drawn(self, argument: ArrayArgument, random: np.random.Generator) -> Any:
        if argument.drawn is not None:
            return argument.drawn(self.sizes, random)
        shape = [self.sizes[dim.lstrip(ANY)] for dim in argument.dims]
        if argument.by_dims and not self.problem.options[f"{argument.name}_each"]:
            shape = [1]
        order = argument.orders[self.problem.options[f"{argument.name}_order"]] if argument.orders else None
        memory = shape if order is None else [shape[k] for k in order]
        values = random.uniform(-2, 2, memory)
        name = argument.dtype_in(self.problem)
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        drawn = (values * 20 if dtype.kind in "iu" else values).astype(dtype)
        return drawn if order is None else drawn.transpose(np.argsort(order))

    def exact(self, arrays: Mapping[str, Any]) -> Exact:
        wide = {
            k: a.astype(np.int64 if np.dtype(a.dtype).kind in "iu" else np.float64) for k, a in arrays.items()
        }
        return self.operator.reference(np, wide, self.problem)

    def result(self) -> Any:
        """An array for the result, poisoned, as the caller sees it."""
        argument = self.operator.result
        shape = [self.sizes[dim.lstrip(ANY)] for dim in argument.dims]
        order = (
            argument.orders[self.problem.options[f"{argument.name}_order"]]
            if argument.orders
            else range(len(shape))
        )
        name = self.operator.result_dtype(self.problem)
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        memory = np.full([shape[k] for k in order], -77 if dtype.kind in "iu" else np.nan).astype(dtype)
        return memory.transpose(np.argsort(order))


def sizes_of(kernel: Any, arrays: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that a call of a kernel reads from its arrays, by their names."""
    return {
        size: extent
        for record in kernel.arguments if not record.is_scalar
        for size, extent in zip(record.shape, arrays[record.name].shape, strict=True) if isinstance(size, str)
    }  # fmt: skip


def wrong(got: Any, exact: Exact) -> str:
    """What is wrong with a result, or nothing."""
    if got.shape != exact.value.shape:
        return f"shape {got.shape}, and {exact.value.shape} is right"
    values = got.astype(np.float64)
    right = (values == exact.value) | overflowed(np, values, exact, got.dtype.name)
    error = np.where(right, 0.0, abs(values - exact.value))
    bound = np.broadcast_to(allowed(exact, got.dtype.name), got.shape)
    outside = ~(error <= bound)
    if not outside.any():
        return ""
    where = tuple(int(k) for k in np.argwhere(outside)[0])
    return (
        f"{outside.sum()} of {outside.size} wrong, first {where}: {got[where]}, right is "
        f"{np.broadcast_to(exact.value, got.shape)[where]} +- {bound[where]:.3g}"
    )


def rows(name: str, dtype: str, m: int, n: int, absent: tuple[str, ...] = (), **options: Any) -> LibraryCase:
    return LibraryCase(name, {"M": m, "N": n}, dtype, options, absent)


def product(dtype: str, m: int, n: int, k: int, absent: tuple[str, ...], **options: Any) -> LibraryCase:
    return LibraryCase("matmul", {"M": m, "K": k, "N": n}, dtype, options, absent)


def scores(
    dtype: str, heads: tuple[int, int], queries: int, keys: int, dim: int, **options: Any
) -> LibraryCase:
    sizes = {"B": 2, "H": heads[0], "SQ": queries, "D": dim, "KV": heads[1], "SK": keys}
    return LibraryCase("attention", sizes, dtype, options)


def scaled(
    dtype: str, m: int, n: int, k: int, other: str = "", absent: tuple[str, ...] = (), each: bool = True,
    **options: Any,
) -> LibraryCase:  # fmt: skip
    """A product of 8-bit numbers with scales; those of `b` are of the dtype `other`."""
    scales = {f"{name}_each": each for name in ("scale_a", "scale_b") if name not in absent}
    options = {"b_order": 1, "b_dtype": other or dtype, **scales, **options}
    return LibraryCase("scaled_matmul", {"M": m, "K": k, "N": n}, dtype, options, absent)


def of_bytes(dtype: str, m: int, n: int, k: int, other: str = "", **options: Any) -> LibraryCase:
    options = {"b_order": 1, "b_dtype": other or dtype, **options}
    return LibraryCase("int_matmul", {"M": m, "K": k, "N": n}, dtype, options)


def batched(dtype: str, b: int, m: int, n: int, k: int, **options: Any) -> LibraryCase:
    return LibraryCase("batched_matmul", {"B": b, "M": m, "K": k, "N": n}, dtype, options)


def grouped(dtype: str, g: int, m: int, n: int, k: int, **options: Any) -> LibraryCase:
    return LibraryCase("grouped_matmul", {"M": m, "K": k, "G": g, "N": n}, dtype, options)


ALONE = ("bias", "residual")
EIGHT_BIT_FLOATS, BYTES = ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8")
EIGHT_BITS = (*EIGHT_BIT_FLOATS, *BYTES)
RESULTS = ("bfloat16", "float16", "bfloat16", "float32")
FLOATS = ("float16", "bfloat16", "float32")
CASES = (
    *(LibraryCase("add", {"n": n}, dtype) for n in (1, 4099) for dtype in (*FLOATS, "float64")),
    *(rows("bias_gelu", dtype, 5, 131) for dtype in FLOATS),
    rows("bias_gelu", "float16", 9, 512, approximate="tanh"),
    *(rows("softmax", dtype, 5, 131) for dtype in FLOATS),
    rows("softmax", "float16", 3, 1024),
    *(rows("rms_norm", dtype, 5, 131) for dtype in FLOATS),
    rows("rms_norm", "float16", 3, 257, ("weight",), eps=0.25),
    *(rows("layer_norm", dtype, 5, 131) for dtype in FLOATS),
    rows("layer_norm", "bfloat16", 3, 1024, ("bias",)),
    rows("layer_norm", "float16", 1, 1, ("weight", "bias")),
    *(rows("row_reduce", dtype, 5, 1031, kind=k) for dtype in FLOATS for k in ("sum", "max")),
    *(rows("column_reduce", dtype, 131, 70, kind=k) for dtype in FLOATS for k in ("sum", "min")),
    *(rows("transpose", dtype, 80, 136) for dtype in ("float16", "float32", "bfloat16")),
    *(rows("transpose", dtype, 70, 131) for dtype in (*FLOATS, "float64", "int8", "int16", "int64")),
    *(LibraryCase("gemv", {"M": 9, "K": 1031}, dtype) for dtype in FLOATS),
    *(
        product(dtype, 70, 60, 50, ALONE, a_order=a, b_order=b)
        for dtype in (*FLOATS, "float64") for a in (0, 1) for b in (0, 1)
    ),
    product("float16", 130, 129, 33, ("residual",), b_order=1, activation="relu"),
    product("bfloat16", 1, 7, 3, (), activation="gelu"),
    product("float32", 33, 17, 65, ("bias",), a_order=1, activation="gelu_tanh"),
    *(scaled(dtype, 70, 60, 300, out_dtype=out) for dtype, out in zip(EIGHT_BITS, RESULTS, strict=True)),
    scaled("float8_e4m3fn", 70, 60, 272, "float8_e5m2", each=False, fast_accum=True, out_dtype="float32"),
    scaled("float8_e5m2", 33, 17, 65, "float8_e4m3fn", ("scale_a",), a_order=1, b_order=0),
    scaled("int8", 33, 17, 65, "uint8", ("scale_b",), a_order=1, b_order=0),
    scaled("float8_e4m3fn", 1, 40, 128, absent=("scale_a", "scale_b")),
    *(of_bytes(a, 70, 60, 300, b) for a in ("int8", "uint8") for b in ("int8", "uint8")),
    *(of_bytes("int8", 33, 17, 65, a_order=a, b_order=b) for a in (0, 1) for b in (0, 1)),
    *(batched(dtype, 3, 70, 60, 50, b_order=1) for dtype in (*FLOATS, "float64")),
    *(batched("float16", 2, 33, 17, 65, a_order=a, b_order=b) for a in (0, 1) for b in (0, 1)),
    *(grouped(dtype, 4, 150, 60, 50, b_order=1) for dtype in (*FLOATS, "float64")),
    grouped("float16", 1, 33, 17, 65),
    grouped("bfloat16", 9, 70, 64, 40),
    *(scores(dtype, (4, 2), 70, 90, 64) for dtype in FLOATS),
    *(scores("float16", (2, 2), 65, 65, d, causal=True) for d in (64, 96, 128)),
    scores("bfloat16", (2, 1), 70, 40, 64, causal=True),
    scores("float16", (2, 1), 33, 70, 64, causal=True, q_order=1, k_order=1, v_order=1, o_order=1),
    # Windows: of one key, within a block, over several, of either side alone, wider than all, past all keys.
    *(
        scores("float16", (2, 1), 100, 150, 32, left=left, right=right)
        for left, right in ((0, 0), (5, 3), (70, -1), (-1, 40), (300, 300))
    ),
    *(scores(dtype, (2, 2), 131, 131, 32, causal=True, left=17) for dtype in FLOATS),
    scores("bfloat16", (2, 1), 120, 40, 96, left=20, right=9),
    scores("float16", (2, 1), 33, 40, 256, causal=True, left=20),
)  # fmt: skip
