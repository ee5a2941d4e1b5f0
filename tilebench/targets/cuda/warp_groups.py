"""The rows of products that a warp group carries out (`wgmma`, sm_90a), and how they read shared memory.

An instruction multiplies 64 rows by up to 256 columns. Its sum lies like those of `mma`: a warp of the group
has 16 rows, and what 8 columns take of a thread, 4 registers, is repeated column by column. So a row stands
for 64x8, which one instruction covers up to 32 times; of whole numbers for 64x16, since there are fewer
instructions of these. (PTX ISA, "Asynchronous warpgroup level matrix
instructions": register fragments, matrix descriptor and shared memory layout.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...layout import Fragment
from ...machine import Instruction, OperandForm
from .tensor_cores import KINDS

WGMMA = "wgmma"
GROUP = 128
# Rows of an instruction, columns that it counts in, and the most of them.
ROWS, COLUMNS, MOST = 64, 8, 256
# Swizzle atoms in bytes, with the number that the descriptor has for each.
SWIZZLES = {128: 1, 64: 2, 32: 3}
# Multiply-adds of 16-bit floats a clock and multiprocessor (H100 whitepaper).
_LANES = 2048
# Bytes of k of one instruction.
_DEPTH = 32
# Where 16-byte units change places: bits of the address from here on, by as many bits further up.
_UNIT_BITS, _UNIT_SHIFT = 4, 3


@dataclass(frozen=True)
class WgmmaShape:
    """The tile of one instruction, for operands of `bits` bits."""

    n: int
    bits: int

    @property
    def k(self) -> int:
        return _DEPTH * 8 // self.bits

    @property
    def name(self) -> str:
        return f"m{ROWS}n{self.n}k{self.k}"

    @property
    def a(self) -> Fragment:
        """A in registers: (64, k), a register of 32 bits along k; rows 8 apart, then the half of k."""
        inner = 32 // self.bits
        value = tuple(mode for mode in ((inner, 1, 1), (2, 0, 8), (2, 1, 4 * inner)) if mode[0] > 1)
        return Fragment((ROWS, self.k), ((4, 1, inner), (8, 0, 1), (4, 0, 16)), value)

    @property
    def c(self) -> Fragment:
        """The sums: (64, n)."""
        modes = [(2, 1, 1), (2, 0, 8), (self.n // COLUMNS, 1, COLUMNS)]
        return Fragment(
            (ROWS, self.n), ((4, 1, 2), (8, 0, 1), (4, 0, 16)), tuple(m for m in modes if m[0] > 1)
        )


def shape_of(name: str, bits: int) -> WgmmaShape | None:
    """The shape of a name such as `m64n256k16`, for operands of so many bits; None where there is none."""
    found = re.fullmatch(r"m64n(\d+)k(\d+)", name)
    if found is None or bits not in (8, 16, 32):
        return None
    shape = WgmmaShape(int(found[1]), bits)
    fits = shape.n % COLUMNS == 0 and 0 < shape.n <= MOST and shape.k == int(found[2])
    return shape if fits else None


@dataclass(frozen=True)
class MatrixForm:
    """How an instruction walks through an operand in shared memory: what its descriptor says but the address.

    `swizzle` are the bytes of a line in which 16-byte units change places. Lines run along k, 8 of them
    `stride` bytes apart from the next 8; `turned`, along the other dimension: then `stride` is what 8 of k
    are apart, and `lead` what a line is from the next one along the dimension.
    """

    swizzle: int
    stride: int
    lead: int = 16
    turned: bool = False

    @property
    def high(self) -> int:
        """The upper half of the descriptor."""
        return self.stride >> 4 | SWIZZLES[self.swizzle] << 30

    def bytes_of(self, start: Any, others: int, depth: int, size: int) -> npt.NDArray[np.int64]:
        """The addresses that are read from `start` on, (*start, others, depth); elements of `size` bytes."""
        other, along = np.arange(others)[:, None], np.arange(depth)[None, :]
        if self.turned:
            line = self.swizzle // size
            offset = other % line * size + other // line * self.lead
            offset = offset + along % 8 * self.swizzle + along // 8 * self.stride
        else:
            offset = other % 8 * self.swizzle + other // 8 * self.stride + along * size
        plain: Any = np.asarray(start, np.int64)[..., None, None] + offset
        mask = self.swizzle // 16 - 1 << _UNIT_BITS
        return plain ^ (plain >> _UNIT_SHIFT & mask)


def wgmma_rows() -> list[Instruction]:
    """A row for each pair of operands and what they are summed in."""
    rows: list[Instruction] = []
    for kind in KINDS:
        bits = kind.new.bits
        shape = WgmmaShape(2 * COLUMNS if "int32" in kind.sums else COLUMNS, bits)
        # Bytes of operands take as long, whatever they are.
        cost = ROWS * shape.n * shape.k / (_LANES * 16 / bits)
        row = replace(_row(shape, cost), asked=kind.asked, exact_k=kind.exact_k)
        rows += [replace(row, dtypes=(a, b, c)) for a, b in kind.pairs for c in kind.sums]
    return rows


def _row(shape: WgmmaShape, cost: float) -> Instruction:
    either = shape.bits == 16
    panels = tuple(SWIZZLES)
    operands = (
        OperandForm("a", ("shared", "fragment"), shape.a, panels=panels, either_way=either),
        OperandForm("b", ("shared",), panels=panels, either_way=either),
        OperandForm("c", ("fragment",), shape.c),
    )
    return Instruction(
        "gemm", WGMMA, (), (ROWS, shape.n, shape.k), operands, group=GROUP, asynchronous=True,
        completes="group", cost=cost, needs=("wgmma",), optional=True, most=(1, MOST // shape.n, 1),
        by_proxy=True, clears=True,
    )  # fmt: skip
