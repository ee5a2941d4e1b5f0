"""What functions of a kernel's own CUDA text give, where its author says it in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import LanguageError
from ...ir import Extern, Function, walk
from ..addresses import TensorAt
from .inexact import Inexact

# By the function's name; the last that was said holds.
MEANINGS: dict[str, Callable[..., Any]] = {}


def meaning_of(expr: Extern) -> Callable[..., Any]:
    """The function of arrays that a call means. Raises `LanguageError` at its line where nobody said it."""
    found = MEANINGS.get(expr.name)
    if found is None:
        raise LanguageError(
            "{name} of T.call_extern has no meaning in Python, so only a card can run it", name=expr.name,
            at=expr.place,
            hint="say it: T.call_extern(..., meaning=lambda x: ...), a function of NumPy arrays",
        )  # fmt: skip
    kind = expr.type.numpy
    return lambda *args: np.asarray(found(*args)).astype(kind)[()]


def statement_meaning(call: Any) -> Callable[[Any, list[Any], list[Any]], None]:
    """What a call with pointers does: it takes the call, arrays of one dimension, and the values.

    Raises `LanguageError` at its line where nobody said it.
    """
    found = MEANINGS.get(call.name)
    if found is None:
        raise LanguageError(
            "{name} of T.call_extern has no meaning in Python, so only a card can run it", name=call.name,
            at=call.place, hint="say it: T.call_extern(..., meaning=f), a function that fills NumPy arrays",
        )  # fmt: skip

    if "p" in call.modes:
        raise LanguageError(
            "which elements {name} of T.call_extern touches nobody says, so only a card can run it",
            name=call.name, at=call.place,
            hint="give it T.access_ptr with its elements in place of T.address_of",
        )  # fmt: skip

    def apply(call: Any, arrays: list[Any], values: list[Any]) -> None:
        for mode, array in zip(call.modes, arrays, strict=True):
            array.flags.writeable = mode != "r"
        pointers, numbers = iter(arrays), iter(values)
        found(*[next(numbers) if word == "x" else next(pointers) for word in call.form.split()])

    return apply


def refuse_addresses(function: Function) -> None:
    """Raise `LanguageError` where a kernel reads arrays that nobody passes, but their addresses."""
    for statement in walk(function):
        if isinstance(statement, TensorAt):
            raise LanguageError(
                "{name} is known by its address alone, so only a card can run it",
                name=statement.buffer.name, at=statement.place,
                hint="compare with what another library computes from the same arrays",
            )  # fmt: skip


def bounded_meaning_of(expr: Extern) -> Callable[..., Any]:
    """The same with a bound of the error: none, for nobody says how exact the function is."""
    plain = meaning_of(expr)
    wide = np.dtype(np.float64) if expr.type.is_float else expr.type.numpy

    def bounded(*args: Any) -> Inexact:
        value = np.asarray(plain(*[getattr(arg, "value", arg) for arg in args])).astype(wide)
        return Inexact(value, np.full(value.shape, np.inf))

    return bounded
