"""Blocks in clusters: numbered cluster by cluster, and what all blocks of one read is found.

`T.Kernel(8, 16, cluster=(1, 2)) as (bx, by)` -> `T.Kernel(16, 8, cluster=(2,)) as (block, by_cluster)`, in
which a block has a rank, and its cluster a place in the grid of 8 by 8 clusters. They come in the order that
the launch asks for, or take one place after another where it is persistent. A copy to shared memory whose box
has nothing to do with the rank, reached by all blocks alike, is the same for each of them (`for_blocks=2`).
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...ir import Const, Expr, Function, If, Let, Load, Node, Stmt, Var, lift, walk
from ...ir.dtypes import int32
from ...ir.facts import Facts
from ...ir.names import Names
from ...language.copy import Copy
from ...language.scopes import entered, entry_facts
from ...language.structure import KernelLaunch, Pipelined, Serial, Unroll
from ..analysis.block_numbers import in_panels
from ..context import Context
from .make_persistent import blocks_of, looped

NAME = "make_clusters"
# What every device with clusters takes.
MOST_BLOCKS = 8


def make_clusters(function: Function, context: Context) -> Function:
    """The function whose launches in clusters are numbered so."""
    if all(getattr(statement, "cluster", None) is None for statement in function.body):
        return function
    names = Names(function)

    def step(statement: Stmt) -> Stmt:
        if not isinstance(statement, KernelLaunch) or statement.cluster is None:
            return statement
        plain = statement.but(cluster=None)
        if context.machine.why_unused("cluster") or prod(statement.cluster) == 1:
            return plain
        facts, cluster = entered(statement, entry_facts(function)), statement.cluster
        while cluster[-1] == 1:
            cluster = cluster[:-1]
        why = _why_not(statement, cluster, facts, context)
        if why:
            context.remark(NAME, "missed", f"its blocks form no clusters: {why}", statement)
            return plain
        return _clustered(plain, cluster, facts, names, context)

    return function.but(body=tuple(step(statement) for statement in function.body))


def _why_not(launch: KernelLaunch, cluster: tuple[int, ...], facts: Facts, context: Context) -> str:
    """The rule that forbids clusters of that form; empty: none."""
    if "cluster" not in context.machine.features:
        return f"{context.machine.name} has none"
    if len(cluster) > len(launch.grid):
        return f"they have {len(cluster)} axes, and the grid {len(launch.grid)}"
    if prod(cluster) > MOST_BLOCKS:
        return f"{prod(cluster)} blocks are more than the {MOST_BLOCKS} that every card takes"
    for axis, (count, blocks) in enumerate(zip(cluster, launch.grid, strict=False)):
        if not facts.divides(count, lift(blocks)):
            many = f"{blocks} blocks" if isinstance(blocks, int) else "a number of blocks"
            known = "" if isinstance(blocks, int) else " that the launch alone knows"
            return f"the grid has {many}{known} along {'xyz'[axis]}, no multiple of {count}"
    return ""


def _clustered(
    launch: KernelLaunch, cluster: tuple[int, ...], facts: Facts, names: Names, context: Context
) -> KernelLaunch:
    """The launch of clusters, and in it the number of a block there."""
    size, place = prod(cluster), launch.place
    rank, block = (Var(names.fresh(name), type=int32) for name in ("rank", "block"))
    inside, of_rank = _places(launch, cluster, rank, names)
    marked = _marked(launch.body, {rank.name, *of_rank}, size)
    grid = tuple(_part(blocks, count) for blocks, count in _pairs(launch.grid, cluster))
    variables = tuple(inside[var.name][0] if var.name in inside else var for var in launch.vars)
    lets = [Let(var, inside[var.name][1], place=place) for var in launch.vars if var.name in inside]
    below = launch.but(grid=grid, vars=variables, body=(*lets, *marked))
    if launch.persistent:
        workers = max(1, blocks_of(launch, context) // size)
        below = looped(below.but(persistent=None), workers, facts, names, context, "cluster")
    form = " x ".join(map(str, cluster))
    context.remark(NAME, "applied", f"clusters of {form} blocks", launch, blocks=size)
    head, grid, variables = _numbered(below, block, size, facts, names)
    body = (Let(rank, block % size, place=place), *head, *below.body)
    return below.but(grid=grid, vars=variables, order=None, persistent=None, cluster=(size,), body=body)


def _numbered(
    launch: KernelLaunch, block: Var, size: int, facts: Facts, names: Names
) -> tuple[list[Stmt], tuple[int | Expr, ...], tuple[Var, ...]]:
    """What makes the clusters' variables of the number of a block, the grid of blocks, and its variables."""
    number, place = block // size, launch.place
    first, *others = (*launch.vars,)
    if launch.order is None or not others:
        along = _whole(lift(launch.grid[0]) * size)
        return [Let(first, number, place=place)], (along, *launch.grid[1:]), (block, *others)

    def variable(base: str, count: int) -> Var:
        return Var(names.fresh(base), type=int32)

    found = in_panels(launch, number, facts, variable)
    lets: list[Stmt] = [Let(var, value, place=place) for var, value in found]
    plane = _whole(lift(launch.grid[0]) * lift(launch.grid[1]) * size)
    return lets, (plane, *launch.grid[2:]), (block, *launch.vars[2:])


def _pairs(grid: tuple[Any, ...], cluster: tuple[int, ...]) -> list[tuple[Any, int]]:
    return list(zip(grid, (*cluster, 1, 1, 1), strict=False))


def _part(blocks: int | Expr, count: int) -> int | Expr:
    return blocks // count


def _whole(size: Expr) -> int | Expr:
    return size.value if isinstance(size, Const) and isinstance(size.value, int) else size


def _places(
    launch: KernelLaunch, cluster: tuple[int, ...], rank: Var, names: Names
) -> tuple[dict[str, tuple[Var, Expr]], set[str]]:
    """By the names of variables along which a cluster has blocks: the cluster's, and the block's value."""
    found: dict[str, tuple[Var, Expr]] = {}
    step = 1
    for var, count in _pairs(launch.vars, cluster):
        if count == 1:
            continue
        of_cluster = Var(names.fresh(f"{var.name}_cluster"), type=int32)
        digit = rank if step * count == prod(cluster) and step == 1 else rank // step % count
        found[var.name] = (of_cluster, of_cluster * count + digit)
        step *= count
    return found, set(found)


# -- what is the same for all blocks of a cluster


def _marked(body: tuple[Stmt, ...], varying: set[str], size: int) -> tuple[Stmt, ...]:
    """The statements, with the copies marked that all blocks of a cluster do alike.

    `varying` are the names of what may differ between them; it grows by what they go into.
    """
    return tuple(_mark(statement, varying, size) for statement in body)


def _mark(statement: Any, varying: set[str], size: int) -> Any:
    if isinstance(statement, Let):
        if _varies(statement.value, varying):
            varying.add(statement.var.name)
    elif isinstance(statement, Copy):
        src, dst = statement.src, statement.dst
        alike = src.buffer.scope == "global" and dst.buffer.scope == "shared" and dst.is_whole
        if alike and not any(_varies(index, varying) for index in src.start):
            return statement.but(for_blocks=size)
    elif isinstance(statement, If) and not _varies(statement.condition, varying):
        return statement.but(
            then=_marked(statement.then, varying, size), orelse=_marked(statement.orelse, varying, size)
        )
    elif isinstance(statement, (Serial, Pipelined, Unroll)):
        bounds = (statement.start, statement.stop, getattr(statement, "condition", None))
        if not any(bound is not None and _varies(bound, varying) for bound in bounds):
            return statement.but(body=_marked(statement.body, varying, size))
    return statement


def _varies(expr: Node, varying: set[str]) -> bool:
    """Whether a value may differ between the blocks of a cluster; what is read from memory may."""
    return any(
        isinstance(part, Load) or (isinstance(part, Var) and part.name in varying) for part in walk(expr)
    )
