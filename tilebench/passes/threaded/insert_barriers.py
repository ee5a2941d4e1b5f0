"""Barriers where one thread may touch what another wrote, found on tile statements.

Statements of a block run in order in each thread, but threads drift apart between barriers. Two
statements without a barrier between them clash when they touch the same bytes and one writes. The
search keeps what has been touched since the last barrier. A loop is walked again with its earlier
steps' accesses until every version of a ring has come round. Threads of a group meet at a barrier of
their own, and the block's stands in front of a group that touches what others have. What an
asynchronous instruction writes counts from the wait for its token on: it is then that it is there. What
threads write for an instruction that reads shared memory by itself passes a fence in front of the barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...errors import IRError
from ...ir import (
    WORKS,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    Stmt,
    Var,
    While,
    WithStmt,
    children,
    effects_of,
    names_read_and_written,
    substitute,
    walk,
)
from ...ir.dtypes import uint64
from ...ir.expr_walks import replaced
from ...ir.facts import is_small
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.lowered.copy_barriers import ExpectCopies
from ...language.lowered.mbarriers import FenceAsyncShared
from ...language.lowered.threads import SyncThreads
from ...language.lowered.tokens import Wait
from ...language.memory import AllocShared
from ...language.structure import Parallel, Serial, ThreadGroup, Unroll
from ...machine import Machine
from ..analysis.accesses import Access, accesses_of, apart, loads_of
from ..analysis.divergence import divergence, divergent_names
from ..analysis.hand_barriers import is_fenced, least_arrived, ordered_accesses, orders_of
from ..analysis.launches import launch_of
from ..analysis.proxies import fenced_buffers
from ..analysis.shared_bytes import ByteRange, byte_range
from ..analysis.thread_groups import barrier, barrier_numbers, threads_by_statement
from ..context import Context
from ..pipelined.copy_barriers import issued_behind

HAZARDS = {
    (True, False): "read after write",
    (False, True): "write after read",
    (True, True): "write after write",
}
# Steps of a loop that are followed: one more than the stages of a ring, and no ring is deeper.
MOST_STEPS = 12
# Accesses that are told apart; of older ones only the buffer is kept, for which a barrier is soon found. Each
# statement is compared with all of them: 2,000 stores took 35 s without an end.
MOST_PENDING = 256


class _Search:
    """One function. `before` collects the statements, by identity, that need a barrier, and why."""

    def __init__(self, function: Function, machine: Machine) -> None:
        self.before: dict[int, str] = {}
        # The statements that a fence stands in front of, before their barrier or because they are one.
        self.fenced: set[int] = set()
        self.read_apart = fenced_buffers(function, machine)
        self.threads = threads_by_statement(function, machine)
        self.orders = orders_of(function, self.threads)
        # What has been issued under each token, whether or not it is still in flight.
        self.flights: dict[str, list[Access]] = {}
        self.bytes: dict[str, ByteRange] = {}
        self.versions = 1
        self.long: list[str] = []
        self.divergent = divergent_names(function)
        shared: list[AllocShared] = []
        stored: set[str] = set()
        for statement in statements(function.body):
            if isinstance(statement, AllocShared):
                shared.append(statement)
            if isinstance(statement, Parallel) or not isinstance(statement, (WithStmt, If, LoopStmt)):
                stored |= {a.buffer.name for a in accesses_of(statement) if a.write}
        for alloc in shared:
            self.versions = max(self.versions, alloc.versions)
            if self.orders and alloc.buffer.dtype is uint64:
                # A ring by hand comes round with its barriers.
                self.versions = max(self.versions, alloc.buffer.extents[0])
            place = byte_range(alloc)
            if place is not None:
                self.bytes[alloc.buffer.name] = place
        self.stored = stored
        # What a place is read from, and may be another number at the next statement.
        loaded = {node.buffer.name for node in walk(function) if isinstance(node, Load)}
        written = names_read_and_written(function.body)[1] if loaded else set[str]()
        self.changing = frozenset(loaded & written)

    # -- two accesses
    def clash(self, old: Access, new: Access) -> bool:
        if not (old.write or new.write):
            return False
        if old.order is not None and new.order is not None and old.order.connected(new.order):
            return False
        if old.buffer.name == new.buffer.name:
            return not apart(old, new)
        a, b = self.bytes.get(old.buffer.name), self.bytes.get(new.buffer.name)
        return a is not None and b is not None and a.meets(b)

    def reason(self, pending: list[Access], new: list[Access]) -> str | None:
        for access in new:
            for old in pending:
                if self.clash(old, access):
                    a, b = old.buffer.name, access.buffer.name
                    kind = HAZARDS[old.write, access.write]
                    return f"{a}: {kind}" if a == b else f"{b} takes the bytes of {a}"
        return None

    def of(self, stmt: Stmt, lets: Mapping[str, Expr]) -> list[Access]:
        """What a statement touches; global buffers that nothing writes never clash."""
        if self.orders:
            accesses = [access.moved(lets) for access in ordered_accesses(stmt, self.orders)]
        else:
            accesses = accesses_of(substitute(stmt, lets) if lets else stmt)
        for name in self.long:
            accesses = [access.without(name) for access in accesses]
        return [
            access.unsettled(self.changing)
            for access in accesses
            if access.buffer.scope == "shared" or access.buffer.name in self.stored
        ]

    # -- the walk
    def body(self, body: tuple[Stmt, ...], pending: list[Access], lets: dict[str, Expr]) -> list[Access]:
        for number, statement in enumerate(body):
            if isinstance(statement, ExpectCopies):
                # In front of its copies, which one thread issues together with it.
                copies = issued_behind(body, number)
                pending = self._meet(statement, pending, [a for copy in copies for a in self.of(copy, lets)])
            pending = self.statement(statement, pending, lets)
        return pending

    def statement(self, stmt: Stmt, pending: list[Access], lets: dict[str, Expr]) -> list[Access]:
        if isinstance(stmt, SyncThreads):
            self._fence(stmt, pending)
            return []
        if isinstance(stmt, Wait):
            issued = self.flights.get(stmt.token, [])
            if not stmt.pending:
                self.flights[stmt.token] = []  # all of it is done now
            return _joined(pending, issued)
        if isinstance(stmt, ThreadGroup):
            return self._group(stmt, pending, lets)
        passed = self.orders.passed(pending, stmt, self.threads[id(stmt)])
        if passed is not None:
            if self.orders.tells(stmt):
                self._fence(stmt, pending)
            return passed
        if isinstance(stmt, Let) and stmt.var.dtype.is_integer:
            value = replaced(stmt.value, lets)
            if is_small(value):
                lets[stmt.var.name] = value
            else:
                self.long.append(stmt.var.name)
        if isinstance(stmt, WithStmt):
            return self.body(stmt.body, pending, lets)
        if isinstance(stmt, LoopStmt) and not isinstance(stmt, Parallel):
            return self._loop(stmt, pending, lets)
        if isinstance(stmt, If):
            return self._if(stmt, pending, lets)
        new = self.of(stmt, lets)
        pending = self._meet(stmt, pending, new)
        if getattr(stmt, "barrier", None) is not None and isinstance(stmt, Copy):
            return pending  # who waits for its barrier sees what it brings
        token = getattr(stmt, "token", "")
        if token:
            self.flights[token] = _joined(self.flights.get(token, []), new)
            return pending
        works = {effect.buffer.name for effect in effects_of(stmt) if effect.kind == WORKS}
        if works:
            # A barrier inside stands between the write and the read of the memory it works in.
            return [_read(access) if access.buffer.name in works else access for access in new]
        return _joined(pending, new)

    def _group(self, stmt: ThreadGroup, pending: list[Access], lets: dict[str, Expr]) -> list[Access]:
        """Some threads' statements: for all others everything inside stays untold until they meet."""
        new = self.of(stmt, lets)
        if self.orders:
            return self._group_by_hand(stmt, pending, new, lets)
        pending = self._meet(stmt, pending, new)
        self.body(stmt.body, [], dict(lets))
        return _joined(pending, new)

    def _group_by_hand(
        self, stmt: ThreadGroup, pending: list[Access], new: list[Access], lets: dict[str, Expr]
    ) -> list[Access]:
        """The same where groups have their own order: for what the group itself did it meets inside."""
        inside = self.threads[id(stmt.body[0])]
        own = [access for access in pending if self.orders.is_own(access, inside)]
        others = [access for access in pending if access not in own]
        if id(stmt) not in self.before:
            self._refuse_late(stmt, others, new)
        others = self._meet(stmt, others, new)
        if id(stmt) in self.before:
            own = []
        left = self.body(stmt.body, [a for a in own if a.order and not a.order.met], dict(lets))
        seen = [access if access in left else self.orders.met(access) for access in _joined(own, new)]
        return _joined(_joined(others, seen), left)

    def _refuse_late(self, stmt: Stmt, pending: list[Access], new: list[Access]) -> None:
        """Refuse a barrier of the block that a group cannot come to, since it waits for one behind it."""
        for access in new:
            for old in pending:
                a, b = old.order, access.order
                if a is None or b is None or a.first == b.first or not self.clash(old, access):
                    continue
                found = self.orders.awaited(a, b)
                if found is not None:
                    raise IRError(
                        "threads {c} to {d} {use} {name}, which threads {a} to {b} {did}, and no barrier of"
                        " the kernel's is between", at=stmt.place, name=access.buffer.name,
                        use="write" if access.write else "read", did="write" if old.write else "read",
                        a=a.first, b=a.first + a.count - 1, c=b.first, d=b.first + b.count - 1,
                        also=[("the first wait for the others here", found[0].place)],
                        hint="have the first arrive at a barrier behind it, and the others wait there before;"
                        " a barrier of the block would never open",
                    )  # fmt: skip

    def _meet(self, stmt: Stmt, pending: list[Access], new: list[Access]) -> list[Access]:
        """A barrier before `stmt` when one is needed; what is still pending after it."""
        if id(stmt) in self.before:
            self._fence(stmt, pending)
            return []
        if self.threads[id(stmt)].count == 1:
            return pending  # one thread does everything in order
        why = self.reason(pending, new)
        if why is None:
            return pending
        self.before[id(stmt)] = why
        self._fence(stmt, pending)
        return []

    def _fence(self, stmt: Stmt, pending: list[Access]) -> None:
        """A fence in front of a barrier behind which others find what threads wrote."""
        unseen = [access for access in pending if not is_fenced(access)]
        if any(a.write and a.buffer.name in self.read_apart for a in unseen):
            self.fenced.add(id(stmt))

    def _if(self, stmt: If, pending: list[Access], lets: dict[str, Expr]) -> list[Access]:
        # A clash of what came before with anything inside is met in front of the whole statement,
        # where all threads pass whatever the condition is.
        new = self.of(stmt, lets)
        pending = self._meet(stmt, pending, new)
        known = len(self.before)
        condition = self.of(stmt.but(then=(), orelse=()), lets)
        start = _joined(pending, condition)
        then = self.body(stmt.then, start, dict(lets))
        orelse = self.body(stmt.orelse, start, dict(lets))
        if self._inside(stmt) and (len(self.before) > known or self._has_barrier(stmt)):
            self._uniform(stmt, stmt.condition, "the condition")
        return least_arrived(_joined(then, orelse))

    def _loop(self, stmt: LoopStmt, pending: list[Access], lets: dict[str, Expr]) -> list[Access]:
        if not isinstance(stmt, (Serial, Unroll, While)):
            return _joined(self._meet(stmt, pending, self.of(stmt, lets)), self.of(stmt, lets))
        resolved = substitute(stmt, lets) if lets else stmt
        bounds = [a for part in children(resolved) if not isinstance(part, Stmt) for a in self._reads(part)]
        entry = _joined(self._meet(stmt, pending, bounds), bounds)
        leaving = list(entry)
        earlier: dict[str, Expr] = {var.name: var - 1 for var in stmt.vars}
        start = entry
        for _ in range(min(self.versions + 1, MOST_STEPS)):
            known = len(self.before)
            end = self.body(stmt.body, start, dict(lets))
            leaving = _joined(leaving, [_without(access, stmt.vars) for access in end])
            following = _joined([], [access.moved(earlier) for access in end if _goes_on(access, stmt)])
            for token, issued in self.flights.items():
                self.flights[token] = _joined(issued, [access.moved(earlier) for access in issued])
            if len(self.before) == known and set(following) == set(start):
                break
            start = following
        for token, issued in self.flights.items():
            self.flights[token] = _joined([], [_without(access, stmt.vars) for access in issued])
        if self._has_barrier(stmt):
            for part in children(stmt):
                if not isinstance(part, Stmt):
                    what = "the condition" if part is stmt.condition else "a bound of the loop"
                    self._uniform(stmt, part, what)
        return leaving

    def _reads(self, node: Node) -> list[Access]:
        return [
            access
            for access in loads_of(node)
            if access.buffer.scope == "shared" or access.buffer.name in self.stored
        ]

    # -- divergence
    def _has_barrier(self, stmt: Stmt) -> bool:
        return any(
            id(statement) in self.before
            or isinstance(statement, SyncThreads)
            or any(effect.kind == WORKS for effect in effects_of(statement))
            for statement in _inner(stmt)
        )

    def _inside(self, stmt: If) -> bool:
        return bool(stmt.then or stmt.orelse)

    def _uniform(self, stmt: Stmt, expr: Node, what: str) -> None:
        """Refuse a barrier that not all threads would reach."""
        culprit = divergence(expr, self.divergent)
        if culprit is not None:
            raise IRError(
                "{what} differs from thread to thread (by {culprit}), and all threads must wait inside",
                at=stmt.place, what=what, culprit=culprit,
                hint="use a condition of block indices, loop variables and parameters only",
            )  # fmt: skip


def _inner(stmt: Stmt) -> Iterator[Stmt]:
    """The statements inside one, at any depth."""
    for mark in stmt.marks:
        if mark.mark == "body":
            yield from statements(getattr(stmt, mark.name))


def _without(access: Access, variables: tuple[Var, ...]) -> Access:
    """The access as it is seen behind a loop of these variables."""
    for var in variables:
        access = access.without(var.name)
    return access


def _goes_on(access: Access, loop: LoopStmt) -> bool:
    """Whether what was touched in one turn of a loop has an order with the next turn."""
    if not isinstance(loop, Serial) or not loop.tiles:
        return True
    return access.buffer.scope != "global"


def _read(access: Access) -> Access:
    return replace(access, write=False)


def _joined(a: list[Access], b: list[Access]) -> list[Access]:
    found = list(dict.fromkeys([*a, *b]))
    if len(found) <= MOST_PENDING:
        return found
    half = MOST_PENDING // 2
    return list(dict.fromkeys([*(access.anywhere() for access in found[:-half]), *found[-half:]]))


def insert_barriers(function: Function, context: Context) -> Function:
    """`T.copy(..., A_s); T.gemm(A_s, ...)` -> the same with `T.sync_threads(why="A_s: ...")` between."""
    search = _Search(function, context.machine)
    search.body(launch_of(function).body, [], {})
    numbers = barrier_numbers(function, context.machine)

    def placed(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        placed_body: list[Stmt] = []
        for statement in body:
            why = search.before.get(id(statement))
            if id(statement) in search.fenced:
                placed_body.append(FenceAsyncShared(place=statement.place))
            if why is not None:
                barriers = barrier(search.threads[id(statement)], numbers, context.machine, why)
                placed_body += [wait.at(statement.place) for wait in barriers]
                context.remark("insert_barriers", "applied", f"a barrier for {why}", statement)
            placed_body.append(inside(statement))
        return tuple(placed_body)

    def inside(stmt: Stmt) -> Stmt:
        changes = {mark.name: placed(getattr(stmt, mark.name)) for mark in stmt.marks if mark.mark == "body"}
        return stmt.but(**changes) if changes and not isinstance(stmt, Parallel) else stmt

    changed = inside(function)
    assert isinstance(changed, Function)
    return changed
