"""From `bounded` to `loops`: tile statements become loops over vectors and micro-kernels.

`T.copy(A[m : m + 128, k : k + 64], A_s, src_within=(1000, None))` ->
`for i in T.serial(T.min(1000 - m, 128)): for j in T.vectors(64, lanes=16): A_s[i, j] = A[m + i, k + j]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ....errors import ResourceError
from ....ir import AllocStmt, Function
from ....ir.stmt import statements
from ....passes.context import Context, Pass
from ..lowerings import rows
from .clear_first import clear_first
from .lowering import Lowering, LoweringTable
from .plan_buffers import BufferPlan
from .work import Work

NAME = "to_loops"
# Scratch memory of a worker: far more than caches hold, and less than brings a computer down.
SCRATCH_BYTES = 1 << 30


def to_loops(function: Function, context: Context) -> Function:
    """The function in the words of the `loops` stage. Raises `TargetError` for what has no lowering."""
    return _lowered(function, context, _own_table())


def to_loops_with(more: Iterable[Lowering]) -> Pass:
    """The pass with rows of somebody else beside the target's own: for operations of a package.

    Raises `InternalError` where a row is for the same as one that is there.
    """
    table = LoweringTable((*rows(), *more))
    return lambda function, context: _lowered(function, context, table)


def _check_scratch(plan: BufferPlan, function: Function, context: Context) -> None:
    """Raise `ResourceError` at the largest tile where those of a block are more than a worker gets."""
    if plan.size <= SCRATCH_BYTES:
        return
    allocations = (each for each in statements(function.body) if isinstance(each, AllocStmt))
    sizes = {each.buffer.name: (each.buffer.bytes, each) for each in allocations if each.buffer.shape}
    name, (size, largest) = max(sizes.items(), key=lambda item: item[1][0])
    raise ResourceError(
        "the tiles of a block are larger than the memory that a worker of {machine} gets for them",
        at=largest.place, machine=context.machine.target, name=name, size=size, total=plan.size,
        most=SCRATCH_BYTES, expected="at most {most} bytes for all tiles of a block",
        found="{name} takes {size} bytes, all together {total}",
        hint="make the tile smaller: a block works on a part of the arrays",
    )  # fmt: skip


@cache
def _own_table() -> LoweringTable:
    return LoweringTable(rows())


def _lowered(function: Function, context: Context, table: LoweringTable) -> Function:
    function = clear_first(function)
    work = Work(function, context, table)
    _check_scratch(work.plan, function, context)
    lowered = function.but(body=work.body(function.body))
    count, size = len(work.plan.tiles), work.plan.size
    message = f"{count} tiles in {size} bytes of scratch memory a worker"
    context.remark(NAME, "note", message, function, tiles=count, bytes=size)
    return lowered
