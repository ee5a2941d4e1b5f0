"""Barriers by hand: which accesses of different groups of threads a kernel has put in order itself.

Two groups run side by side. What one did before it came to a barrier that the kernel names
(`T.mbarrier_arrive`, `T.sync_threads(1, 256)`) is there for another that has waited at it. Which phase is
waited for is not looked at here: a kernel that names barriers says the order of its groups, and the
simulator's clocks check it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...ir import Function, If, LoopStmt, Stmt, WithStmt, children
from ...ir.facts import NOTHING, Facts
from ...language.lowered.threads import NamedBarrierArrive, SyncThreads
from ...language.scopes import entered
from ...language.structure import Parallel
from .accesses import Access, GroupOrder, accesses_of, loads_of
from .launches import launch_of
from .thread_groups import Threads


@dataclass(frozen=True)
class Signal:
    """A barrier that a statement comes to: its name, whether it waits there, and whether it is counted."""

    name: str
    arrives: bool
    waits: bool


def signal_of(stmt: Stmt) -> Signal | None:
    """What a statement does at a barrier that the kernel names; None for any other."""
    if isinstance(stmt, SyncThreads) and stmt.barrier:
        return Signal(f"barrier {stmt.barrier}", arrives=True, waits=True)
    if isinstance(stmt, NamedBarrierArrive):
        return Signal(f"barrier {stmt.barrier}", arrives=True, waits=False)
    return None


@dataclass(frozen=True)
class _Site:
    """Where a statement stands: its number in the text, the loops around it by theirs, and its threads."""

    stmt: Stmt
    number: int
    loops: frozenset[int]
    threads: Threads


@dataclass
class _Walk:
    by_statement: Mapping[int, Threads]
    sites: list[_Site] = field(default_factory=list[_Site])

    def body(self, body: Sequence[Stmt], loops: frozenset[int]) -> None:
        for stmt in body:
            site = _Site(stmt, len(self.sites), loops, self.by_statement[id(stmt)])
            self.sites.append(site)
            if isinstance(stmt, Parallel):
                continue
            if isinstance(stmt, If):
                self.body((*stmt.then, *stmt.orelse), loops)
            elif isinstance(stmt, LoopStmt):
                self.body(stmt.body, loops | {site.number})
            elif isinstance(stmt, WithStmt):
                self.body(stmt.body, loops)


def orders_of(function: Function, by_statement: Mapping[int, Threads]) -> dict[int, GroupOrder]:
    """The order of each statement by its identity; empty where a kernel names no barriers."""
    walk = _Walk(by_statement)
    walk.body(launch_of(function).body, frozenset())
    signals = [(site, signal) for site in walk.sites if (signal := signal_of(site.stmt)) is not None]
    if not signals:
        return {}
    orders: dict[int, GroupOrder] = {}
    for site in walk.sites:
        told: set[str] = set()
        after: set[str] = set()
        for other, signal in signals:
            if not _covers(other.threads, site.threads):
                continue
            # Behind a turn of a loop comes the next one.
            around = bool(site.loops & other.loops)
            if signal.arrives and (around or other.number > site.number):
                told.add(signal.name)
            if signal.waits and (around or other.number < site.number):
                after.add(signal.name)
        threads = site.threads
        orders[id(site.stmt)] = GroupOrder(threads.first, threads.count, frozenset(told), frozenset(after))
    return orders


def _covers(others: Threads, threads: Threads) -> bool:
    return others.first <= threads.first and threads.first + threads.count <= others.first + others.count


def ordered_accesses(stmt: Stmt, orders: Mapping[int, GroupOrder], inner: Facts = NOTHING) -> list[Access]:
    """What a statement and those inside it touch, each access with the order of its own statement."""
    nests = isinstance(stmt, (If, LoopStmt, WithStmt)) and not isinstance(stmt, Parallel)
    order = orders.get(id(stmt))
    if not nests:
        return [access.ordered(order) for access in accesses_of(stmt, inner)]
    if isinstance(stmt, LoopStmt):
        inner = entered(stmt, inner)
    found: list[Access] = []
    for part in children(stmt):
        if isinstance(part, Stmt):
            found += ordered_accesses(part, orders, inner)
        else:
            found += [access.ordered(order) for access in loads_of(part, inner)]
    return found
