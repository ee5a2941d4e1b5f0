"""Blocks that take one tile after another: `T.Kernel(9, 8, persistent=132)` -> 132 blocks and a loop.

As many blocks as run at the same time stay on their multiprocessors, and what a block does once is done for
every tile of the grid that falls to it: `worker`, `worker + 132` and so on, in the order of the launch. Loads
of the next tile can run while this one is stored, and no multiprocessor waits for the start of a block.
"""

from __future__ import annotations

from ...ir import Const, Expr, Function, If, Let, Stmt, Var, const_of, lift
from ...ir.dtypes import int32
from ...ir.facts import Facts
from ...ir.names import Names
from ...language.memory import AllocShared
from ...language.scopes import entered, entry_facts
from ...language.structure import KernelLaunch, Serial
from ..analysis.block_numbers import in_panels, row_by_row
from ..context import Context

NAME = "make_persistent"


def make_persistent(function: Function, context: Context) -> Function:
    """The function whose launches that are to be persistent have a loop over the tiles of their grid."""
    if all(getattr(statement, "persistent", None) is None for statement in function.body):
        return function
    names = Names(function)

    def step(statement: Stmt) -> Stmt:
        if not isinstance(statement, KernelLaunch) or statement.persistent is None:
            return statement
        plain = statement.but(persistent=None)
        if context.machine.why_unused("persistent") or not statement.persistent:
            return plain
        facts = entered(statement, entry_facts(function))
        return looped(plain, blocks_of(statement, context), facts, names, context)

    return function.but(body=tuple(step(statement) for statement in function.body))


def blocks_of(launch: KernelLaunch, context: Context) -> int:
    """How many blocks stay: those that were asked for, else what the multiprocessors hold at a time."""
    if launch.persistent is not True:
        return int(launch.persistent or 0)
    return context.machine.units * (launch.min_blocks or 1)


def looped(
    launch: KernelLaunch, blocks: int, facts: Facts, names: Names, context: Context, what: str = "block"
) -> KernelLaunch:
    """The launch of so many blocks (or clusters: `what` says it), each with a loop over the grid's places."""
    total: Expr = Const(1)
    for count in launch.grid:
        total = total * lift(count)
    most = facts.bounds(total)[1]
    if most <= blocks:
        message = f"the grid has {most} {what}s, and {blocks} run at a time: each has one tile as it is"
        context.remark(NAME, "note", message, launch)
        return launch
    worker, wave, tile = (Var(names.fresh(name), type=int32) for name in ("worker", "wave", "tile"))
    lets = _coordinates(launch, tile, facts, names)
    # Fragments are a tile's own: what one held is not kept while the next is computed.
    outside = tuple(s for s in launch.body if isinstance(s, AllocShared))
    inside = tuple(s for s in launch.body if not isinstance(s, AllocShared))
    number = Let(tile, wave * blocks + worker, place=launch.place)
    work = If(tile.compare("<", total), (*lets, *inside), (), place=launch.place)
    waves = (total + (blocks - 1)) // blocks
    loop = Serial(waves, (wave,), (number, work), tiles=True, place=launch.place)
    known = {} if const_of(total) is None else {"tiles": most}
    message = f"{blocks} {what}{'s' * (blocks != 1)} take one tile of the grid after another"
    context.remark(NAME, "applied", message, launch, blocks=blocks, **known)
    return launch.but(grid=(blocks,), vars=(worker,), order=None, body=(*outside, loop))


def _coordinates(launch: KernelLaunch, tile: Var, facts: Facts, names: Names) -> list[Stmt]:
    """The lets that make the launch's variables of the number of a tile."""

    def variable(base: str, count: int) -> Var:
        return Var(names.fresh(base), type=int32)

    if launch.order is None or len(launch.vars) < 2:
        found = row_by_row(launch, tile, facts)
    else:
        plane = lift(launch.grid[0]) * lift(launch.grid[1])
        found = in_panels(launch, tile % plane if len(launch.vars) > 2 else tile, facts, variable)
        if len(launch.vars) > 2:
            found.append((launch.vars[2], tile // plane))
    return [Let(name, value, place=launch.place) for name, value in found]
