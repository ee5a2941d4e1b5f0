"""Groups of threads that a kernel puts in order itself: they go through it side by side.

Each `Role` is the threads that go the same way: it has names of its own and runs until it waits at a barrier
of the kernel's, then another one goes on. What several roles do together is done once, when all are there.
That is one of many legal orders; a kernel whose result depends on which has a race, and the simulator tells.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LanguageError
from ..ir import AllocStmt, Const, Expr, If, Let, LoopStmt, Stmt, While, WithStmt, effects_in
from ..ir.stmt import statements
from ..language.lowered.mbarriers import (
    FenceAsyncShared,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierExpect,
    MbarrierWait,
)
from ..language.lowered.threads import NamedBarrierArrive, SyncThreads
from ..language.lowered.tokens import Commit, Wait
from ..language.mbarriers import AllocBarrier
from ..language.notes import Note
from ..language.placement import AnnotatedLayout
from ..language.registers import SetMaxNreg
from ..language.structure import KernelLaunch, Parallel, Pipelined, Serial, ThreadGroup, Unroll, Vectorized
from ..passes.analysis.hand_barriers import signal_of
from .meetings import Halt, Meetings
from .state import Run, State

if TYPE_CHECKING:
    from .statements import StatementRunner

# Arrays are seen through their layouts (`places.in_order`), what is asynchronous has come when it is issued,
# and registers and notes change no value.
SILENT = (AnnotatedLayout, Note, SetMaxNreg, Commit, Wait)
_THREADS = 128  # of a kernel that says nothing, or a multiple of it
Loop = Serial | Unroll | Pipelined | Vectorized | While


@dataclass(eq=False)
class Role:
    """Threads that go the same way: `count` from `first` on, with what is known to them."""

    first: int
    count: int
    state: State
    meetings: Meetings
    going: Generator[Halt, None, None] | None = None
    halt: Halt | None = None


Way = Callable[[Role], Generator[Halt, None, None]]


def is_by_hand(launch: KernelLaunch) -> bool:
    """Whether a kernel has barriers of its own between groups of threads."""
    return any(isinstance(s, AllocBarrier) or signal_of(s) is not None for s in statements(launch.body))


def by_roles(runner: StatementRunner, launch: KernelLaunch) -> Run:
    """The body of a launch for one block, its roles one after the other as far as each can go."""
    threads = launch.threads or _needed(launch)
    ways = _Ways(runner, threads)
    way = ways.body(launch.body, (0, threads))
    cuts = sorted({0, threads, *ways.cuts})
    parts = list(pairwise(cuts))

    def run(state: State) -> None:
        meetings = Meetings(threads)
        for first, end in parts:
            own = replace(state, names=dict(state.names))
            meetings.roles.append(Role(first, end - first, own, meetings))
        for role in meetings.roles:
            role.going = way(role)
        _run(meetings)

    return run


def _needed(launch: KernelLaunch) -> int:
    """Threads for all groups of a launch that leaves to a schedule how many it has."""
    groups = [stmt for stmt in statements(launch.body) if isinstance(stmt, ThreadGroup)]
    last = max((group.first + (group.count or 1) for group in groups), default=1)
    return -(-last // _THREADS) * _THREADS


def _run(meetings: Meetings) -> None:
    """Let every role go on until all have ended. Raises `LanguageError` when none can."""
    left = list(meetings.roles)
    while left:
        moved = False
        for role in list(left):
            while role.halt is None or role.halt.is_over():
                moved = True
                role.halt = next(role.going, None)  # type: ignore[arg-type]
                if role.halt is None:
                    left.remove(role)
                    break
        if not moved:
            _refuse_deadlock(left)


def _refuse_deadlock(left: list[Role]) -> None:
    halts = [(role, role.halt) for role in left if role.halt is not None]
    told = [(f"threads {r.first} to {r.first + r.count - 1} wait for {h.what()}", h.place) for r, h in halts]
    raise LanguageError(
        "groups of threads wait for each other for ever: {who}", at=told[0][1], who=told[0][0], also=told[1:],
        hint="a phase ends when all its arrivals have come; the first to fill a buffer waits for parity 1",
    )  # fmt: skip


@dataclass(eq=False)
class _Ways:
    """Prepares statements as roles run them; `cuts` are the threads at which groups begin and end."""

    runner: StatementRunner
    threads: int
    cuts: set[int] = field(default_factory=set[int])

    def body(self, body: Sequence[Stmt], here: tuple[int, int]) -> Way:
        """The statements in order, of the threads from `here[0]` to before `here[1]`."""
        parts = [self.statement(stmt, here) for stmt in body]

        def run(role: Role) -> Generator[Halt, None, None]:
            for part in parts:
                yield from part(role)

        return run

    def statement(self, stmt: Stmt, here: tuple[int, int]) -> Way:
        match stmt:
            case ThreadGroup():
                return self.group(stmt)
            case AllocBarrier():
                return lambda role: role.meetings.make(stmt)
            case MbarrierArrive() | MbarrierWait():
                return self.barrier(stmt)
            case MbarrierExpect() | FenceAsyncShared() | FenceMbarrierInit():
                return _nothing  # what is asynchronous has come when it is issued
            case SyncThreads() | NamedBarrierArrive():
                number, count = stmt.barrier, stmt.threads or self.threads
                waits = isinstance(stmt, SyncThreads)
                return lambda role: role.meetings.named(role.count, number, count, stmt, waits=waits)
            case If() if not self.is_plain(stmt):
                return self.branch(stmt, here)
            case LoopStmt() if not isinstance(stmt, Parallel) and not self.is_plain(stmt):
                return self.loop(stmt, here)
            case WithStmt():
                return self.body(stmt.body, here)
            case _:
                return self.leaf(stmt, here)

    def is_plain(self, stmt: Stmt) -> bool:
        """Whether a branch or loop can be done at once: no group inside, and nothing of a role's own."""
        return not any(
            isinstance(s, (ThreadGroup, AllocBarrier))
            or signal_of(s) is not None
            or isinstance(s, SyncThreads)
            for s in statements((stmt,))
        ) and not any(_own_memory(stmt))

    # -- what is done
    def leaf(self, stmt: Stmt, here: tuple[int, int]) -> Way:
        """A statement that the roles here do together, once; names and scalars are each role's own."""
        run = self.runner.statement(stmt)
        parts = _own_memory(stmt)
        own = isinstance(stmt, Let) or (bool(parts) and all(parts))
        first, end = here

        def alone(role: Role) -> Generator[Halt, None, None]:
            run(role.state)
            yield from ()

        def together(role: Role) -> Generator[Halt, None, None]:
            roles = role.meetings.among(first, end)
            if len(roles) == 1:
                run(role.state)
            elif role.meetings.is_last(stmt, role, roles):
                _for_all(run, [each.state for each in roles])
            else:
                yield role.meetings.until_done(stmt, roles)

        return alone if own else together

    # -- ways that part
    def group(self, group: ThreadGroup) -> Way:
        end = self.threads if group.count is None else group.first + group.count
        self.cuts |= {group.first, end}
        inside = self.body(group.body, (group.first, end))

        def run(role: Role) -> Generator[Halt, None, None]:
            if group.first <= role.first < end:
                yield from inside(role)

        return run

    def branch(self, branch: If, here: tuple[int, int]) -> Way:
        condition, place, numbers = self.runner.prepare(branch.condition), branch.place, self.runner.numbers
        then, other = self.body(branch.then, here), self.body(branch.orelse, here)

        def run(role: Role) -> Generator[Halt, None, None]:
            test = condition(role.state)
            numbers.may(test, place)
            yield from (then if getattr(test, "value", test) else other)(role)

        return run

    def loop(self, loop: LoopStmt, here: tuple[int, int]) -> Way:
        turns, inside = self.turns(loop), self.body(loop.body, here)
        condition = None if loop.condition is None else self.runner.prepare(loop.condition)
        name = loop.vars[0].name if loop.vars else ""
        place, numbers = loop.place, self.runner.numbers

        def run(role: Role) -> Generator[Halt, None, None]:
            for index in turns(role.state):
                role.state.names[name] = index
                if condition is not None:
                    test = condition(role.state)
                    numbers.may(test, place)
                    if not np.all(getattr(test, "value", test)):
                        return
                yield from inside(role)

        return run

    def turns(self, loop: LoopStmt) -> Callable[[State], Any]:
        """The values of a loop's variable; of a loop without one they have no end."""
        if isinstance(loop, While):
            return lambda state: iter(int, 1)
        if isinstance(loop, Vectorized):
            return lambda state: range(loop.extent)
        assert isinstance(loop, (Serial, Unroll, Pipelined))
        start, stop = loop.start, loop.stop
        step = loop.step if isinstance(loop, (Serial, Unroll)) else Const(1)
        bounds = self.runner.integers([start, stop, step])
        return lambda state: range(*(int(bound) for bound in bounds(state)))

    # -- barriers
    def barrier(self, stmt: MbarrierArrive | MbarrierWait) -> Way:
        number = self.runner.integers(stmt.barrier.start)
        name = stmt.barrier.buffer.name
        if isinstance(stmt, MbarrierWait):
            parity = self.runner.integers([stmt.parity])
            return lambda role: role.meetings.wait(
                stmt, name, int(number(role.state)[0]), int(parity(role.state)[0])
            )
        counts: list[Expr] = [stmt.count] if stmt.count is not None else [Const(1)]
        each = self.runner.integers(counts)
        return lambda role: role.meetings.arrive(
            stmt, name, int(number(role.state)[0]), role.count * int(each(role.state)[0])
        )


def _own_memory(stmt: Stmt) -> list[bool]:
    """Of each buffer that a statement makes or writes, whether each role has one of its own."""
    made = [stmt.buffer] if isinstance(stmt, AllocStmt) else []
    return [
        buffer.scope in ("var", "local")
        for buffer in (*made, *(effect.buffer for effect in effects_in(stmt) if effect.writes))
    ]


def _nothing(role: Role) -> Generator[Halt, None, None]:
    yield from ()


def _for_all(run: Run, states: list[State]) -> None:
    """Do something once for all who are here: what it has bound is known to each of them."""
    first, *others = states
    before = dict(first.names)
    run(first)
    new = {name: value for name, value in first.names.items() if before.get(name) is not value}
    for state in others:
        state.names.update(new)
