"""Which names of a stage's text are buffers, so that they are coloured as such."""

from __future__ import annotations

import re

# A buffer is known by the line that makes it, or by its annotation in the signature.
_MADE = re.compile(
    r"\b([A-Za-z_]\w*)\s*=\s*T\.(?:alloc_\w+|empty|registers)\b|\b([A-Za-z_]\w*)\s*:\s*T\.\w*Tensor\b"
)


def buffers_in(text: str) -> frozenset[str]:
    """Names that `text` makes buffers of: allocations and tensor parameters."""
    return frozenset(first or second for first, second in _MADE.findall(text))
