"""Running a kernel in NumPy: the meaning of the `tile`, `scheduled` and `bounded` stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..ir import Function
from ..ir.room import with_room
from ..language.meanings.extern import refuse_addresses
from ..passes.analysis.reads_writes import reads_and_writes
from .numbers import Numbers, Plain, Watched
from .orders import Order
from .state import State
from .statements import StatementRunner

Arrays = Mapping[str, NDArray[Any]]


def check_arguments(function: Function, arrays: Arrays) -> None:
    """Raise `ArgumentError` where an array is missing, unknown, or of another shape or dtype."""
    params = {each.name: each for each in function.arrays}
    for name in arrays:
        if name not in params:
            raise ArgumentError(
                "{function} has no array {name}", function=function.name, name=name, known=", ".join(params),
                expected="{known}",
            )  # fmt: skip
    for name, buffer in params.items():
        array = arrays.get(name)
        if array is None:
            raise ArgumentError("{name} of {function} is missing", name=name, function=function.name)
        if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
            raise ArgumentError(
                "the array {name} does not fit", name=name, shape=buffer.shape, dtype=buffer.dtype,
                expected="{shape} of {dtype}", found="{a} of {b}", a=array.shape, b=array.dtype,
            )  # fmt: skip


def execute(
    function: Function, arrays: Arrays, numbers: Numbers, only: frozenset[int] | None = None,
    touched: dict[str, Any] | None = None, order: Order | None = None, by: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the blocks on one kind of numbers; gives every parameter as it is afterwards.

    `only` are the numbers of the blocks to run, `touched` bools that mark what they store, `order` is that of
    blocks and atomics, and `by` arrays that get the number of the block, from 1, that stored an element last.
    """
    check_arguments(function, arrays)
    return with_room(lambda: _executed(function, arrays, numbers, only, touched, order, by or {}))


def _executed(
    function: Function, arrays: Arrays, numbers: Numbers, only: frozenset[int] | None,
    touched: dict[str, Any] | None, order: Order | None, by: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    refuse_addresses(function)
    run = StatementRunner(numbers).body(function.body)
    written = reads_and_writes(function)[1]
    names: dict[str, Any] = {}
    for param in function.arrays:
        array = arrays[param.name]
        own = param.name in written
        names[param.name] = numbers.given(array.copy() if own else array, param, own)
    state = State(
        numbers, names, only=only, touched=touched if touched is not None else {}, order=order, by=by
    )
    if type(numbers) is Plain:
        state.owners = {name: np.zeros(arrays[name].shape, np.int32) for name in written}
    with np.errstate(all="ignore"):
        run(state)
    return {each.name: names[each.name] for each in function.arrays}


def run_reference(
    function: Function, arrays: Arrays, *, uninitialised: Literal["poison", "raise"] = "poison"
) -> dict[str, NDArray[Any]]:
    """Run a function of stage `tile`, `scheduled` or `bounded`; the arrays given are not changed.

    `arrays` holds one array for each parameter, of its shape and dtype. Returns the arrays that the
    function writes, as they are afterwards (elements it does not write keep their value). Arithmetic
    is that of the declared dtypes with one rounding an operation; tiles start out as poison (NaN, or
    bytes 0xA5), so that what was never written shows up; `uninitialised="raise"` makes reading it an
    error. Raises `ArgumentError` for arrays that do not fit, and `LanguageError` at the line of a
    race (between elements of a loop or between blocks), of an access outside a tile, or of a word
    that has no meaning here.
    """
    results = execute(function, arrays, Watched() if uninitialised == "raise" else Plain())
    return {name: getattr(results[name], "value", results[name]) for name in reads_and_writes(function)[1]}
