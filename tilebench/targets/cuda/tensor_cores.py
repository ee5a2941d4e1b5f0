"""The rows of products that a warp carries out (`mma.sync`), with the fragments of their operands.

How registers hold an operand: PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type" and its
neighbours. A register of 32 bits has elements that follow each other along k; thread t of a warp has row
`t // 4` of A (column of B), and a row 8 further where there are 16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...layout import Fragment
from ...machine import Instruction, MatrixLoad, OperandForm

MMA = "mma"
_WARP = 32
LDMATRIX = MatrixLoad("ldmatrix", rows=8, row_bytes=16, most=4, turned=2)
# The names of dtypes in the instruction.
PTX_TYPES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "s8", "uint8": "u8",
    "int32": "s32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip


@dataclass(frozen=True)
class MmaShape:
    """The tile of one instruction, for operands of `bits` bits."""

    m: int
    n: int
    k: int
    bits: int

    @property
    def name(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def a(self) -> Fragment:
        """A: (m, k)."""
        inner = max(1, 32 // self.bits)
        value = [(inner, 1, 1), (self.m // 8, 0, 8), (self.k // (4 * inner), 1, 4 * inner)]
        return Fragment((self.m, self.k), ((4, 1, inner), (8, 0, 1)), _longer(value))

    @property
    def b(self) -> Fragment:
        """B: (k, n)."""
        inner = max(1, 32 // self.bits)
        value = [(inner, 0, 1), (self.k // (4 * inner), 0, 4 * inner)]
        return Fragment((self.k, self.n), ((4, 0, inner), (8, 1, 1)), _longer(value))

    @property
    def c(self) -> Fragment:
        """C: (m, n), two neighbours of a row in a thread."""
        return Fragment((self.m, self.n), ((4, 1, 2), (8, 0, 1)), _longer([(2, 1, 1), (self.m // 8, 0, 8)]))


def _longer(modes: list[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    return tuple(mode for mode in modes if mode[0] > 1)


def shape_named(name: str, bits: int) -> MmaShape:
    """The shape of a name such as `m16n8k16`. Raises `ValueError` for a text that is none."""
    m, rest = name.removeprefix("m").split("n")
    n, k = rest.split("k")
    return MmaShape(int(m), int(n), int(k), bits)


@dataclass(frozen=True)
class Kind:
    """Operands that one kind of tensor core instruction takes: pairs of A and B, and what they are summed in.

    `old` and `new` are the shapes on 7.5 and from `since` on, `rate` multiply-adds of an element against
    those of 16-bit floats, `asked` and `exact_k` what the row says of how exact it is.
    """

    pairs: tuple[tuple[str, str], ...]
    sums: tuple[str, ...]
    new: MmaShape
    since: tuple[int, int] = (8, 0)
    old: MmaShape | None = None
    rate: float = 1.0
    asked: str = ""
    exact_k: int = 0


_BYTES, _EIGHT = ("int8", "uint8"), ("float8_e4m3fn", "float8_e5m2")
KINDS = (
    Kind((("float16", "float16"),), ("float32", "float16"), MmaShape(16, 8, 16, 16),
         old=MmaShape(16, 8, 8, 16)),
    Kind((("bfloat16", "bfloat16"),), ("float32", "bfloat16"), MmaShape(16, 8, 16, 16)),
    Kind(tuple((a, b) for a in _BYTES for b in _BYTES), ("int32",), MmaShape(16, 8, 32, 8),
         old=MmaShape(8, 8, 16, 8), rate=2.0),
    Kind((("float32", "float32"),), ("float32",), MmaShape(16, 8, 8, 32), rate=0.5, asked="allow_tf32"),
    Kind(tuple((a, b) for a in _EIGHT for b in _EIGHT), ("float32", "float16"), MmaShape(16, 8, 32, 8),
         since=(8, 9), rate=2.0, exact_k=128),
)  # fmt: skip
FLOAT64 = MmaShape(8, 8, 4, 64)


def mma_rows(capability: tuple[int, int], lanes: int, fp64: int) -> list[Instruction]:
    """The rows of a card. `lanes` are multiply-adds of 16-bit floats a clock and multiprocessor by these
    instructions, `fp64` those of doubles on ordinary lanes."""
    rows: list[Instruction] = []
    for kind in KINDS:
        shape = kind.new if capability >= kind.since else kind.old
        if shape is None or capability < (7, 5):
            continue
        # One of four schedulers issues.
        rate, exact_k = kind.rate, kind.exact_k
        if exact_k and capability[0] == 9:
            # What wgmma adds in few bits, mma does on 9.0 as two products of 16-bit floats, with conversions.
            rate, exact_k = 0.8, 0
        cost = shape.m * shape.n * shape.k * 4 / (lanes * rate)
        row = _row(shape, ("", "", ""), cost)
        row = replace(row, asked=kind.asked, exact_k=exact_k)
        rows += [replace(row, dtypes=(a, b, c)) for a, b in kind.pairs for c in kind.sums]
    if capability >= (8, 0) and fp64 >= 32:
        # Twice the ordinary lanes (A100 and H100 whitepapers).
        cost = FLOAT64.m * FLOAT64.n * FLOAT64.k * 4 / (2 * fp64)
        rows.append(_row(FLOAT64, ("float64", "float64", "float64"), cost))
    return rows


def _row(shape: MmaShape, dtypes: tuple[str, str, str], cost: float) -> Instruction:
    load = LDMATRIX if shape.bits <= 32 else None
    operands = (
        OperandForm("a", ("shared", "fragment"), shape.a, load=load),
        OperandForm("b", ("shared", "fragment"), shape.b, load=load),
        OperandForm("c", ("fragment",), shape.c),
    )
    extents = (shape.m, shape.n, shape.k)
    return Instruction(
        "gemm", MMA, dtypes, extents, operands, group=_WARP, cost=cost, needs=("mma", "ldmatrix")
    )
