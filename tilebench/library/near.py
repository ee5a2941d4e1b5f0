"""Numbers with running error bounds: what an operator's result has to be, in NumPy, CuPy or torch.

A `Near` is what is right in float64 and how far work in float32 that follows the same formula may be off. An
operation adds what its own rounding can do to what its operands bring along (Higham, Accuracy and Stability
of Numerical Algorithms, chapters 3 and 4). The unit is twice float32's: matrix instructions truncate,
functions are good to two units, and a kernel may write a formula in another order. The rounding to the dtype
of the result is added at the end, by `allowed`. Only smooth operations have a bound: a kernel that decides
by a number that is near another has to be given exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.dtypes import dtype_of

UNIT = {
    "float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3,
}  # fmt: skip
# Half the least distance of two numbers of the dtype.
LEAST = {
    "float64": 2.0**-1075, "float32": 2.0**-150, "float16": 2.0**-25, "bfloat16": 2.0**-134,
    "float8_e4m3fn": 2.0**-10, "float8_e5m2": 2.0**-17,
}  # fmt: skip
SINGLE = UNIT["float32"]
ROUNDING = 2 * SINGLE


@dataclass(frozen=True)
class Exact:
    """`value` in float64 or int64, and the absolute `error` that work before the last rounding may have."""

    value: Any
    error: Any = 0.0


def allowed(exact: Exact, dtype: str) -> Any:
    """How far each element of an output of the dtype may be off; an integer not at all beyond its error."""
    if dtype not in UNIT:
        return exact.error
    inner = exact.error + 0 * exact.value
    return (inner + UNIT[dtype] * (abs(exact.value) + inner)) * 1.000001 + LEAST[dtype]


def overflowed(xp: Any, found: Any, exact: Exact, dtype: str) -> Any:
    """Where elements of an output, in float64, are infinite as what is right has no number of the dtype."""
    known = dtype_of(dtype)
    if not known.is_float:
        return False
    beyond = abs(exact.value) + allowed(exact, dtype) > known.largest
    return beyond & xp.isinf(found) & (xp.sign(found) == xp.sign(exact.value))


@dataclass(frozen=True, eq=False)
class Near:
    """`value` within `error`; arrays of the module `xp`, which is NumPy, CuPy or torch."""

    xp: Any
    value: Any
    error: Any

    def _made(self, value: Any, error: Any, roundings: float = 1) -> Near:
        return Near(self.xp, value, error + roundings * ROUNDING * (abs(value) + error))

    def _other(self, other: Any) -> Near:
        return other if isinstance(other, Near) else Near(self.xp, other, 0.0)

    def __add__(self, other: Any) -> Near:
        other = self._other(other)
        return self._made(self.value + other.value, self.error + other.error)

    def __neg__(self) -> Near:
        return Near(self.xp, -self.value, self.error)

    def __sub__(self, other: Any) -> Near:
        return self + -self._other(other)

    def __rsub__(self, other: Any) -> Near:
        return -self + other

    def __mul__(self, other: Any) -> Near:
        other = self._other(other)
        error = abs(self.value) * other.error + self.error * abs(other.value) + self.error * other.error
        return self._made(self.value * other.value, error)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Near:
        if isinstance(other, float):
            return self._made(self.value / other, self.error / abs(other))
        return self * self._other(other).inverse()

    def __rtruediv__(self, other: Any) -> Near:
        return self.inverse() * other

    def __matmul__(self, other: Any) -> Near:
        other = self._other(other)
        left, right = abs(self.value), abs(other.value)
        terms = self.value.shape[-1]
        error = (left + self.error) @ (right + other.error) * ((terms + 2) * ROUNDING)
        if not isinstance(self.error, float):
            error = error + self.error @ right
        if not isinstance(other.error, float):
            error = error + (left + self.error) @ other.error
        return Near(self.xp, self.value @ other.value, error)

    def __getitem__(self, where: Any) -> Near:
        return self._moved(lambda array: array[where])

    def _moved(self, move: Callable[[Any], Any]) -> Near:
        """Elements in other places; an error that is one number stays one."""
        return Near(
            self.xp, move(self.value), self.error if isinstance(self.error, float) else move(self.error)
        )

    def swapaxes(self, one: int, two: int) -> Near:
        return self._moved(lambda array: array.swapaxes(one, two))

    @property
    def T(self) -> Near:
        return self.swapaxes(-1, -2)

    def reshape(self, *shape: int) -> Near:
        return self._moved(lambda array: array.reshape(*shape))

    def sum(self, axis: int, keepdims: bool = False) -> Near:
        terms, sums = self.value.shape[axis], self.xp.sum
        error = sums(abs(self.value) * (terms * ROUNDING) + self.error, axis=axis, keepdims=keepdims)
        return Near(self.xp, sums(self.value, axis=axis, keepdims=keepdims), error)

    def mean(self, axis: int, keepdims: bool = False) -> Near:
        return self.sum(axis, keepdims) * (1 / self.value.shape[axis])

    def inverse(self) -> Near:
        """1 / x; without limit where x may be zero."""
        room = self.xp.clip(abs(self.value) - self.error, 1e-300, None)
        return self._made(1 / self.value, self.error / (abs(self.value) * room))

    def exp(self) -> Near:
        """Of a number by any of e**x and 2**(x log2 e): the argument is rounded on the way."""
        value = self.xp.exp(self.value)
        off = self.error + 2 * ROUNDING * abs(self.value)
        return self._made(value, value * self.xp.expm1(off), 4)

    def log(self) -> Near:
        room = self.xp.clip(self.value - self.error, 1e-300, None)
        return self._made(self.xp.log(self.value), self.error / room + 2 * ROUNDING, 4)

    def rsqrt(self) -> Near:
        room = self.xp.clip(self.value - self.error, 1e-300, None)
        return self._made(self.value**-0.5, 0.5 * self.error * room**-1.5, 4)

    def sigmoid(self) -> Near:
        return 1.0 / (1.0 + (-self).exp())

    def relu(self) -> Near:
        """The larger of x and zero, which no rounding moves further from it."""
        return Near(self.xp, self.value * (self.value > 0), self.error)

    def gelu(self) -> Near:
        """x Phi(x). Its slope is below 1.13, and 1 + erf is good to float32's unit, not to its own."""
        share = 0.5 * (1.0 + _erf(self.xp, self.value * math.sqrt(0.5)))
        return Near(self.xp, self.value * share, 1.13 * self.error + 8 * ROUNDING * abs(self.value))

    def gelu_tanh(self) -> Near:
        """x (1 + tanh(c (x + 0.044715 x^3))) / 2 with c = sqrt(2 / pi); its slope is below 1.13."""
        inner = math.sqrt(2 / math.pi) * (self.value + 0.044715 * self.value**3)
        share = 0.5 * (1.0 + self.xp.tanh(inner))
        return Near(self.xp, self.value * share, 1.13 * self.error + 8 * ROUNDING * abs(self.value))

    def activated(self, activation: str) -> Near:
        """Under an activation by its name: none, relu, gelu or gelu_tanh."""
        return self if activation == "none" else getattr(self, activation)()

    def where(self, condition: Any, other: float) -> Near:
        """Itself where the condition holds, and `other`, exactly, elsewhere."""
        error = self.xp.where(condition, self.error + 0 * self.value, 0.0)
        return Near(self.xp, self.xp.where(condition, self.value, other), error)

    def narrowed(self, dtype: str) -> Near:
        """Rounded to a dtype on the way, or left as wide as it is: a kernel may do either."""
        error = self.error + UNIT[dtype] * (abs(self.value) + self.error) + LEAST[dtype]
        return Near(self.xp, self.value, error)

    def exact(self) -> Exact:
        return Exact(self.value, self.error)


def _erf(xp: Any, x: Any) -> Any:
    """erf of the array module; NumPy has none, and elements go through Python's."""
    name = xp.__name__
    if name == "numpy":
        return xp.frompyfunc(math.erf, 1, 1)(x).astype(x.dtype)
    if name == "torch":
        return xp.special.erf(x)
    import importlib

    special: Any = importlib.import_module(f"{name}x.scipy.special")
    return special.erf(x)


def near(xp: Any, value: Any) -> Near:
    """An input, which counts as exact."""
    return Near(xp, value, 0.0)


__all__ = ["LEAST", "ROUNDING", "SINGLE", "UNIT", "Exact", "Near", "allowed", "near", "overflowed"]
