"""A copy within one buffer goes through a tile of its own where its two sides may overlap.

`T.copy(s[0:8], s[4:12])` moves what is there when it begins: threads, and the vectors of a CPU, would read
what others of them have already written.
"""

from __future__ import annotations

from typing import Any

from ..ir import Buffer, Function, Stmt, map_children, whole
from ..ir.names import Names
from ..language.copy import Copy
from ..language.memory import AllocFragment
from .accesses import reads_its_target
from .context import Context


def copy_aside(function: Function, context: Context) -> Function:
    """The function whose copies read nothing of what they write, but for what stays in its place."""
    names = Names(function)

    def step(node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node
        node = map_children(node, step)
        return _through_a_tile(node, names) if isinstance(node, Copy) and reads_its_target(node) else node

    return step(function)


def _through_a_tile(copy: Copy, names: Names) -> tuple[Stmt, ...]:
    extents = copy.src.extent
    assert extents is not None  # the stage knows all extents by now
    shape = tuple(extent for extent in extents if extent != 1) or (1,)
    tile = Buffer(names.fresh(f"{copy.src.buffer.name}_aside"), shape, copy.src.buffer.dtype, "fragment")
    region = whole(tile)
    return (
        AllocFragment(tile, place=copy.place),
        copy.but(dst=region, dst_within=None),
        copy.but(src=region, src_within=None),
    )
