"""Values of Python told apart exactly: 1, 1.0 and True, or 0.0 and -0.0, are one to `==` and several here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from types import EllipsisType, NoneType, NotImplementedType
from typing import Any, cast

import numpy as np

from ...ir import DType, show
from ...language.tracing.values import Value

_THEMSELVES = {int, bool, str, bytes, NoneType, EllipsisType, NotImplementedType}
# Types of libraries whose values never change, and are equal only where they are the same.
_CONSTANTS = {
    ("datetime", "date"), ("datetime", "datetime"), ("datetime", "timedelta"), ("decimal", "Decimal"),
    ("fractions", "Fraction"), ("pathlib", "PosixPath"), ("pathlib", "WindowsPath"), ("re", "Pattern"),
    ("torch", "device"), ("torch", "dtype"), ("uuid", "UUID"),
}  # fmt: skip


def token(value: object) -> Hashable | None:
    """What a value that cannot change is, exactly; None for one that can, or holds others."""
    kind = type(value)
    if kind in _THEMSELVES:
        return kind, value
    if kind is float or kind is complex:
        number = cast(complex, value)
        return kind, float(number.real).hex(), float(number.imag).hex()
    if isinstance(value, np.generic):
        dtype = cast(Any, value).dtype
        return None if dtype.hasobject else (kind, str(dtype), value.tobytes())
    if kind is range or kind is slice:
        span = cast(range, value)
        parts = (token(span.start), token(span.stop), token(span.step))
        return None if None in parts else (kind, *parts)
    if isinstance(value, (np.dtype, DType)) or (kind.__module__, kind.__qualname__) in _CONSTANTS:
        return kind, cast(Hashable, value)
    return None


def same(one: object, other: object) -> bool:
    """Whether two values are one object, or constants that nothing tells apart."""
    if one is other:
        return True
    known = token(one)
    return known is not None and known == token(other)


def digest(array: np.ndarray[Any, Any]) -> Hashable:
    """What an array holds: its dtype, shape and strides, and a hash of its elements."""
    return str(array.dtype), array.shape, array.strides, hashlib.blake2b(array.tobytes()).digest()


class Same:
    """One object, as part of a key: equal to itself alone."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def frozen(value: Any, rest: Callable[[object], object]) -> Hashable:
    """An argument as part of a key. What has no value of its own counts as itself and is given to `rest`."""
    known = token(value)
    if known is not None:
        return known
    kind: type = value.__class__
    if isinstance(value, Value):
        return "size", show(value.expr)
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return kind, *((frozen(key, rest), frozen(each, rest)) for key, each in items)
    if isinstance(value, (list, tuple, set, frozenset)):
        return kind, *(frozen(each, rest) for each in cast(list[Any], value))
    if kind is np.ndarray and not value.dtype.hasobject:
        return kind, digest(value)
    rest(value)
    return Same(value)
