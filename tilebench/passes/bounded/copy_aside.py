"""What an operation reads of the buffer that it writes is copied aside first.

`T.copy(s[0:8], s[4:12])` and `T.gemm(a, c, c)` read what is there when they begin. Threads, and the blocks of
a CPU, would read what others of them have already written.
"""

from __future__ import annotations

from typing import Any

from ...ir import Buffer, Function, Region, Stmt, map_bodies, whole
from ...ir.names import Names
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.memory import AllocFragment
from ..analysis.accesses import reads_its_target
from ..context import Context


def copy_aside(function: Function, context: Context) -> Function:
    """The function whose copies and products read nothing of what they write elsewhere."""
    names = Names(function)

    def step(node: Any) -> Any:
        node = map_bodies(node, step)
        if isinstance(node, Copy) and reads_its_target(node):
            return _copy(node, names)
        if isinstance(node, Gemm) and node.c.buffer.name in (node.a.buffer.name, node.b.buffer.name):
            return _gemm(node, names)
        return node

    return step(function)


def _copy(copy: Copy, names: Names) -> tuple[Stmt, ...]:
    alloc, tile = _tile(copy, copy.src, names)
    return alloc, copy.but(dst=tile, dst_within=None), copy.but(src=tile, src_within=None)


def _gemm(gemm: Gemm, names: Names) -> tuple[Stmt, ...]:
    """The accumulator is a whole fragment, and so it is as an operand."""
    alloc, tile = _tile(gemm, gemm.c, names)
    sides = {side: tile for side in ("a", "b") if getattr(gemm, side).buffer.name == gemm.c.buffer.name}
    return alloc, Copy(gemm.c, tile, place=gemm.place), gemm.but(**sides)


def _tile(stmt: Stmt, part: Region, names: Names) -> tuple[Stmt, Region]:
    """A fragment for a part of a buffer."""
    assert part.extent is not None  # the stage knows all extents by now
    shape = part.extent if part.is_whole else tuple(n for n in part.extent if n != 1) or (1,)
    tile = Buffer(names.fresh(f"{part.buffer.name}_aside"), shape, part.buffer.dtype, "fragment")
    return AllocFragment(tile, place=stmt.place), whole(tile)
