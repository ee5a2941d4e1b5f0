"""Operators of rows, along the last axis: softmax, RMSNorm and LayerNorm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .calls import call
from .definition import FLOATS, ArrayArgument, Effort, Operator, OptionArgument, Problem, size_of
from .kernels.norms import norm_kernel
from .kernels.softmax import softmax_kernel
from .near import Exact, near


def exact_softmax(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    x = near(xp, a["x"])
    weights = (x - xp.amax(a["x"], -1)[..., None]).exp()
    return (weights / weights.sum(-1, keepdims=True)).exact()


def softmax_effort(problem: Problem) -> Effort:
    elements = problem.sizes["M"] * problem.sizes["N"]
    return Effort(5 * elements, 2 * elements * size_of(problem))


SOFTMAX = Operator(
    "softmax",
    softmax_kernel,
    (ArrayArgument("x", ("*M", "N"), FLOATS),),
    ArrayArgument("y", ("*M", "N")),
    exact_softmax,
    softmax_effort,
    symbolic=("M",),
)


def softmax(x: Any, *, out: Any = None) -> Any:
    """exp(x - max) / sum along the last axis. x: (..., N) of float16, bfloat16 or float32; like it the
    result.

    A row with a NaN or plus infinity, or of minus infinities alone, is NaN.

    >>> import numpy as np
    >>> from tilebench import library
    >>> print(library.softmax(np.zeros((2, 4), np.float32)))
    [[0.25 0.25 0.25 0.25]
     [0.25 0.25 0.25 0.25]]
    """
    return call(SOFTMAX, x, out=out)


X = ArrayArgument("x", ("*M", "N"), FLOATS)


Y = ArrayArgument("y", ("*M", "N"))


WEIGHT = ArrayArgument("weight", ("N",), optional=True)


BIAS = ArrayArgument("bias", ("N",), optional=True)


def exact_rms_norm(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    x = near(xp, a["x"])
    y = x * ((x * x).mean(-1, keepdims=True) + problem.options["eps"]).rsqrt()
    return (y * a["weight"] if "weight" in a else y).exact()


def exact_layer_norm(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    x = near(xp, a["x"])
    away = x - x.mean(-1, keepdims=True)
    y = away * ((away * away).mean(-1, keepdims=True) + problem.options["eps"]).rsqrt()
    y = y * a["weight"] if "weight" in a else y
    return (y + a["bias"] if "bias" in a else y).exact()


def norm_effort(operations: int) -> Callable[[Problem], Effort]:
    def effort(problem: Problem) -> Effort:
        elements = problem.sizes["M"] * problem.sizes["N"]
        return Effort(operations * elements, 2 * elements * size_of(problem))

    return effort


RMS_NORM = Operator(
    "rms_norm", norm_kernel, (X, WEIGHT), Y, exact_rms_norm, norm_effort(4), (OptionArgument("eps", 1e-6),),
    symbolic=("M",), fixed={"centred": False, "has_bias": False}, absent=("bias",),
)  # fmt: skip


LAYER_NORM = Operator(
    "layer_norm", norm_kernel, (X, WEIGHT, BIAS), Y, exact_layer_norm, norm_effort(7),
    (OptionArgument("eps", 1e-5),), symbolic=("M",), fixed={"centred": True},
)  # fmt: skip


def rms_norm(x: Any, weight: Any = None, eps: float = 1e-6, *, out: Any = None) -> Any:
    """x / sqrt(mean(x^2) + eps) * weight along the last axis.

    x: (..., N) of float16, bfloat16 or float32, weight: (N,) of the same or None. The result is like x; it is
    rounded once, from float32.
    """
    return call(RMS_NORM, x, weight, out=out, eps=eps)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *, out: Any = None) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias along the last axis.

    x: (..., N) of float16, bfloat16 or float32, weight and bias: (N,) of the same or None. The variance is
    the mean of squares of x - mean, in float32; the result is like x and rounded once.
    """
    return call(LAYER_NORM, x, weight, bias, out=out, eps=eps)
