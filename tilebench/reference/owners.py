"""Races between blocks: two of them store different values to one place of a global buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LanguageError, Place
from ..ir import Buffer

if TYPE_CHECKING:
    from .state import State


def claim(state: State, buffer: Buffer, key: Any, value: Any, mask: Any, place: Place | None) -> None:
    """Note which block is about to store, and compare with what another one stored there.

    Only buffers in `state.owners` are watched: an array of the number of the block, from 1, that
    stored last, 0 for none. Raises `LanguageError` for a race.
    """
    owners = state.owners.get(buffer.name)
    if owners is None:
        return
    before: Any = np.asarray(owners[key])
    if before.any():
        _compare(state, buffer, key, value, mask, before, place)
    owners[key] = state.block if mask is None else np.where(mask, state.block, before)


def _compare(
    state: State, buffer: Buffer, key: Any, value: Any, mask: Any, before: Any, place: Place | None
) -> None:
    foreign: Any = (before != 0) & (before != state.block)
    if mask is not None:
        foreign = np.logical_and(foreign, mask)
    if not foreign.any():
        return
    old: Any = np.asarray(state.names[buffer.name][key])
    new: Any = np.broadcast_to(np.asarray(value, buffer.dtype.numpy), old.shape)
    clash: Any = foreign & (old != new) & ~((old != old) & (new != new))
    if clash.any():
        first = int(np.argmax(clash))
        raise LanguageError(
            "two blocks store different values to one element of {name}", name=buffer.name, at=place,
            a=int(before.flat[first]) - 1, b=state.block - 1, x=old.flat[first], y=new.flat[first],
            expected="each element stored by one block, or equal values",
            found="block {a} stores {x}, block {b} stores {y} (blocks counted from 0, x fastest)",
            hint="blocks run in no order; give each its own elements, or reduce in a second kernel",
        )  # fmt: skip
