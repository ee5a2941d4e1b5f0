"""Philox 4x32-10: random words from a counter and a key, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDS = 10
# The multipliers of the two products, and what each round adds to the two words of the key.
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85


def philox(word: Any, *words: Any) -> Any:
    """Word `word % 4` of the block of a counter (4 words, the lowest first) and a key (2 words)."""
    kind = np.asarray(word).dtype
    which, a, b, c, d, key, other = (np.asarray(part).astype(np.uint64) for part in (word, *words))
    low: Any = np.uint64(0xFFFFFFFF)
    for _ in range(ROUNDS):
        first, second = a * np.uint64(MULTIPLIERS[0]), c * np.uint64(MULTIPLIERS[1])
        a, b, c, d = (
            (second >> np.uint64(32)) ^ b ^ key,
            second & low,
            (first >> np.uint64(32)) ^ d ^ other,
            first & low,
        )
        key, other = (key + np.uint64(STEPS[0])) & low, (other + np.uint64(STEPS[1])) & low
    return np.choose((which % np.uint64(4)).astype(np.intp), [a, b, c, d]).astype(kind)


__all__ = ["MULTIPLIERS", "ROUNDS", "STEPS", "philox"]
