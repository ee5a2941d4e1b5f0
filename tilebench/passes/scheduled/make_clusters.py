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
from ...ir.stmt import statements
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
    marked = _Marking({rank.name, *of_rank}, size, context).body(launch.body)
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


class _Marking:
    """Marks the copies that all blocks of a cluster do alike, and tells of those that only their place bars.

    `varying` are the names of what may differ between the blocks; it grows by what they go into.
    """

    def __init__(self, varying: set[str], size: int, context: Context) -> None:
        self.varying, self.size, self.context = varying, size, context

    def body(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements, marked."""
        return tuple(self._mark(statement) for statement in statements)

    def _mark(self, statement: Any) -> Any:
        if isinstance(statement, Let):
            if _varies(statement.value, self.varying):
                self.varying.add(statement.var.name)
        elif isinstance(statement, Copy):
            return statement.but(for_blocks=self.size) if self._alike(statement) else statement
        elif isinstance(statement, If):
            if _varies(statement.condition, self.varying):
                self._tell(statement, "whether it does may differ between them")
            else:
                return statement.but(then=self.body(statement.then), orelse=self.body(statement.orelse))
        elif isinstance(statement, (Serial, Pipelined, Unroll)):
            bounds = (statement.start, statement.stop, getattr(statement, "condition", None))
            if any(bound is not None and _varies(bound, self.varying) for bound in bounds):
                self._tell(statement, "how often it does may differ between them")
            else:
                return statement.but(body=self.body(statement.body))
        return statement

    def _alike(self, copy: Copy) -> bool:
        """Whether all blocks copy the same to a whole tile."""
        src, dst = copy.src, copy.dst
        into = src.buffer.scope == "global" and dst.buffer.scope == "shared" and dst.is_whole
        return into and not any(_varies(index, self.varying) for index in src.start)

    def _tell(self, statement: Stmt, why: str) -> None:
        """Copies in there would be the same for all blocks, as far as their boxes go."""
        inside = _Marking(set(self.varying), self.size, self.context)
        copied: list[str] = []
        for part in statements((statement,)):
            if isinstance(part, Let):
                inside._mark(part)
            elif isinstance(part, (Serial, Pipelined, Unroll)) and _varies(part.start, inside.varying):
                inside.varying.update(var.name for var in part.vars)
            elif isinstance(part, Copy) and inside._alike(part):
                copied.append(part.dst.buffer.name)
        if copied:
            names = ", ".join(dict.fromkeys(copied))
            message = f"each block of a cluster brings {names} for itself: {why}"
            self.context.remark(NAME, "missed", message, statement)


def _varies(expr: Node, varying: set[str]) -> bool:
    """Whether a value may differ between the blocks of a cluster; what is read from memory may."""
    return any(
        isinstance(part, Load) or (isinstance(part, Var) and part.name in varying) for part in walk(expr)
    )
