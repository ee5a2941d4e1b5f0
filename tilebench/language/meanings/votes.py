"""What `T.warp_vote` gives in NumPy: the bits of a warp's lanes, in each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..votes import WARP, WarpVote
from .inexact import Inexact, inexact

_EVERY_BIT = float(2**32)


def _lanes(values: Any) -> Any:
    return np.asarray(values).reshape(-1, WARP)


def _bits(holds: Any) -> Any:
    """The bools (..., lanes) as one number each."""
    return (holds.astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(-1).astype(np.uint32)


def vote_meaning(op: WarpVote, source: Any) -> Any:
    """The bits for each thread, in the shape of its tile."""
    lanes = _lanes(source)
    if op.kind == "ballot":
        bits = np.broadcast_to(_bits(lanes != 0)[:, None], lanes.shape)
    else:
        bits = _bits(lanes[:, :, None] == lanes[:, None, :])
    return bits.reshape(np.shape(source))


def vote_bound(op: WarpVote, source: Any) -> Any:
    """Any value, where rounding decides a bit of it."""
    known = inexact(source)
    value, error = known.value, _lanes(known.error)
    if op.kind == "ballot":
        unsure: Any = np.broadcast_to((error > 0).any(-1)[:, None], error.shape)
    else:
        lanes = _lanes(value).astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs(lanes[:, :, None] - lanes[:, None, :]) <= error[:, :, None] + error[:, None, :]
        rounded = (error[:, :, None] + error[:, None, :]) > 0
        unsure = (near & rounded).any(-1)
    return Inexact(vote_meaning(op, value), np.where(unsure, _EVERY_BIT, 0.0).reshape(np.shape(value)))
