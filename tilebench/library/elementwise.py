"""Operators of elements: add, gelu(x + bias), and transposing a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .calls import call
from .definition import FLOATS, ArrayArgument, Effort, Operator, OptionArgument, Problem, size_of
from .kernels.elementwise import add_kernel, bias_gelu_kernel
from .kernels.transpose import transpose_kernel
from .near import Exact, near


def exact_add(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    return Exact(a["x"] + a["y"])


ADD = Operator(
    "add",
    add_kernel,
    (ArrayArgument("x", ("*n",), (*FLOATS, "float64")), ArrayArgument("y", ("*n",))),
    ArrayArgument("z", ("*n",)),
    exact_add,
    lambda problem: Effort(problem.sizes["n"], 3 * problem.sizes["n"] * size_of(problem)),
    symbolic=("n",),
)


def add(x: Any, y: Any, *, out: Any = None) -> Any:
    """x + y, of two arrays of one shape and dtype (float16, bfloat16, float32, float64), rounded once.

    >>> import numpy as np
    >>> from tilebench import library
    >>> print(library.add(np.float32([1, 2, 3]), np.float32([10, 20, 30])))
    [11. 22. 33.]
    """
    return call(ADD, x, y, out=out)


def exact_bias_gelu(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    words = {"none": "gelu", "tanh": "gelu_tanh"}
    return (near(xp, a["x"]) + a["bias"]).activated(words[problem.options["approximate"]]).exact()


def flat_rows(problem: Problem, parameters: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    """All rows as one, where the kernel takes them so."""
    if not parameters.get("flat"):
        return {}
    return dict.fromkeys(("x", "y"), (problem.sizes["M"] * problem.sizes["N"],))


def bias_gelu_effort(problem: Problem) -> Effort:
    elements = problem.sizes["M"] * problem.sizes["N"]
    return Effort(10 * elements, (2 * elements + problem.sizes["N"]) * size_of(problem))


BIAS_GELU = Operator(
    "bias_gelu",
    bias_gelu_kernel,
    (ArrayArgument("x", ("*M", "N"), FLOATS), ArrayArgument("bias", ("N",))),
    ArrayArgument("y", ("*M", "N")),
    exact_bias_gelu,
    bias_gelu_effort,
    (OptionArgument("approximate", "none", ("none", "tanh")),),
    symbolic=("M",),
    seen=flat_rows,
)


def bias_gelu(x: Any, bias: Any, approximate: str = "none", *, out: Any = None) -> Any:
    """gelu(x + bias): by erf, or with `approximate="tanh"` by the formula with tanh.

    x: (..., N) of float16, bfloat16 or float32, bias: (N,) of the same. The sum and the function are float32,
    the result is like x and rounded once. gelu of minus infinity is NaN, as the product of zero and infinity.
    """
    return call(BIAS_GELU, x, bias, out=out, approximate=approximate)


# Elements are moved, whatever they mean.
MOVED = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32",
    "int64", "uint64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def exact_transpose(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    return Exact(a["x"].swapaxes(0, 1))


def transpose_effort(problem: Problem) -> Effort:
    return Effort(0, 2 * problem.sizes["M"] * problem.sizes["N"] * size_of(problem))


TRANSPOSE = Operator(
    "transpose",
    transpose_kernel,
    (ArrayArgument("x", ("M", "N"), MOVED),),
    ArrayArgument("y", ("N", "M")),
    exact_transpose,
    transpose_effort,
)


def transpose(x: Any, *, out: Any = None) -> Any:
    """x (M, N) with rows and columns exchanged, as an array (N, M) of its own. Any dtype of 1 to 8 bytes.

    >>> import numpy as np
    >>> from tilebench import library
    >>> print(library.transpose(np.int32([[1, 2, 3], [4, 5, 6]])))
    [[1 4]
     [2 5]
     [3 6]]
    """
    return call(TRANSPOSE, x, out=out)
