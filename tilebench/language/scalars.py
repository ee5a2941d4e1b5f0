"""Functions of elements: `T.exp`, `T.max`, `T.if_then_else`, ..."""

from __future__ import annotations

from ..ir import DType, ScalarFunction, same_as_first


def _second(dtypes: tuple[DType, ...]) -> DType:
    return dtypes[1]


UNARY = (
    "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "abs", "floor", "ceil", "sigmoid", "erf",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "exp10", "log10", "log1p", "trunc", "round",
    "nearbyint", "asinh", "acosh", "atanh", "popcount", "bit_length",
)  # fmt: skip
BINARY = ("min", "max", "pow", "fmod", "hypot", "atan2", "copysign", "ldexp")

FUNCTIONS = (
    *(ScalarFunction(name, 1, same_as_first) for name in UNARY),
    *(ScalarFunction(name, 2, same_as_first) for name in BINARY),
    ScalarFunction("clamp", 3, same_as_first),
    ScalarFunction("fma", 3, same_as_first),
    ScalarFunction("philox", 7, same_as_first),
    ScalarFunction("if_then_else", 3, _second),
)
