"""Calls with pointers: what their author says in Python that they mean, one call after the other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..errors import LanguageError
from ..ir import Region
from ..language.extern import ExternCall
from ..language.meanings.extern import statement_meaning
from ..language.meanings.inexact import Inexact
from .expressions import ExpressionRunner
from .owners import claim
from .state import Run, State


def extern_call(runner: ExpressionRunner, call: ExternCall) -> Run:
    """The call for each element of the loop around it, or once for the block."""
    meaning = statement_meaning(call)
    starts = [runner.integers(region.start) for region in call.regions]
    values = [runner.prepare(value) for value in call.values]

    def run(state: State) -> None:
        corners = [start(state) for start in starts]
        given = [
            np.broadcast_to(np.asarray(getattr(v, "value", v)), state.box) for v in (f(state) for f in values)
        ]
        mask = None if state.mask is None else np.broadcast_to(state.mask, state.box)
        touched: dict[tuple[str, int], tuple[tuple[int, ...], bool]] = {}
        for element in product(*map(range, state.box)):
            if mask is None or mask[element]:
                spots = [[_at(part, element, state.box) for part in corner] for corner in corners]
                _one(
                    runner, state, call, meaning, element, spots, [value[element] for value in given], touched
                )

    return run


def _at(index: Any, element: tuple[int, ...], box: tuple[int, ...]) -> int:
    return int(np.broadcast_to(np.asarray(index), box)[element])


def _one(
    runner: ExpressionRunner, state: State, call: ExternCall, meaning: Any, element: tuple[int, ...],
    spots: list[list[int]], values: list[Any], touched: dict[tuple[str, int], tuple[tuple[int, ...], bool]],
) -> None:  # fmt: skip
    """One call: its arrays are copies, of which those that are written go back."""
    numbers = runner.numbers
    keys = [
        _key(state, region, spot, element, call) for region, spot in zip(call.regions, spots, strict=True)
    ]
    arrays: list[Any] = []
    for region, key, mode in zip(call.regions, keys, call.modes, strict=True):
        memory, dtype = state.names[region.buffer.name], region.buffer.dtype
        if mode == "w":
            found: Any = numbers.new(region.extent or (), dtype)
        else:
            found = numbers.read(memory, key, None, dtype, call.place)
        plain = getattr(found, "value", found)
        arrays.append(np.array(plain).astype(dtype.numpy).reshape(-1))
    _refuse_races(call, spots, element, touched)
    meaning(call, arrays, values)
    for region, key, mode, array in zip(call.regions, keys, call.modes, arrays, strict=True):
        if mode == "r":
            continue
        buffer, shape = region.buffer, region.extent or ()
        new: Any = array.reshape(shape)
        if isinstance(state.names[buffer.name], Inexact):
            wide = new.astype(np.float64) if buffer.dtype.is_float else new
            new = Inexact(wide, np.full(shape, np.inf))
        if buffer.scope in ("shared", "global"):
            claim(state, buffer, key, new, None, call.place)
        numbers.put(state.names[buffer.name], key, new, None, None, buffer.dtype)
        if buffer.scope in ("shared", "global"):
            state.touch(buffer.name, key, None)


def _key(state: State, region: Region, spot: list[int], element: tuple[int, ...], call: ExternCall) -> Any:
    """Where the elements of a region lie. Raises `LanguageError` where they leave the buffer."""
    buffer, extent = region.buffer, region.extent or ()
    for first, count, size in zip(spot, extent, buffer.extents, strict=True):
        if first < 0 or first + count > size:
            raise LanguageError(
                "a pointer of {function} is to elements outside of {name}", function=call.name,
                name=buffer.name, at=call.place, found=f"{count} elements from {first} on, of {size}",
                expected="elements inside: nothing tests that on a card",
            )  # fmt: skip
    box = tuple(slice(first, first + count) for first, count in zip(spot, extent, strict=True))
    # What a loop makes for each of its elements has their extents in front.
    own = len(np.shape(getattr(state.names[buffer.name], "value", state.names[buffer.name]))) - buffer.rank
    return (*element[:own], *box)


def _refuse_races(
    call: ExternCall, spots: list[list[int]], element: tuple[int, ...],
    touched: dict[tuple[str, int], tuple[tuple[int, ...], bool]],
) -> None:  # fmt: skip
    """Raise `LanguageError` where two elements of a loop touch one, and one of them writes."""
    for region, spot, mode in zip(call.regions, spots, call.modes, strict=True):
        buffer = region.buffer
        if buffer.scope not in ("shared", "global"):
            continue
        for offsets in product(*map(range, region.extent or ())):
            index = tuple(a + b for a, b in zip(spot, offsets, strict=True))
            key = buffer.name, int(np.ravel_multi_index(index, buffer.extents)) if index else 0
            before = touched.setdefault(key, (element, mode != "r"))
            if before[0] != element and (before[1] or mode != "r"):
                raise LanguageError(
                    "{function} is called for two elements of T.Parallel with pointers to {name}[{index}]",
                    function=call.name, name=buffer.name, index=", ".join(map(str, index)), at=call.place,
                    a=before[0], b=element, found="element {a} and element {b}",
                    expected="what one of them writes is no other's",
                )  # fmt: skip
            if mode != "r":
                touched[key] = element, True


__all__ = ["extern_call"]
