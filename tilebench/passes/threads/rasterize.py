"""The order of blocks: panels of rows (or columns) of blocks, swept in a snake."""

from __future__ import annotations

from ...ir import Arith, Call, Const, Expr, Let, Stmt, Var
from ...ir.dtypes import int32
from ...language.structure import KernelLaunch
from .emitter import Emitter


def block_order(emitter: Emitter, launch: KernelLaunch) -> tuple[list[Stmt], tuple[Var, ...]]:
    """The lets that turn the hardware's block numbers into the kernel's, and the variables of the launch."""
    if launch.order is None or len(launch.vars) < 2:
        return [], launch.vars
    by_row = launch.order.axis == "row"
    sweep, stack = (0, 1) if by_row else (1, 0)
    along, across = launch.grid[sweep], launch.grid[stack]
    size = min(launch.order.size, across)
    raw = tuple(emitter.variable(f"block_{'xyz'[k]}", launch.grid[k]) for k in (0, 1))
    height: Expr = Const(size)
    panels, in_panel = -(-across // size), size * along
    number = emitter.variable("block", launch.grid[0] * launch.grid[1])
    panel = emitter.variable("panel", panels)
    rest = emitter.variable("block_in_panel", in_panel)
    step = emitter.variable("sweep", along)
    if across % size:
        height = Call("min", (Const(size), Const(across) - panel * size), type=int32)
    odd = (panel % 2).compare("==", 0)
    turned = Call("if_then_else", (odd, step, Const(along - 1) - step), type=int32)
    lets = (
        (number, raw[1] * launch.grid[0] + raw[0]),
        (panel, number // in_panel),
        (rest, number % in_panel),
        (step, Arith("//", (rest, height))),
        (launch.vars[sweep], turned),
        (launch.vars[stack], panel * size + Arith("%", (rest, height))),
    )
    return [Let(variable, value) for variable, value in lets], (*raw, *launch.vars[2:])
