"""Which row of a matrix each thread names, where operands come from shared memory by whole matrices.

An instruction's fragment whose registers are 4 bytes of a row each (`MatrixLoad`) can be fetched so: eight
rows of 16 bytes are one matrix, and each further register of a thread is one more, some elements away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...layout import Fragment
from ...layout.fragment import Digit
from ...machine import MatrixLoad

# What a register of a thread holds of a row, in bytes.
REGISTER_BYTES = 4


@dataclass(frozen=True)
class MatrixRows:
    """How threads name rows for one load: digits of a thread's number, in coordinates of the atom.

    `chunk` elements along the dimension `along` are one row; `matrices` are fetched at once, which are
    `together` repeats of the atom.
    """

    digits: tuple[Digit, ...]
    along: int
    chunk: int
    matrices: int
    together: int
    turned: bool

    def places(self, threads: int) -> tuple[Any, Any]:
        """The coordinates of the rows that threads name, an array for each dimension."""
        numbers = np.arange(threads)
        place = [np.zeros(threads, np.int64), np.zeros(threads, np.int64)]
        for divisor, count, dim, step in self.digits:
            place[dim] += numbers // divisor % count * step
        return place[0], place[1]


def matrix_rows(
    atom: Fragment,
    load: MatrixLoad,
    k_dim: int,
    bits: int,
    *,
    turned: bool,
    repeats: int = 1,
    stride: int = 0,
) -> MatrixRows | None:
    """The rows for an operand's atom of elements of `bits` bits; None where it does not lie so.

    The atom is repeated `repeats` times along the dimension that is not k, `stride` apart. `turned`: rows in
    memory run along that dimension, and the transposed matrices are asked for.
    """
    free, inner, lanes = 1 - k_dim, REGISTER_BYTES * 8 // bits, load.row_bytes // REGISTER_BYTES
    if bits > REGISTER_BYTES * 8 or (turned and load.turned * 8 != bits):
        return None
    if atom.thread != ((lanes, k_dim, inner), (load.rows, free, 1)):
        return None
    modes = atom.value if inner == 1 else atom.value[1:]
    if inner > 1 and (not atom.value or atom.value[0] != (inner, k_dim, 1)):
        return None
    if any(count != 2 for count, _, _ in modes):
        return None
    bases = [(dim, step) for _, dim, step in modes]
    own, together = 1 << len(bases), 1
    while own * together * 2 <= load.most and repeats % (together * 2) == 0:
        bases.append((free, stride * together))
        together *= 2
    if own > load.most:
        return None
    digits = [Digit(1, load.rows, k_dim if turned else free, 1)]
    digits += [Digit(load.rows << k, 2, dim, step) for k, (dim, step) in enumerate(bases)]
    chunk = load.row_bytes * 8 // bits
    return MatrixRows(tuple(digits), free if turned else k_dim, chunk, own * together, together, turned)
