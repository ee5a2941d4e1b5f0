"""`tilelang.carver.template.MatmulTemplate`: tiles for a product, ranked by a small model of the machine.

A tile of (m, n) takes m n k / rate cycles of arithmetic and (m + n) k bytes from memory. A unit does as many
tiles as there are waves of them, so tiles that leave units idle, or stick out of the product, pay for it.
With several stages the slower of arithmetic and memory counts, with one their sum. Nothing is run: the list
is what to try first, and a measurement has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from .. import language
from ..errors import ShapeError
from ..ir.dtypes import DType
from ..language.tracing.dtype_words import plain
from ..machine import Machine
from .machines import TileDevice, auto_infer_current_arch

_TILES = (16, 32, 64, 128, 256)
# Rows and columns of the smallest part of a warp.
_PART = (16, 8)
_STAGES = (1, 2, 3, 4)
# Bytes from memory a clock and unit: two transactions of every cache that the tiles come through.
_TRANSACTIONS = 2
# Cycles from asking for a tile until it is there, once a tile and for each step that nothing hides.
_LATENCY = 600
# Cycles in which the threads of a block meet, once a step.
_BARRIER = 40
# Warps that issue in one clock.
_ISSUED = 4.0
# The part of what is hidden that is seen all the same.
_HIDDEN = 0.1
# Registers of a thread that are left for addresses and operands.
_SPARE_REGISTERS = 64


class NoRasterization:
    """Blocks run in the order of their numbers."""

    def __repr__(self) -> str:
        return "<NoRasterization>"


@dataclass(frozen=True)
class Rasterization2DColumn:
    """Blocks run in panels of this width, for the cache."""

    panel_width: int = 4


Rasterization2DRow = Rasterization2DColumn


@dataclass(frozen=True)
class TileHint:
    """One way to cut a product: tiles of a block and of a warp, the step along k, and how many are in flight.

    `cycles` is what the model says it takes.
    """

    block: list[int]
    warp: list[int]
    rstep: list[int]
    pipeline_stage: int
    rasterization_plan: Any
    cycles: float
    arch: TileDevice = field(repr=False)
    use_tc: bool = True
    use_async: bool = True
    split_k_factor: int = 1

    def to_dict(self) -> dict[str, Any]:
        """The choices, by name."""
        return {
            "block": self.block, "warp": self.warp, "rstep": self.rstep, "use_tc": self.use_tc,
            "pipeline_stage": self.pipeline_stage,
        }  # fmt: skip


@dataclass
class MatmulTemplate:
    """A product of sizes M, N and K: `MatmulTemplate(...).with_arch(arch).recommend_hints(topk=20)`."""

    M: int
    N: int
    K: int
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    trans_A: bool = False
    trans_B: bool = True
    with_bias: bool = False
    arch: TileDevice | None = None

    def with_arch(self, arch: TileDevice) -> MatmulTemplate:
        """The template, for a machine."""
        self.arch = arch
        return self

    def equivalent_function(self) -> Any:
        """A `@T.prim_func` that does the product, without a thought for speed."""
        return _product(self)

    def recommend_hints(self, topk: int = 10) -> list[TileHint]:
        """The `topk` ways that the model likes best, best first. `ShapeError` where none fits the machine."""
        arch = self.arch or auto_infer_current_arch()
        hints = sorted(self._hints(arch), key=lambda hint: (hint.cycles, -hint.block[0], -hint.block[1]))
        if not hints:
            raise ShapeError("no tile of this product fits {machine}", machine=arch.name)
        return hints[:topk]

    def _hints(self, arch: TileDevice) -> Iterator[TileHint]:
        dtype = plain(self.in_dtype)
        for rows, columns, stages in product(_TILES, _TILES, _STAGES):
            if rows >= 2 * max(16, self.M) or columns >= 2 * max(16, self.N):
                continue
            for step in (16, 32, 64, 128):
                taken = stages * dtype.bytes_of((rows + columns) * step)
                warps = _warps(arch.machine, rows, columns)
                if step >= 2 * max(16, self.K) or (arch.smem_cap and taken > arch.smem_cap) or warps is None:
                    continue
                cycles = self._cycles(arch.machine, dtype, rows, columns, step, stages)
                tiles = -(-self.M // rows) * -(-self.N // columns)
                order = Rasterization2DColumn() if tiles > arch.compute_max_core else NoRasterization()
                warp = [rows // warps[0], columns // warps[1]]
                yield TileHint(
                    [rows, columns], warp, [step], stages, order, cycles, arch, use_async=stages > 1
                )

    def _cycles(
        self, machine: Machine, dtype: DType, rows: int, columns: int, step: int, stages: int
    ) -> float:
        tiles = -(-self.M // rows) * -(-self.N // columns)
        steps = -(-self.K // step)
        arithmetic = rows * columns * step / _rate(machine, dtype.name)
        memory = dtype.bytes_of((rows + columns) * step) / (_TRANSACTIONS * machine.transaction_bytes)
        hidden = stages > 1
        # What is hidden still takes issue slots: of two that arithmetic bounds, the one with less to bring.
        longer, shorter = max(arithmetic, memory, _LATENCY / stages), min(arithmetic, memory)
        turn = longer + _HIDDEN * shorter if hidden else arithmetic + memory + _LATENCY
        return -(-tiles // machine.units) * (steps * (turn + _BARRIER) + _LATENCY)


def _rate(machine: Machine, dtype: str) -> float:
    """Multiply-adds a cycle and unit of the fastest instruction for a dtype, by the machine's table."""
    best = 1.0
    for row in machine.instructions_for("gemm"):
        # Of its operands: sums of the same dtype are those of other instructions too.
        if row.cost and dtype in row.dtypes[:2]:
            work = 1
            for extent in row.shape or (1,):
                work *= extent
            best = max(best, _ISSUED * work * machine.warp / max(1, row.group) / row.cost)
    return best


def _warps(machine: Machine, rows: int, columns: int) -> tuple[int, int] | None:
    """Warps along rows and columns: as square a part each as there is, with room for its sums."""
    found: list[tuple[bool, int, int, int]] = []
    for down, across in product((1, 2, 4, 8), repeat=2):
        threads = down * across * 32
        fits = rows % (down * _PART[0]) == 0 and columns % (across * _PART[1]) == 0
        sums = rows * columns // threads
        room = machine.warp == 1 or sums <= machine.sm.max_registers_per_thread - _SPARE_REGISTERS
        if fits and room and threads <= min(256, machine.max_threads):
            few = threads < 128
            found.append((few, abs(rows // down - columns // across), down, across))
    return min(found)[2:] if found else None


def _product(of: MatmulTemplate) -> Any:
    T: Any = language
    m, n, k, turned_a, turned_b = of.M, of.N, of.K, of.trans_A, of.trans_B
    dtype, sum_dtype, out = of.in_dtype, of.accum_dtype, of.out_dtype

    @T.prim_func
    def main(
        A: T.Tensor((k, m) if turned_a else (m, k), dtype),  # type: ignore[valid-type]
        B: T.Tensor((n, k) if turned_b else (k, n), dtype),  # type: ignore[valid-type]
        C: T.Tensor((m, n), out),  # type: ignore[valid-type]
    ) -> None:
        with T.Kernel(T.ceildiv(n, 16), T.ceildiv(m, 16), threads=128) as (bx, by):
            a = T.alloc_shared((16, 16), dtype)
            b = T.alloc_shared((16, 16), dtype)
            c = T.alloc_fragment((16, 16), sum_dtype)
            T.clear(c)
            for step in T.serial(T.ceildiv(k, 16)):
                if turned_a:
                    T.copy(A[step * 16, by * 16], a)
                else:
                    T.copy(A[by * 16, step * 16], a)
                if turned_b:
                    T.copy(B[bx * 16, step * 16], b)
                else:
                    T.copy(B[step * 16, bx * 16], b)
                T.gemm(a, b, c, transpose_A=turned_a, transpose_B=turned_b)
            T.copy(c, C[by * 16, bx * 16])

    return main
