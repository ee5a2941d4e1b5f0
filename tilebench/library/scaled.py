"""Products of 8-bit numbers: of floats and integers with scales, and of integers as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..ir.dtypes import dtype_of
from .calls import call
from .definition import ArrayArgument, Effort, Operator, OptionArgument, Problem
from .kernels.scaled_matmul import scaled_matmul_kernel
from .near import Exact, Near
from .products import EITHER

EIGHT_BIT_FLOATS = ("float8_e4m3fn", "float8_e5m2")
BYTES = ("int8", "uint8")
RESULTS = ("bfloat16", "float16", "float32")
# Products that an instruction adds, the unit in which each term and the total are cut off, and how many
# products are added before the sum goes on in float32.
STEP, CUT, TERMS = 32, 2.0**-13, 128


def sums_of_few_bits(xp: Any, a: Any, b: Any, part: int) -> Near:
    """A B of 8-bit floats, in float32 with sums of `part` terms that a matrix unit forms in few bits.

    What such a unit loses follows from its largest term, of which the largest elements say how large it can
    be, and from the sum before: both are gone through as it does, since a bound by sizes alone would be
    larger than most results.
    """
    wide = a.reshape(-1, a.shape[-1])
    total = Near(xp, wide[:, :1] @ b[:1] * 0.0, 0.0)
    for first in range(0, wide.shape[1], part):
        end = min(first + part, wide.shape[1])
        inner, lost = total.value * 0.0, total.value * 0.0
        for start in range(first, end, STEP):
            x, y = wide[:, start : min(start + STEP, end)], b[start : min(start + STEP, end)]
            largest = xp.amax(abs(x), axis=1)[:, None] * xp.amax(abs(y), axis=0)[None, :]
            lost = lost + (STEP + 2) * CUT * xp.maximum(largest, abs(inner) + lost)
            inner = inner + x @ y
            lost = lost + CUT * (abs(inner) + lost)
        total = total + Near(xp, inner, lost)
    return total.reshape(*a.shape[:-1], b.shape[1])


def exact_scaled_matmul(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    if problem.dtype in BYTES:
        # Exact sums, of which one may have more digits than float32.
        c = Near(xp, a["a"] @ a["b"] * 1.0, 0.0) * 1.0
    else:
        whole = max(1, problem.sizes["K"])
        c = sums_of_few_bits(xp, a["a"], a["b"], whole if problem.options["fast_accum"] else TERMS)
    if "scale_a" in a:
        each = problem.options["scale_a_each"]
        c = c * (a["scale_a"].reshape(*c.value.shape[:-1], 1) if each else a["scale_a"].reshape(1))
    if "scale_b" in a:
        c = c * a["scale_b"].reshape(-1)
    return c.exact()


def exact_int_matmul(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    return Exact(a["a"] @ a["b"])


def product_effort(operator: str) -> Any:
    """What a product of bytes takes, with a result of the operator's or the call's dtype."""

    def effort(problem: Problem) -> Effort:
        m, n, k = (problem.sizes[dim] for dim in ("M", "N", "K"))
        size = dtype_of(problem.options.get("out_dtype", "int32")).bits // 8
        return Effort(2.0 * m * n * k, m * k + k * n + m * n * size)

    effort.__name__ = operator
    return effort


def same_kind(problem: Problem) -> None:
    """Raise `ArgumentError` for an integer times a float."""
    other = problem.options["b_dtype"]
    if (problem.dtype in BYTES) != (other in BYTES):
        raise ArgumentError(
            "a of scaled_matmul has elements of {dtype}, and b of {other}", dtype=problem.dtype, other=other,
            expected="two of " + ", ".join(EIGHT_BIT_FLOATS) + ", or two of " + ", ".join(BYTES),
        )  # fmt: skip


def _operands(dtypes: tuple[str, ...]) -> tuple[ArrayArgument, ArrayArgument]:
    return (
        ArrayArgument("a", ("*M", "K"), dtypes, orders=EITHER),
        ArrayArgument("b", ("K", "N"), dtypes, orders=EITHER),
    )


SCALED_MATMUL = Operator(
    "scaled_matmul",
    scaled_matmul_kernel,
    (
        *_operands((*EIGHT_BIT_FLOATS, *BYTES)),
        ArrayArgument("scale_a", ("*M",), ("float32",), optional=True, by_dims=True),
        ArrayArgument("scale_b", ("N",), ("float32",), optional=True, by_dims=True),
    ),
    ArrayArgument("c", ("*M", "N")),
    exact_scaled_matmul,
    product_effort("scaled_matmul_effort"),
    (OptionArgument("out_dtype", "bfloat16", RESULTS), OptionArgument("fast_accum", False)),
    accepts=same_kind,
)


def scaled_matmul(
    a: Any, b: Any, scale_a: Any = None, scale_b: Any = None, out_dtype: str = "bfloat16",
    fast_accum: bool = False, *, out: Any = None,
) -> Any:  # fmt: skip
    """(a @ b) * scale_a * scale_b: (..., M, N) of out_dtype, "bfloat16", "float16" or "float32".

    a: (..., M, K), b: (K, N), both of float8_e4m3fn or float8_e5m2, or both of int8 or uint8; scale_a and
    scale_b are float32, each one number or one for each row of a and column of b, or None. b is read fastest
    where it lies transposed in memory, as `w.T` does. Floats are summed in float32: what a matrix unit adds
    in fewer bits goes there after 128 terms, or with `fast_accum` not before the end. Integers are summed in
    int32. The result is rounded once.

    >>> import numpy as np
    >>> from tilebench import library
    >>> a, w = np.int8([[1, 2], [3, 4]]), np.int8([[100, 0], [0, 100]])
    >>> scales = np.float32([1, 0.5])
    >>> print(library.scaled_matmul(a, w.T, scales, np.float32([0.25]), out_dtype="float32"))
    [[25.  50. ]
     [37.5 50. ]]
    """
    return call(SCALED_MATMUL, a, b, scale_a, scale_b, out=out, out_dtype=out_dtype, fast_accum=fast_accum)


INT_MATMUL = Operator(
    "int_matmul",
    scaled_matmul_kernel,
    _operands(BYTES),
    ArrayArgument("c", ("*M", "N"), ("int32",)),
    exact_int_matmul,
    product_effort("int_matmul_effort"),
    fixed={
        "out_dtype": "int32", "fast_accum": False, "has_scale_a": False, "has_scale_b": False,
        "scale_a_each": False, "scale_b_each": False,
    },
    absent=("scale_a", "scale_b"),
)  # fmt: skip


def int_matmul(a: Any, b: Any, *, out: Any = None) -> Any:
    """a @ b of int8 or uint8, (..., M, K) and (K, N): (..., M, N) of int32, exact modulo 2^32.

    b is read fastest where it lies transposed in memory, as `w.T` does.
    """
    return call(INT_MATMUL, a, b, out=out)


__all__ = ["INT_MATMUL", "SCALED_MATMUL", "int_matmul", "scaled_matmul", "sums_of_few_bits"]
