"""The order of blocks: panels of rows (or columns) of blocks, swept in a snake."""

from __future__ import annotations

from ...ir import Arith, Call, Const, Expr, Let, Stmt, Var, lift
from ...ir.dtypes import int32
from ...language.scopes import MOST_BLOCKS
from ...language.structure import KernelLaunch
from .emitter import Emitter


def block_order(emitter: Emitter, launch: KernelLaunch) -> tuple[list[Stmt], tuple[Var, ...]]:
    """The lets that turn the hardware's block numbers into the kernel's, and the variables of the launch."""
    if launch.order is None or len(launch.vars) < 2:
        return [], launch.vars
    by_row = launch.order.axis == "row"
    sweep, stack = (0, 1) if by_row else (1, 0)
    along, across = lift(launch.grid[sweep]), lift(launch.grid[stack])
    most_along, most_across = (emitter.facts.bounds(count)[1] for count in (along, across))
    size = min(launch.order.size, most_across)
    raw = tuple(
        emitter.variable(f"block_{'xyz'[k]}", emitter.facts.bounds(lift(launch.grid[k]))[1]) for k in (0, 1)
    )
    height: Expr = Const(size)
    in_panel = along * size

    def variable(base: str, count: int) -> Var:
        # A launch has no more blocks than this.
        return emitter.variable(base, min(count, MOST_BLOCKS))

    number = variable("block", most_along * most_across)
    panel = variable("panel", -(-most_across // size))
    rest = variable("block_in_panel", size * most_along)
    step = variable("sweep", most_along)
    if not emitter.facts.divides(size, across):
        height = Call("min", (Const(size), across - panel * size), type=int32)
    odd = (panel % 2).compare("==", 0)
    turned = Call("if_then_else", (odd, step, along - 1 - step), type=int32)
    lets = (
        (number, raw[1] * launch.grid[0] + raw[0]),
        (panel, number // in_panel),
        (rest, number % in_panel),
        (step, Arith("//", (rest, height))),
        (launch.vars[sweep], turned),
        (launch.vars[stack], panel * size + Arith("%", (rest, height))),
    )
    return [Let(variable, value) for variable, value in lets], (*raw, *launch.vars[2:])
