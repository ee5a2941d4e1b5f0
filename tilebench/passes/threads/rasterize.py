"""The order of blocks: panels of rows (or columns) of blocks, swept in a snake."""

from __future__ import annotations

from ...ir import Let, Stmt, Var, lift
from ...language.structure import KernelLaunch
from ..analysis.block_numbers import in_panels
from .emitter import Emitter


def block_order(emitter: Emitter, launch: KernelLaunch) -> tuple[list[Stmt], tuple[Var, ...]]:
    """The lets that turn the hardware's block numbers into the kernel's, and the variables of the launch."""
    if launch.order is None or len(launch.vars) < 2:
        return [], launch.vars
    raw = tuple(
        emitter.variable(f"block_{'xyz'[k]}", emitter.facts.bounds(lift(launch.grid[k]))[1]) for k in (0, 1)
    )
    number = raw[1] * launch.grid[0] + raw[0]
    lets = in_panels(launch, number, emitter.facts, emitter.variable)
    return [Let(variable, value) for variable, value in lets], (*raw, *launch.vars[2:])
