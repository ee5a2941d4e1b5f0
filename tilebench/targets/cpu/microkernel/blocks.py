"""Square blocks of a matrix turned in registers."""

from __future__ import annotations

from ....ir.dtypes import DType
from ..llvm import Function, Value


def can_pack(source: DType, target: DType) -> bool:
    """Whether a block of one dtype can be packed as the other: the same, or a small float widened."""
    return source == target or (source.is_float and source.bits <= 16 and target.name == "float32")


def turned(f: Function, rows: list[Value]) -> list[Value]:
    """The transpose of as many vectors as they have lanes (a power of two), by exchanges of halves."""
    out, lanes = list(rows), len(rows)
    distance = 1
    while distance < lanes:
        for r in range(lanes):
            if r & distance:
                continue
            a, b = out[r], out[r + distance]
            low = [k if not k & distance else lanes + k - distance for k in range(lanes)]
            high = [k + distance if not k & distance else lanes + k for k in range(lanes)]
            out[r], out[r + distance] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        distance *= 2
    return out
