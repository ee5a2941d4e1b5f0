"""Calls like an earlier one: torch tensors of the same shapes, dtypes and card, anywhere in memory.

A call that has passed every check leaves an entry under the shapes of its tensors. What a later one could
have otherwise is asked of each tensor again: class, dtype, contiguity, sign, gradient, card, address, its
alignment and what it shares with others. Whatever does not fit goes the long way, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...runtime.arrays import ArgumentChecker
from ...runtime.describe import ArrayInfo
from ...runtime.glances import is_torch
from ...runtime.tensor_guards import Guard, guard_of
from ...targets.devices import CARD

_MOST_KNOWN = 256


@dataclass(frozen=True)
class _Entry:
    """Of each tensor class, dtype, shape and whether it is written; bytes of pairs that must not overlap."""

    rows: tuple[tuple[type, Any, Any, bool], ...]
    ordinal: int
    alignment: int
    pairs: tuple[tuple[int, int, int, int], ...]
    launch: Callable[[Sequence[int]], None]
    # torch's own look at all of them at once; None where there is none.
    guard: Guard | None = None


class RepeatedCalls:
    """The entries of one kernel, by the card and the shapes of the tensors; most calls are like the last."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Entry] = {}
        self._last: _Entry | None = None

    def __call__(self, tensors: Sequence[Any]) -> bool:
        """Launch, if a call like this one has been; whether it was launched."""
        try:
            entry = self._last
            if entry is not None and entry.guard is not None and entry.guard(*tensors):
                pointers = _aligned(entry, [tensor.data_ptr() for tensor in tensors])
            else:
                pointers = None if entry is None else _addresses(entry, tensors)
            if pointers is None:
                found = self._known.get((tensors[0].get_device(), *[tensor.shape for tensor in tensors]))
                if found is None or found is entry:
                    return False
                entry, pointers = found, _addresses(found, tensors)
        except (AttributeError, RuntimeError, IndexError, TypeError, ValueError):
            return False  # other libraries' arrays, tensors that cannot be asked, another number of them
        if entry is None or pointers is None:
            return False
        for i, j, first, second in entry.pairs:
            if pointers[i] < pointers[j] + second and pointers[j] < pointers[i] + first:
                return False
        self._last = entry
        entry.launch(pointers)
        return True

    def remember(
        self, checker: ArgumentChecker, infos: Sequence[ArrayInfo], alignment: int,
        prepared: Callable[[int, Any], Any],
    ) -> None:  # fmt: skip
        """Keep what was decided for these tensors. `prepared(ordinal, owner)` makes their launch."""
        tensors: list[Any] = [info.owner for info in infos]
        device = infos[0].device if infos else ""
        if not device.startswith(CARD + ":") or not all(checker.plain) or not all(map(is_torch, tensors)):
            return
        if any(0 in info.shape for info in infos):
            return
        ordinal = int(device.removeprefix(CARD + ":"))
        launch = prepared(ordinal, tensors[0])
        if launch is None:
            return
        kinds: list[Any] = list(map(type, tensors))
        rows = tuple(
            (kind, tensor.dtype, tensor.shape, param.written)
            for kind, tensor, param in zip(kinds, tensors, checker.params, strict=True)
        )
        pairs = tuple((i, j, checker.sizes[i], checker.sizes[j]) for i, j in checker.pairs)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        key = (ordinal, *[tensor.shape for tensor in tensors])
        guard = guard_of(tensors)
        self._last = self._known[key] = _Entry(
            rows, ordinal, max(alignment, launch.alignment), pairs, launch, guard
        )


def _aligned(entry: _Entry, pointers: list[int]) -> list[int] | None:
    """The addresses, where none is null or off the alignment."""
    bits = 0
    for pointer in pointers:
        if not pointer:
            return None
        bits |= pointer
    return None if bits % entry.alignment else pointers


def _addresses(entry: _Entry, tensors: Sequence[Any]) -> list[int] | None:
    """The addresses of tensors that are as those of an entry; None where one is not."""
    ordinal, pointers = entry.ordinal, list[int]()
    for tensor, (kind, dtype, shape, written) in zip(tensors, entry.rows, strict=True):
        if (
            type(tensor) is not kind
            or tensor.dtype is not dtype
            or tensor.shape != shape
            or tensor.get_device() != ordinal
            or not tensor.is_contiguous()
            or tensor.is_neg()
            or (written and tensor.requires_grad)
        ):
            return None
        pointers.append(tensor.data_ptr())
    return _aligned(entry, pointers)


__all__ = ["RepeatedCalls"]
