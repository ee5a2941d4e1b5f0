"""The two kinds of numbers that the interpreter runs on: plain arrays, and values with error bounds.

The interpreter walks the function once and asks one of these for every operation; both take their
operations from the language, so there is no second list of them here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..errors import LanguageError, Place
from ..ir import Buffer
from ..ir.dtypes import DType
from ..language.meanings.conversion import bits_bound, bits_meaning, cast_bound, cast_meaning
from ..language.meanings.elements import scalar_bound, scalar_meaning
from ..language.meanings.inexact import Inexact, exact, inexact
from ..language.meanings.rounding import number_in
from ..language.meanings.tiles import TileMeaning
from ..language.tracing.operators import array_of, operator_bound, operator_meaning, select_bound

# What lanes do where a condition depends on rounding: (may do either, what the reference does).
Doubt = tuple[Any, Any] | None


class Numbers(Protocol):
    """What the interpreter asks for. Values are Python numbers, arrays, or `Inexact`."""

    def constant(self, value: Any, dtype: DType) -> Any: ...
    def operator(self, op: str, dtype: DType) -> Callable[..., Any]: ...
    def function(self, word: str, dtype: DType) -> Callable[..., Any] | None: ...
    def cast(self, value: Any, source: DType, target: DType) -> Any: ...
    def reinterpret(self, value: Any, source: DType, target: DType) -> Any: ...
    def select(self, condition: Any, a: Any, b: Any, dtype: DType) -> Any: ...
    def may(self, condition: Any, place: Place | None) -> tuple[Any, Any, Any]: ...
    def new(self, shape: tuple[int, ...], dtype: DType) -> Any: ...
    def zeros(self, shape: tuple[int, ...], dtype: DType) -> Any: ...
    def given(self, array: Any, buffer: Buffer, written: bool = True) -> Any: ...
    def read(self, memory: Any, key: Any, mask: Any, dtype: DType, place: Place | None) -> Any: ...
    def put(self, memory: Any, key: Any, value: Any, mask: Any, doubt: Doubt, dtype: DType) -> None: ...
    def spread(self, value: Any, shape: tuple[int, ...], dtype: DType) -> Any: ...
    def tile(self, meaning: TileMeaning) -> Callable[..., Any]: ...
    def integer(self, value: Any, place: Place | None) -> Any: ...
    def variable(self, value: Any, mask: Any, place: Place | None) -> Any: ...
    def kept(self, values: Any, dtype: DType) -> Any: ...


# A larger input is widened to float64 where it is read: most of what runs alone reads a part of it.
WIDENED_BYTES = 16 << 20


def poison_value(dtype: DType) -> Any:
    """What unwritten elements hold: a NaN with a payload, bytes 0xA5 for integers, True for bools.

    Of 4 bits every pattern is a number that a kernel may write: 5 is as good as any.
    """
    if dtype.kind == "bool":
        return np.bool_(True)
    if dtype.per_byte > 1:
        return dtype.numpy.type(5)
    bits = _POISON.get(dtype.name)
    if bits is None:
        return np.frombuffer(b"\xa5" * dtype.numpy.itemsize, dtype.numpy)[0]
    return np.frombuffer(bits.to_bytes(dtype.numpy.itemsize, "little"), dtype.numpy)[0]


_POISON = {
    "float64": 0x7FF8A5A5A5A5A5A5, "float32": 0x7FE5A5A5, "float16": 0x7EA5, "bfloat16": 0x7FE5,
    "float8_e4m3fn": 0x7F, "float8_e5m2": 0x7E,
}  # fmt: skip


choose: Any = np.where


class Plain:
    """Arrays of the declared dtypes, one rounding an operation."""

    def constant(self, value: Any, dtype: DType) -> Any:
        if not dtype.is_float:
            return bool(value) if dtype.kind == "bool" else int(value)
        return number_in(value, dtype)

    def operator(self, op: str, dtype: DType) -> Callable[..., Any]:
        return operator_meaning(op, dtype)

    def function(self, word: str, dtype: DType) -> Callable[..., Any] | None:
        return scalar_meaning(word, dtype)

    def cast(self, value: Any, source: DType, target: DType) -> Any:
        return cast_meaning(value, source, target)

    def reinterpret(self, value: Any, source: DType, target: DType) -> Any:
        return bits_meaning(value, source, target)

    def select(self, condition: Any, a: Any, b: Any, dtype: DType) -> Any:
        return choose(condition, array_of(a, dtype), array_of(b, dtype))

    def may(self, condition: Any, place: Place | None) -> tuple[Any, Any, Any]:
        """Lanes that may take the branch, lanes that may not, and what is in doubt (nothing here)."""
        return condition, np.logical_not(condition), None

    def new(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return np.full(shape, poison_value(dtype), dtype.numpy)

    def zeros(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return np.zeros(shape, dtype.numpy)

    def given(self, array: Any, buffer: Buffer, written: bool = True) -> Any:
        return array

    def read(self, memory: Any, key: Any, mask: Any, dtype: DType, place: Place | None) -> Any:
        return memory[key]

    def put(self, memory: Any, key: Any, value: Any, mask: Any, doubt: Doubt, dtype: DType) -> None:
        if mask is None:
            memory[key] = value
        else:
            memory[key] = np.where(mask, np.asarray(value, dtype.numpy), memory[key])

    def spread(self, value: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        array: Any = np.asarray(value, dtype.numpy)
        return np.broadcast_to(array, shape)

    def tile(self, meaning: TileMeaning) -> Callable[..., Any]:
        return meaning.plain

    def integer(self, value: Any, place: Place | None) -> Any:
        return value

    def variable(self, value: Any, mask: Any, place: Place | None) -> Any:
        """The value of a scalar of each thread."""
        return value

    def kept(self, values: Any, dtype: DType) -> Any:
        """What is kept as the value of a scalar of each thread, from an array of the box."""
        return values


class NothingWritten(LanguageError):
    """Elements are read that no statement has written."""


class Watched(Plain):
    """As `Plain`, and a read of an element that was never written is an error.

    Storage pairs each element with a mark (in the place of `Inexact`'s error): 1 until it is written.
    """

    def new(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return Inexact(super().new(shape, dtype), np.ones(shape))

    def zeros(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return exact(super().zeros(shape, dtype))

    def given(self, array: Any, buffer: Buffer, written: bool = True) -> Any:
        return exact(array)

    def read(self, memory: Any, key: Any, mask: Any, dtype: DType, place: Place | None) -> Any:
        return self.variable(memory[key], mask, place)

    def put(self, memory: Any, key: Any, value: Any, mask: Any, doubt: Doubt, dtype: DType) -> None:
        new = inexact(value)
        if mask is not None:
            old: Inexact = memory[key]
            plain = np.where(mask, np.asarray(new.value, dtype.numpy), old.value)
            new = Inexact(plain, np.where(mask, new.error, old.error))
        memory[key] = new

    def spread(self, value: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        array = inexact(value)
        plain = super().spread(array.value, shape, dtype)
        return Inexact(plain, np.broadcast_to(array.error, shape))

    def variable(self, value: Any, mask: Any, place: Place | None) -> Any:
        if not isinstance(value, Inexact):
            return value
        if value.error.any():
            missing = value.error > 0
            # Masks belong to elements of a loop; a tile that is read as a whole has none.
            if mask is None or np.any(np.logical_and(missing, mask)):
                raise NothingWritten(
                    "{count} elements are read here that nothing has written",
                    at=place, count=int(missing.sum()),
                    hint="fill the buffer first: T.clear(...) or T.fill(...)",
                )  # fmt: skip
        return value.value


class BoundedNumbers:
    """Floats as `Inexact`; integers and bools plain until an error reaches them."""

    def constant(self, value: Any, dtype: DType) -> Any:
        if not dtype.is_float:
            return bool(value) if dtype.kind == "bool" else int(value)
        return exact(np.float64(number_in(value, dtype)))

    def operator(self, op: str, dtype: DType) -> Callable[..., Any]:
        return operator_bound(op, dtype)

    def function(self, word: str, dtype: DType) -> Callable[..., Any] | None:
        return scalar_bound(word, dtype)

    def cast(self, value: Any, source: DType, target: DType) -> Any:
        return cast_bound(value, source, target)

    def reinterpret(self, value: Any, source: DType, target: DType) -> Any:
        return bits_bound(value, source, target)

    def select(self, condition: Any, a: Any, b: Any, dtype: DType) -> Any:
        return select_bound(condition, array_of(a, dtype), array_of(b, dtype))

    def may(self, condition: Any, place: Place | None) -> tuple[Any, Any, Any]:
        if not isinstance(condition, Inexact):
            return condition, np.logical_not(condition), None
        unsure = condition.error > 0
        if condition.ndim == 0 and unsure:
            raise LanguageError(
                "this condition depends on rounding, so no bound of what follows can be given", at=place,
                hint="compare with integers, or by T.if_then_else on single elements",
            )  # fmt: skip
        return condition.value | unsure, ~condition.value | unsure, (unsure, condition.value)

    def new(self, shape: tuple[int, ...], dtype: DType) -> Any:
        kind: Any = np.float64 if dtype.is_float else dtype.numpy
        return Inexact(np.full(shape, poison_value(dtype), kind), np.zeros(shape))

    def zeros(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return Inexact(np.zeros(shape, np.float64 if dtype.is_float else dtype.numpy), np.zeros(shape))

    def given(self, array: Any, buffer: Buffer, written: bool = True) -> Any:
        if not written and array.nbytes > WIDENED_BYTES:
            return Inexact(array, np.broadcast_to(0.0, array.shape))
        return Inexact(array.astype(np.float64) if buffer.dtype.is_float else array, np.zeros(array.shape))

    def read(self, memory: Any, key: Any, mask: Any, dtype: DType, place: Place | None) -> Any:
        elements: Inexact = memory[key]
        if dtype.is_float:
            return elements if elements.value.dtype == np.float64 else elements.widened()
        return elements if elements.error.any() else elements.value

    def put(self, memory: Any, key: Any, value: Any, mask: Any, doubt: Doubt, dtype: DType) -> None:
        new = inexact(array_of(value, dtype))
        if mask is None:
            memory[key] = new
            return
        old: Inexact = memory[key]
        if doubt is not None:
            unsure, chosen = doubt
            new = inexact(select_bound(Inexact(*np.broadcast_arrays(chosen, unsure)), new, old))
        memory[key] = Inexact(np.where(mask, new.value, old.value), np.where(mask, new.error, old.error))

    def spread(self, value: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        array = inexact(value)
        kind: Any = np.float64 if dtype.is_float else dtype.numpy
        return Inexact(np.broadcast_to(array.value.astype(kind), shape), np.broadcast_to(array.error, shape))

    def tile(self, meaning: TileMeaning) -> Callable[..., Any]:
        return meaning.bound

    def integer(self, value: Any, place: Place | None) -> Any:
        if isinstance(value, Inexact):
            raise LanguageError(
                "this index depends on the rounding of floats, so no bound can be given", at=place,
                hint="indices made of integers alone have exact values",
            )  # fmt: skip
        return value

    def variable(self, value: Any, mask: Any, place: Place | None) -> Any:
        return value

    def kept(self, values: Any, dtype: DType) -> Any:
        return self.read(values, ..., None, dtype, None)
