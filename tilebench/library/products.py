"""Products: of matrices, with what follows them, and of a matrix and a vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .calls import call
from .definition import FLOATS, ArrayArgument, Effort, Operator, OptionArgument, Problem, size_of
from .kernels.gemv import gemv_kernel
from .kernels.matmul import matmul_kernel
from .near import Exact, near

ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh")
DTYPES = ("float16", "bfloat16", "float32", "float64")


# Row-major, and the transposed view of row-major memory.
EITHER = ((0, 1), (1, 0))


def exact_matmul(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    c = near(xp, a["a"]) @ near(xp, a["b"])
    c = c + a["bias"] if "bias" in a else c
    c = c.activated(problem.options["activation"])
    return (c + a["residual"] if "residual" in a else c).exact()


def matmul_effort(problem: Problem) -> Effort:
    m, n, k = (problem.sizes[dim] for dim in ("M", "N", "K"))
    outputs = m * n * (2 if problem.options["has_residual"] else 1)
    return Effort(2.0 * m * n * k, (m * k + k * n + outputs) * size_of(problem))


MATMUL = Operator(
    "matmul",
    matmul_kernel,
    (
        ArrayArgument("a", ("*M", "K"), DTYPES, orders=EITHER),
        ArrayArgument("b", ("K", "N"), orders=EITHER),
        ArrayArgument("bias", ("N",), optional=True),
        ArrayArgument("residual", ("*M", "N"), optional=True),
    ),
    ArrayArgument("c", ("*M", "N")),
    exact_matmul,
    matmul_effort,
    (OptionArgument("activation", "none", ACTIVATIONS),),
)


def matmul(
    a: Any, b: Any, bias: Any = None, residual: Any = None, activation: str = "none", *, out: Any = None
) -> Any:
    """activation(a @ b + bias) + residual: (..., M, N).

    a: (..., M, K), b: (K, N), bias: (N,) or None, residual: (..., M, N) or None, all of one dtype of float16,
    bfloat16, float32 and float64. `activation` is "none", "relu", "gelu" (by erf) or "gelu_tanh". Each of a
    and b may lie row-major or transposed in memory, as `w.T` does. Sums and all that follows are float32
    (float64 of float64; float32 is not rounded to TF32), and the result is rounded once.

    >>> import numpy as np
    >>> from tilebench import library
    >>> a, w = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    >>> print(library.matmul(a, w.T, bias=np.float32([0, 1, 2, -9]), activation="relu"))
    [[3. 4. 5. 0.]
     [3. 4. 5. 0.]]
    """
    return call(MATMUL, a, b, bias, residual, out=out, activation=activation)


def exact_gemv(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    y = near(xp, a["w"]) @ near(xp, a["x"][:, None])
    return y[:, 0].exact()


def gemv_effort(problem: Problem) -> Effort:
    m, k = problem.sizes["M"], problem.sizes["K"]
    return Effort(2 * m * k, (m * k + m + k) * size_of(problem))


GEMV = Operator(
    "gemv",
    gemv_kernel,
    (ArrayArgument("w", ("M", "K"), FLOATS), ArrayArgument("x", ("K",))),
    ArrayArgument("y", ("M",)),
    exact_gemv,
    gemv_effort,
)


def gemv(w: Any, x: Any, *, out: Any = None) -> Any:
    """w @ x of a matrix w (M, K) and a vector x (K,) of float16, bfloat16 or float32: (M,) of the same dtype.

    Products and sums are float32, rounded once. Zero times infinity is NaN.
    """
    return call(GEMV, w, x, out=out)
