"""Kinds of memory that arrays lie in, by the names that torch and DLPack give them."""

from __future__ import annotations

from functools import lru_cache

# Memory of the host, which every process can read.
HOST = "cpu"
# Memory of a card that speaks CUDA's array interface; `cuda:1` is that of the second one.
CARD = "cuda"

# `DLDeviceType` of dlpack.h: kDLCPU, kDLCUDA, kDLCUDAHost (pinned host memory), kDLCUDAManaged.
_DLPACK = {1: HOST, 2: CARD, 3: HOST, 13: CARD}


@lru_cache(maxsize=64)
def card(ordinal: int) -> str:
    """The memory of the card with this number."""
    return f"{CARD}:{ordinal}"


def dlpack_device(kind: int, ordinal: int) -> str:
    """The memory that a DLPack device type and number mean, or the type where nothing here reads it."""
    found = _DLPACK.get(kind)
    if found is None:
        return f"device type {kind}"
    return card(ordinal) if found == CARD else found
