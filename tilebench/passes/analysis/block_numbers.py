"""Which block of a grid has a number, in the order that a launch asks for.

Without an order they are numbered row by row, x first. Panels number `size` rows (or columns) of blocks for
all of the other axis before the next ones, along a snake, so that neighbours in time share what they read.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import Arith, Call, Const, Expr, Var, lift
from ...ir.dtypes import int32
from ...ir.facts import Facts
from ...language.scopes import MOST_BLOCKS
from ...language.structure import KernelLaunch

# Makes a variable of that name for a value below a count.
NewVariable = Callable[[str, int], Var]
Named = list[tuple[Var, Expr]]


def in_panels(launch: KernelLaunch, number: Expr, facts: Facts, variable: NewVariable) -> Named:
    """The values that make the launch's first two variables of the number of a block in its plane."""
    assert launch.order is not None
    sweep, stack = (0, 1) if launch.order.axis == "row" else (1, 0)
    along, across = lift(launch.grid[sweep]), lift(launch.grid[stack])
    most_along, most_across = (facts.bounds(count)[1] for count in (along, across))
    size = min(launch.order.size, most_across)
    height: Expr = Const(size)
    in_panel = along * size

    def named(base: str, count: int) -> Var:
        # A launch has no more blocks than this.
        return variable(base, min(count, MOST_BLOCKS))

    block = named("block", most_along * most_across)
    panel = named("panel", -(-most_across // size))
    rest = named("block_in_panel", size * most_along)
    step = named("sweep", most_along)
    if not facts.divides(size, across):
        height = Call("min", (Const(size), across - panel * size), type=int32)
    odd = (panel % 2).compare("==", 0)
    turned = Call("if_then_else", (odd, step, along - 1 - step), type=int32)
    return [
        (block, number),
        (panel, block // in_panel),
        (rest, block % in_panel),
        (step, Arith("//", (rest, height))),
        (launch.vars[sweep], turned),
        (launch.vars[stack], panel * size + Arith("%", (rest, height))),
    ]


def row_by_row(launch: KernelLaunch, number: Expr, facts: Facts) -> Named:
    """The values of the launch's variables, of the number of a block: x counts first."""
    found: Named = []
    for variable, count in zip(launch.vars[:-1], launch.grid, strict=False):
        found.append((variable, number % lift(count)))
        number = number // lift(count)
    return [*found, (launch.vars[-1], number)]
