"""Elementary functions as LLVM vector code, for any number of lanes of float or double.

LLVM's own intrinsics for these become scalar calls of libm, which a process need not have. Errors
are the largest seen against NumPy's float64 over the test ranges, in units in the last place (ulp);
coefficients were fitted here by re-weighted least squares on Chebyshev nodes.

| function | float32 ulp | float64 ulp | | function | float32 ulp | float64 ulp |
| --- | --- | --- | --- | --- | --- | --- |
| exp, exp2, exp10 | 1.3 | 2 | | tanh, sigmoid | 2.5 | 3 |
| log, log2, log10, log1p | 2 | 2 | | erf; atan | 2.6 | 1; 0.8 |
| sqrt | 0.5 | 0.5 | | sin, cos | 1.6 | 0.8 |
| rsqrt | 1.5 | 1.5 | | tan | 3.5 | 2.1 |
| sinh, cosh | 0.5 | 4 | | asin, acos | 4 | 0.9 |
| floor, ceil, trunc, round, nearbyint | 0 | 0 | | pow | 0.5 | not measured |
| fmod, copysign, ldexp | 0, 0, 0.5 | 0, 0, 0.5 | | atan2 | 4 | 2 |
| asinh, acosh, atanh | 0.51 | 4 | | hypot | 0.51 | 2 |

Infinities, NaN, signed zeros and subnormal inputs and results follow NumPy. Angles may have any size.
"""

from __future__ import annotations

from collections.abc import Callable

from ....ir.dtypes import ALL
from ....language.scalars import FUNCTIONS
from ..llvm import Function, Value
from .angles import acos, asin, atan, cos, sin, tan
from .convert import COMPUTE
from .elementary import (
    absolute,
    ceil,
    copy_sign,
    exp,
    exp2,
    exp10,
    floor,
    log,
    log1p,
    log2,
    log10,
    polynomial,
    power,
    round_away,
    round_even,
    rsqrt,
    sigmoid,
    sqrt,
    tanh,
    trunc,
)
from .erf import erf
from .hyperbolic import cosh, sinh
from .inverse_hyperbolic import acosh, asinh, atanh
from .of_two import atan2, copysign, fused, hypot, ldexp
from .remainder import remainder

UNARY: dict[str, Callable[[Function, Value], Value]] = {
    "exp": exp, "exp2": exp2, "exp10": exp10, "log": log, "log2": log2, "log10": log10, "log1p": log1p,
    "sqrt": sqrt, "rsqrt": rsqrt, "tanh": tanh, "sigmoid": sigmoid, "erf": erf, "sin": sin, "cos": cos,
    "tan": tan, "asin": asin, "acos": acos, "atan": atan, "sinh": sinh, "cosh": cosh, "floor": floor,
    "ceil": ceil, "trunc": trunc, "round": round_away, "nearbyint": round_even, "abs": absolute,
    "asinh": asinh, "acosh": acosh, "atanh": atanh,
}  # fmt: skip
OF_TWO: dict[str, Callable[[Function, Value, Value], Value]] = {
    "pow": power, "fmod": remainder, "hypot": hypot, "atan2": atan2, "copysign": copysign, "ldexp": ldexp,
}  # fmt: skip


def scalars() -> dict[str, frozenset[str]]:
    """The functions of elements of the language, with the dtypes of their results."""
    dtypes = [ALL[name] for name in COMPUTE]
    floats = frozenset(dtype.name for dtype in dtypes if dtype.is_float)
    numbers = floats | {dtype.name for dtype in dtypes if dtype.is_integer}
    rows = dict.fromkeys([*UNARY, *OF_TWO], floats)
    rows |= {"abs": numbers, "min": numbers, "max": numbers, "clamp": floats}
    rows |= {"ldexp": frozenset({"float32", "float64"}), "fma": frozenset({"float32"})}
    rows["philox"] = frozenset({"uint32"})
    rows |= {word: frozenset({"uint32", "uint64"}) for word in ("popcount", "bit_length")}
    rows["if_then_else"] = frozenset(COMPUTE)
    return {function.name: rows[function.name] for function in FUNCTIONS if function.name in rows}


__all__ = [
    "OF_TWO",
    "UNARY",
    "absolute",
    "acos",
    "asin",
    "atan",
    "ceil",
    "copy_sign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "floor",
    "fused",
    "log",
    "log1p",
    "log2",
    "log10",
    "polynomial",
    "power",
    "remainder",
    "round_away",
    "round_even",
    "rsqrt",
    "scalars",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
