"""Calls with pointers: each lane's arrays are gathered, handed to the meaning, and put back."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..ir import Region
from ..language.extern import ExternCall
from ..language.meanings.extern import statement_meaning
from .lanes import Lanes
from .state import Mask


def extern_call(lanes: Lanes, call: ExternCall, mask: Mask) -> None:
    """`T.call_extern("f", A_l[0 : 4], form="r", together=True)`: of a block together, the first thread's."""
    meaning = statement_meaning(call)
    active = lanes.full(mask).copy()
    if call.together:
        rows = active.reshape(lanes.blocks, lanes.threads)
        first = np.zeros_like(rows)
        first[np.arange(lanes.blocks), rows.argmax(axis=1)] = True
        active &= first.reshape(-1)
    arrays = [
        _gathered(lanes, region, active) if mode != "w" else _blank(lanes, region)
        for region, mode in zip(call.regions, call.modes, strict=True)
    ]
    values = [lanes.wide(lanes.value(value, active), value.dtype.numpy) for value in call.values]
    for lane in np.flatnonzero(active):
        own = [np.array(array[:, lane]) for array in arrays]
        meaning(call, own, [value[lane] for value in values])
        for array, new in zip(arrays, own, strict=True):
            array[:, lane] = new
    for region, mode, array in zip(call.regions, call.modes, arrays, strict=True):
        if mode != "r":
            for part, row in zip(_elements(region), array, strict=True):
                lanes.write(part, row[None], active)


def _elements(region: Region) -> list[Region]:
    """A region one element after the other: no vector is moved, and no alignment asked."""
    extent = region.extent or ()
    return [
        region.but(
            start=tuple(a + b for a, b in zip(region.start, offsets, strict=True)), extent=(1,) * len(extent)
        )
        for offsets in product(*map(range, extent))
    ]


def _gathered(lanes: Lanes, region: Region, active: Any) -> Any:
    return np.concatenate([np.array(lanes.read(part, active)) for part in _elements(region)])


def _blank(lanes: Lanes, region: Region) -> Any:
    return np.zeros((int(np.prod(region.extent or ())), lanes.lanes), region.buffer.dtype.numpy)


__all__ = ["extern_call"]
