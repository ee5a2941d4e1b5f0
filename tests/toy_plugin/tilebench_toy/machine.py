"""Step 1: what the accelerator is, in numbers. Passes read these and compare no names."""

from __future__ import annotations

from tilebench.errors import TargetError
from tilebench.layout import Fragment
from tilebench.machine import SM, WHOLE_BLOCK, Instruction, Machine, MemoryLevel, OperandForm

# Threads of a warp. Not 32: nothing of the compiler may take that for granted.
WARP = 8
THREADS = 64
SHARED_BYTES = 1 << 15
VECTOR_BYTES = (16, 8, 4, 2, 1)

# Multiply-adds on ordinary lanes: operands of the whole block in shared memory, the result in registers.
GEMM_TILES = (OperandForm("a", ("shared",)), OperandForm("b", ("shared",)), OperandForm("c", ("fragment",)))
GEMMS = tuple(
    Instruction("gemm", "fma", (dtype, dtype, dtype), (1, 1, 1), GEMM_TILES)
    for dtype in ("float32", "float64", "int32")
)
# Eight threads multiply 4x4 by 4x4 together; each holds two neighbours of a row of every operand.
PAIRS = Fragment((4, 4), thread=((2, 1, 2), (4, 0, 1)), value=((2, 1, 1),))
MATRIX = Instruction(
    "gemm",
    "toy.mma",
    ("float32", "float32", "float32"),
    (4, 4, 4),
    (
        OperandForm("a", ("shared",), PAIRS),
        OperandForm("b", ("shared",), PAIRS),
        OperandForm("c", ("fragment",), PAIRS),
    ),
    group=WARP,
    cost=4.0,
)
# A copy from global to shared memory that goes on by itself: 16 bytes at a time, complete when its group is.
AHEAD = Instruction(
    "copy",
    "toy.ahead",
    shape=(16,),
    operands=(OperandForm("src", ("global",)), OperandForm("dst", ("shared",))),
    asynchronous=True,
    completes="group",
    cost=1.0,
)
# One access of one thread; the cost is in cycles a warp, of which each moves 32 bytes.
COPIES = tuple(
    Instruction("copy", "ld.st", shape=(width,), cost=max(1.0, WARP * width / 32)) for width in VECTOR_BYTES
)
# A step of a tree: inside a thread, between the threads of a warp, between warps through shared memory.
REDUCE_TILES = (OperandForm("src", ("fragment",)), OperandForm("dst", ("fragment",)))
REDUCTIONS = (
    Instruction("reduce", "thread", operands=REDUCE_TILES),
    Instruction("reduce", "shfl", operands=REDUCE_TILES, group=WARP),
    Instruction("reduce", "shared", operands=REDUCE_TILES, group=WHOLE_BLOCK, cost=8.0),
)
# A fragment in another layout, of the same kinds.
CONVERSIONS = (
    Instruction("convert_layout", "rename", operands=REDUCE_TILES),
    Instruction("convert_layout", "shfl", operands=REDUCE_TILES, group=WARP),
    Instruction("convert_layout", "shared", operands=REDUCE_TILES, group=WHOLE_BLOCK, cost=8.0),
)


def describe(detail: str | None) -> Machine:
    """The machine that `toy` means. Raises `TargetError` for `toy:x`: there is one model of it."""
    if detail:
        raise TargetError("the toy accelerator has no variants, found {detail!r}", detail=detail)
    return Machine(
        name="toy",
        warp=WARP,
        max_threads=THREADS,
        vector_bytes=VECTOR_BYTES,
        transaction_bytes=32,
        sm=SM(
            max_threads=THREADS,
            max_blocks=1,
            registers=THREADS * 128,
            register_granule=1,
            max_registers_per_thread=128,
        ),
        memory={
            "global": MemoryLevel("global", per_block=0),
            "shared": MemoryLevel("shared", per_block=SHARED_BYTES, banks=WARP),
            "registers": MemoryLevel("registers", per_block=4 * THREADS * 128),
        },
        instructions=(MATRIX, *GEMMS, AHEAD, *COPIES, *REDUCTIONS, *CONVERSIONS),
    )
