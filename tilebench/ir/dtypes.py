"""Element types: what a value is, apart from any target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import DTypeError, nearest


@dataclass(frozen=True)
class DType:
    """An element type. `kind` is one of `float`, `int`, `uint`, `bool`.

    `mantissa` counts the stored fraction bits of a float (10 for float16), 0 otherwise. Elements of 4
    bits lie two a byte in memory, the element of even index in the low half; rows are whole bytes.
    """

    name: str
    bits: int
    kind: str
    mantissa: int = 0

    def __eq__(self, other: object) -> bool:
        # There is one object a type, but for what was read from a file.
        if self is other:
            return True
        return isinstance(other, DType) and (self.name, self.bits, self.kind, self.mantissa) == (
            other.name, other.bits, other.kind, other.mantissa,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self.name)

    def bytes_of(self, count: int) -> int:
        """Bytes that `count` elements in a row take. Raises `DTypeError` where they end within a byte."""
        whole, rest = divmod(self.bits * count, 8)
        if rest:
            raise DTypeError(
                "{count} elements of {name} are no whole bytes", count=count, name=self.name,
                expected="a multiple of {per} elements", per=self.per_byte,
            )  # fmt: skip
        return whole

    @cached_property
    def per_byte(self) -> int:
        """How many elements share a byte: 1, but for types narrower than a byte."""
        return max(1, 8 // self.bits)

    def elements_in(self, size: int) -> int:
        """How many whole elements `size` bytes hold."""
        return size * 8 // self.bits

    @cached_property
    def is_float(self) -> bool:
        return self.kind == "float"

    @cached_property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def has_infinity(self) -> bool:
        """Whether the format has infinities: every float but those named `fn` (finite)."""
        return self.is_float and not self.name.endswith("fn")

    @property
    def has_nan(self) -> bool:
        """Whether the format has a NaN: every float but those of 4 bits, which have numbers alone."""
        return self.is_float and self.bits > 4

    @property
    def saturates(self) -> bool:
        """Whether a value too large for the format is stored as the largest: floats of 8 and of 4 bits."""
        return self.is_float and self.bits <= 8

    @property
    def largest(self) -> float:
        """The greatest finite value of a float: 65504 of float16, 448 of float8_e4m3fn, 6 of 4 bits."""
        exponent = self.bits - 1 - self.mantissa
        # Without infinities the top exponent holds numbers too, all but the last where that is NaN.
        top, spare = (0, 1) if self.has_infinity else (1, 1 + self.has_nan)
        return (2.0 - spare * 2.0**-self.mantissa) * 2.0 ** (2 ** (exponent - 1) - 1 + top)

    @property
    def unit_roundoff(self) -> float:
        """Half an ulp at 1: the largest relative error of one rounding; 0 for exact types."""
        return 2.0 ** -(self.mantissa + 1) if self.is_float else 0.0

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type; bfloat16, 8-bit floats and dtypes of 4 bits come from `ml_dtypes`."""
        if self.name in _ML_DTYPES:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))
        return np.dtype(self.name)

    @cached_property
    def least(self) -> float | int:
        """The most negative value: minus infinity for floats that have it."""
        if self.kind == "bool":
            return 0
        if self.is_float:
            return float("-inf") if self.has_infinity else -self.largest
        return 0 if self.kind == "uint" else -(2 ** (self.bits - 1))

    @cached_property
    def most(self) -> float | int:
        """The greatest value: infinity for floats that have it."""
        if self.kind == "bool":
            return 1
        if self.is_float:
            return float("inf") if self.has_infinity else self.largest
        return 2**self.bits - 1 if self.kind == "uint" else 2 ** (self.bits - 1) - 1

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"T.{self.name}"


# Types that NumPy has not; those of 4 bits are one a byte there.
_ML_DTYPES = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4"})

float64 = DType("float64", 64, "float", 52)
float32 = DType("float32", 32, "float", 23)
float16 = DType("float16", 16, "float", 10)
bfloat16 = DType("bfloat16", 16, "float", 7)
float8_e4m3fn = DType("float8_e4m3fn", 8, "float", 3)
float8_e5m2 = DType("float8_e5m2", 8, "float", 2)
float4_e2m1fn = DType("float4_e2m1fn", 4, "float", 1)
int4 = DType("int4", 4, "int")
int8 = DType("int8", 8, "int")
int16 = DType("int16", 16, "int")
int32 = DType("int32", 32, "int")
int64 = DType("int64", 64, "int")
uint4 = DType("uint4", 4, "uint")
uint8 = DType("uint8", 8, "uint")
uint16 = DType("uint16", 16, "uint")
uint32 = DType("uint32", 32, "uint")
uint64 = DType("uint64", 64, "uint")
boolean = DType("bool", 8, "bool")

ALL: dict[str, DType] = {
    each.name: each
    for each in (
        float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, float4_e2m1fn,
        int4, int8, int16, int32, int64, uint4, uint8, uint16, uint32, uint64, boolean,
    )
}  # fmt: skip
ALIASES = {"float": float32, "half": float16, "int": int32, "uint": uint32, "tfloat32": float32}


def dtype_of(given: object) -> DType:
    """The `DType` that a string, NumPy type, torch type or `DType` means.

    Raises `DTypeError` with the nearest names when there is none.
    """
    if isinstance(given, DType):
        return given
    if given is float:
        return float32
    if given is int:
        return int32
    if given is bool:
        return boolean
    name = given if isinstance(given, str) else str(getattr(given, "name", None) or given)
    name = name.removeprefix("torch.").removeprefix("T.")
    found = ALL.get(name) or ALIASES.get(name)
    if found is None:
        try:
            found = ALL.get(np.dtype(given).name)  # type: ignore[call-overload]
        except TypeError:
            found = None
    if found is None:
        close = nearest(name, list(ALL))
        raise DTypeError(
            "there is no dtype {name!r}",
            name=name,
            hint="did you mean " + " or ".join(close) + "?" if close else "known: " + ", ".join(ALL),
        )
    return found


def bytes_of(dtype: DType) -> DType:
    """A dtype with the same values whose elements share no byte: int8 for int4, else the dtype itself."""
    if dtype.per_byte == 1:
        return dtype
    return float8_e4m3fn if dtype.is_float else ALL[f"{dtype.kind}8"]
