"""The one cost model of the passes: issue cycles of a warp, from the rows of the machine's table.

Every choice between ways that are all legal asks here, so that a remark's numbers compare with each
other and a new row of the table is weighed by all of them.
"""

from __future__ import annotations

from math import ceil, log2, prod

from ...ir import Stmt
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...layout.spread import AccessCost
from ...machine import WHOLE_BLOCK, Instruction, Machine


def access_cycles(machine: Machine, width_bytes: int) -> float:
    """One access of every lane: a cycle to issue it, and those in which the warp's bytes pass."""
    rows = [row for row in machine.instructions_for("copy") if not row.asynchronous and row.shape]
    fitting = [row.cost for row in rows if row.shape[0] >= width_bytes]
    return 1.0 + min(fitting, default=max((row.cost for row in rows), default=1.0))


def access_cost(machine: Machine, accesses: int) -> AccessCost:
    """What so many accesses an element cost, for those who choose how wide they are.

    Each instruction comes with one that makes its address.
    """
    widths = sorted(machine.vector_bytes)
    rows = tuple((width, accesses * (access_cycles(machine, width) - 1.0)) for width in widths)
    return AccessCost(2.0 * accesses, rows)


def copy_cycles(machine: Machine, elements: int, element_bits: int, threads: int) -> float:
    """A tile read here and written there by all threads, in the widest accesses."""
    widest = max(machine.vector_bytes)
    accesses = elements * element_bits / 8 / widest / threads
    return 2.0 * accesses * access_cycles(machine, widest)


def exchange_cycles(machine: Machine, row: Instruction, lanes: int, results: int) -> float:
    """`results` values a thread combined over `lanes` partners: one step of the tree each halving.

    Across warps the steps inside a warp come first; then every thread stores a value and reads one of
    each warp, a result at a time.
    """
    if row.group != WHOLE_BLOCK:
        return results * row.cost * log2(max(1, lanes))
    inner = [r.cost for r in machine.instructions_for(row.operation) if r.group == machine.warp]
    shuffles = results * min(inner, default=row.cost) * log2(max(1, min(lanes, machine.warp)))
    parts = max(1, lanes // machine.warp)
    return shuffles + row.cost + results * (1 + parts) * access_cycles(machine, 4)


def instruction_cycles(row: Instruction, statement: Stmt, machine: Machine, threads: int) -> float:
    """All instructions of one kind that a statement takes, shared among the warps of a block."""
    if isinstance(statement, Gemm) and row.shape:
        steps = prod(ceil(extent / size) for extent, size in zip(statement.mnk, row.shape, strict=True))
        # Rows of one thread carry out a warp's worth at once; wider groups issue once a warp.
        issues = steps * max(row.group, 1) / machine.warp
        return issues * row.cost * machine.warp / threads
    if isinstance(statement, Copy) and row.shape:
        # The whole of an array whose size is known only at a launch is never what is moved.
        sides = [side.buffer for side in (statement.src, statement.dst) if isinstance(side.buffer.span, int)]
        moved = min(buffer.bytes for buffer in sides)
        accesses = moved / row.shape[0] / threads
        return accesses * (1.0 + row.cost)
    return row.cost
