"""Barriers by hand: which accesses of different groups of threads a kernel has put in order itself.

Two groups run side by side. What one did before it came to a barrier that the kernel names
(`T.mbarrier_arrive`, `T.sync_threads(1, 256)`) is there for another that has waited at it. Which phase is
waited for is not looked at here: a kernel that names barriers says the order of its groups, and the
simulator's clocks check it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...ir import Const, Expr, Function, If, LoopStmt, Stmt, Var, WithStmt, children, int32, show
from ...ir.expr_walks import replaced
from ...ir.facts import NOTHING, Facts
from ...ir.stmt import statements
from ...language.lowered.copy_barriers import ExpectCopies, ReleaseTiles
from ...language.lowered.mbarriers import FenceAsyncShared, MbarrierArrive, MbarrierWait
from ...language.lowered.threads import NamedBarrierArrive, SyncThreads
from ...language.lowered.tokens import BY_HAND
from ...language.scopes import entered
from ...language.structure import Parallel
from .accesses import Access, GroupOrder, accesses_of, loads_of, same_number
from .launches import launch_of
from .thread_groups import Threads


@dataclass(frozen=True)
class Signal:
    """A barrier that a statement comes to: its name and number, whether it is counted, and waits."""

    name: str
    number: Expr
    arrives: bool
    waits: bool


def signal_of(stmt: Stmt) -> Signal | None:
    """What a statement does at a barrier that the kernel names; None for any other."""
    if isinstance(stmt, SyncThreads) and stmt.barrier:
        return Signal("", Const(stmt.barrier), arrives=True, waits=True)
    if isinstance(stmt, NamedBarrierArrive):
        return Signal("", Const(stmt.barrier), arrives=True, waits=False)
    if isinstance(stmt, (ExpectCopies, ReleaseTiles, MbarrierArrive, MbarrierWait)):
        waits, barrier = isinstance(stmt, MbarrierWait), stmt.barrier
        # Barriers of a ring are versions of one; those by hand are elements of a buffer.
        number = barrier.start[0] if barrier.version is None else barrier.version
        return Signal(barrier.buffer.name, number, arrives=not waits, waits=waits)
    return None


def is_ordered_by_hand(stmt: Stmt) -> bool:
    """Whether a kernel's own barriers, or waits for what it has issued itself, stand in a statement."""
    return any(
        signal_of(inner) is not None or getattr(inner, "token", "") == BY_HAND
        for inner in statements((stmt,))
    )


@dataclass(frozen=True)
class _Site:
    """Where a statement stands: its number in the text, the loops around it by theirs, and its threads."""

    stmt: Stmt
    number: int
    loops: frozenset[int]
    around: tuple[str, ...]
    threads: Threads


@dataclass
class _Walk:
    by_statement: Mapping[int, Threads]
    sites: list[_Site] = field(default_factory=list[_Site])

    def body(self, body: Sequence[Stmt], loops: frozenset[int], around: tuple[str, ...]) -> None:
        for stmt in body:
            site = _Site(stmt, len(self.sites), loops, around, self.by_statement[id(stmt)])
            self.sites.append(site)
            if isinstance(stmt, Parallel):
                continue
            if isinstance(stmt, If):
                self.body((*stmt.then, *stmt.orelse), loops, around)
            elif isinstance(stmt, LoopStmt):
                names = tuple(var.name for var in stmt.vars)
                self.body(stmt.body, loops | {site.number}, (*around, *names))
            elif isinstance(stmt, WithStmt):
                self.body(stmt.body, loops, around)


# A barrier by its name and number, of which the variables of loops are called by the loops' depth: what two
# groups do in loops of their own can be compared.
_Key = tuple[str, Expr]


@dataclass(frozen=True)
class HandOrders:
    """The order of each statement by its identity; empty where a kernel names no barriers.

    `links` are pairs of barriers: who has waited at the first comes to the second behind it. `around` are the
    variables of the loops around each statement that comes to one, outermost first.
    """

    of: Mapping[int, GroupOrder]
    links: frozenset[tuple[_Key, _Key]]
    around: Mapping[int, tuple[str, ...]]
    signals: tuple[tuple[_Site, Signal], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.of)

    def passed(self, pending: list[Access], stmt: Stmt, threads: Threads) -> list[Access] | None:
        """What is still pending, for these threads, behind a barrier that they come to; None: it is none."""
        if not self.of:
            return None
        if isinstance(stmt, FenceAsyncShared):
            return [_fenced(access) for access in pending]
        signal = signal_of(stmt)
        if signal is None:
            return None
        if signal.arrives:
            pending = [_fenced(access) for access in pending]
            new = self._reached(signal, self.around[id(stmt)])
            pending = [_arrived(access, new, threads) for access in pending]
        if signal.waits:
            pending = [access for access in pending if not _settled(access, signal)]
        return pending

    def tells(self, stmt: Stmt) -> bool:
        """Whether a statement comes to a barrier behind which others find what these threads wrote."""
        signal = signal_of(stmt)
        return signal is not None and signal.arrives

    def _reached(self, signal: Signal, around: tuple[str, ...]) -> frozenset[_Key]:
        """The barriers that are come to behind one, itself among them."""
        found = {(signal.name, _told(signal.number, around))}
        for _ in self.links:
            more = {second for first, second in self.links if first in found} - found
            if not more:
                break
            found |= more
        back: dict[str, Expr] = {f"@{depth}": Var(name, type=int32) for depth, name in enumerate(around)}
        return frozenset((name, replaced(number, back)) for name, number in found)

    def awaited(self, first: GroupOrder, second: GroupOrder) -> tuple[Stmt, Stmt] | None:
        """Where the first of two groups waits, and the second comes to that barrier, in no loop of both.

        A barrier of the block between the two would be one that the first never comes to.
        """
        for site, signal in self.signals:
            if not signal.waits or not _of(site, first):
                continue
            for other, later in self.signals:
                same = _name(later) == _name(signal)
                if later.arrives and same and _of(other, second) and not site.loops & other.loops:
                    return site.stmt, other.stmt
        return None

    def is_own(self, access: Access, threads: Threads) -> bool:
        """Whether an access is a group's own."""
        order = access.order
        return order is not None and (order.first, order.count) == (threads.first, threads.count)

    def met(self, access: Access) -> Access:
        """An access that its own group knows of."""
        return access if access.order is None else access.ordered(replace(access.order, met=True))


def _fenced(access: Access) -> Access:
    return access if access.order is None else access.ordered(replace(access.order, fenced=True))


def is_fenced(access: Access) -> bool:
    """Whether instructions that read shared memory by themselves see an access already."""
    return access.order is not None and access.order.fenced


def _of(site: _Site, order: GroupOrder) -> bool:
    return (site.threads.first, site.threads.count) == (order.first, order.count)


def _told(number: Expr, around: tuple[str, ...]) -> Expr:
    return replaced(number, {name: Var(f"@{depth}", type=int32) for depth, name in enumerate(around)})


def _arrived(access: Access, new: frozenset[_Key], threads: Threads) -> Access:
    order = access.order
    if order is None or not order.within(threads.first, threads.count):
        return access
    return access.ordered(replace(order, arrived=order.arrived | new))


def _settled(access: Access, signal: Signal) -> bool:
    arrived = () if access.order is None else access.order.arrived
    return any(name == signal.name and same_number(number, signal.number) for name, number in arrived)


def _names(signals: Sequence[tuple[_Site, Signal]]) -> dict[str, set[str]]:
    """For each barrier those that are come to behind it by whoever waits there, by name alone."""
    after = {_name(signal): {_name(signal)} for _, signal in signals}
    for first, second in _pairs(signals):
        after[_name(first[1])].add(_name(second[1]))
    for middle in after:
        for reached in after.values():
            if middle in reached:
                reached |= after[middle]
    return after


def _name(signal: Signal) -> str:
    return signal.name or f"barrier {show(signal.number)}"


def _pairs(
    signals: Sequence[tuple[_Site, Signal]],
) -> Iterator[tuple[tuple[_Site, Signal], tuple[_Site, Signal]]]:
    """Where the same threads wait at one barrier and come to another behind it, in a turn or in the next."""
    for site, signal in signals:
        for other, later in signals:
            behind = bool(site.loops & other.loops) or other.number > site.number
            if signal.waits and later.arrives and behind and _covers(site.threads, other.threads):
                yield (site, signal), (other, later)


def orders_of(function: Function, by_statement: Mapping[int, Threads]) -> HandOrders:
    """The orders of a function's statements."""
    body = launch_of(function).body
    if all(signal_of(stmt) is None for stmt in statements(body)):
        return HandOrders({}, frozenset(), {})
    walk = _Walk(by_statement)
    walk.body(body, frozenset(), ())
    signals = [(site, signal) for site in walk.sites if (signal := signal_of(site.stmt)) is not None]
    reached = _names(signals)
    # Of one turn: behind the next one a barrier may be another by the same number.
    links = frozenset(
        (
            (one[1].name, _told(one[1].number, one[0].around)),
            (two[1].name, _told(two[1].number, two[0].around)),
        )
        for one, two in _pairs(signals)
        if two[0].number > one[0].number
    )
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
                told |= reached[_name(signal)]
            if signal.waits and (around or other.number < site.number):
                after.add(_name(signal))
        threads = site.threads
        orders[id(site.stmt)] = GroupOrder(threads.first, threads.count, frozenset(told), frozenset(after))
    around = {id(site.stmt): site.around for site, _ in signals}
    return HandOrders(orders, links, around, tuple(signals))


def _covers(others: Threads, threads: Threads) -> bool:
    return others.first <= threads.first and threads.first + threads.count <= others.first + others.count


def ordered_accesses(stmt: Stmt, orders: HandOrders, inner: Facts = NOTHING) -> list[Access]:
    """What a statement and those inside it touch, each access with the order of its own statement."""
    nests = isinstance(stmt, (If, LoopStmt, WithStmt)) and not isinstance(stmt, Parallel)
    order = orders.of.get(id(stmt))
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


def least_arrived(accesses: list[Access]) -> list[Access]:
    """The accesses without those that differ from another only by having come to more barriers since.

    Both branches of a condition leave an access, and a loop would double them in each of its steps.
    """
    alike: dict[Access, list[Access]] = {}
    for access in accesses:
        order = access.order
        bare = access if order is None else access.ordered(replace(order, arrived=frozenset()))
        alike.setdefault(bare, []).append(access)
    if len(alike) == len(accesses):
        return accesses
    return [a for group in alike.values() for a in group if not any(_sooner(b, a) for b in group)]


def _sooner(one: Access, other: Access) -> bool:
    """Whether all that settles the first settles the other too, and more."""
    return one.order is not None and other.order is not None and one.order.arrived < other.order.arrived
