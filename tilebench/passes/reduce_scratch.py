"""Shared memory for reductions across warps, allocated in front of each."""

from __future__ import annotations

from typing import Any

from ..ir import Buffer, Function, map_children, walk, whole
from ..ir.stmt import Stmt
from ..language.memory import AllocFragment, AllocShared
from ..language.reduce import Reduce
from ..layout import Fragment
from .context import Context
from .names import Names
from .threads.reduce import accumulate_dtype, scratch_elements


def reduce_scratch(function: Function, context: Context) -> Function:
    """`T.reduce_sum(x, y)` over several warps -> the same with `scratch=` and its allocation in front."""
    layouts: dict[str, Fragment] = {}
    found = False
    for each in walk(function):
        if isinstance(each, AllocFragment) and each.layout is not None:
            layouts[each.buffer.name] = each.layout
        found = found or isinstance(each, Reduce)
    if not found:
        return function
    names = Names(function)

    def step(at: Any) -> Any:
        if not isinstance(at, Reduce):
            return map_children(at, step) if isinstance(at, Stmt) else at
        layout = layouts.get(at.src.buffer.name)
        size = 0 if layout is None else scratch_elements(at, layout, context.machine.warp)
        if not size or at.scratch is not None:
            return at
        name = names.fresh(f"{at.dst.buffer.name}_parts")
        buffer = Buffer(name, (size,), accumulate_dtype(at.kind, at.src.buffer.dtype), "shared")
        return AllocShared(buffer, place=at.place), at.but(scratch=whole(buffer))

    return step(function)
