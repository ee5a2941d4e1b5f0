"""A kernel's body in runs of what each thread does, between what all threads do together.

    x = s[tx]              for tx in T.Parallel(128, of_threads=True): ...
    T.sync_threads()   ->  T.sync_threads()
    s[tx] = x + s[tx ^ 1]  for tx in T.Parallel(128, of_threads=True): ...

A run ends where all threads have to meet: at a barrier, an operation on tiles, a statement of the block, and
where a thread may touch what another one did. A loop or branch around such a place stays outside, with runs
inside, and a condition that differs from thread to thread goes into each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ...errors import LanguageError, Place
from ...ir import (
    AllocStmt,
    Arith,
    Call,
    Const,
    Expr,
    If,
    Let,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    all_of,
    walk,
    zero_of,
)  # fmt: skip
from ...ir.dtypes import boolean
from ...ir.expr_walks import replaced
from ...ir.stmt import statements
from ..addresses import TensorAt
from ..extern import ExternCall
from ..groups import groups_of
from ..lowered.threads import SyncThreads, SyncWarp
from ..promises import Assume
from ..structure import Parallel, ThreadGroup, Unroll, Vectorized
from ..votes import WarpVote
from .block import BlockThreads
from .conditions import how_many, same_in_warps
from .differing import OWN, Differing, heads, on_tiles, pure, with_tiles
from .meeting import SharedTouch, Touches
from .parts import elements_of, flagged
from .same_in_warps import SameInWarps
from .turns import may_take_turns, refuse_loop, say_nothing, take_turns, vote


@dataclass(frozen=True)
class Guard:
    """A condition that differs from thread to thread, around statements that are split.

    `group` is the header of the group of threads that it chooses, where the body is one's.
    """

    condition: Expr
    place: Place | None
    group: ThreadGroup | None = None


class Splitter:
    """One block. `kept` are arrays and scalars of each thread that live across runs, by name."""

    def __init__(
        self, block: BlockThreads, coordinates: tuple[Var, ...], differing: Differing, warps: SameInWarps,
        fresh: Any,
    ) -> None:  # fmt: skip
        self.block = block
        self.coordinates = coordinates
        self.differing = differing
        self.warps = warps
        self.fresh = fresh
        extents = {var.name: extent for var, extent in zip(coordinates, block.extents, strict=True)}
        self.touches = Touches(extents, dict(block.kept))
        self.guards: tuple[Guard, ...] = ()
        self.out: list[Stmt] = []
        self.run: list[Stmt] = []
        self.pending: list[SharedTouch] = []
        # Scalars for what an atomic finds, until the atomic comes: they live in its run.
        self.finding: dict[str, AllocStmt] = {}

    # -- bodies and runs
    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements of a body, split. No run is open before or after it."""
        outer, self.out = self.out, []
        self.statements(body)
        self.flush()
        inner, self.out = self.out, outer
        return tuple(inner)

    def statements(self, body: Sequence[Stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def flush(self) -> None:
        """End the run: what follows is done when all threads have done it."""
        if self.run:
            loop = Parallel(
                self.block.extents, self.coordinates, tuple(self.run), of_threads=True,
                place=self.run[0].place,
            )  # fmt: skip
            self.out.append(loop)
        self.run, self.pending = [], []

    def each(self, statement: Stmt) -> None:
        """A statement of each thread, under the conditions around it."""
        if self.guards and isinstance(statement, Store) and statement.buffer.scope == "fragment":
            for guard in self.guards:
                self.exchange(statement, guard)
        self.touches.note(statement)
        new = [touch for inner in statements((statement,)) for touch in self.touches.of(inner)]
        tests = [guard.condition for guard in self.guards]
        new += [touch for test in tests for touch in self.touches.of(If(test, (), ()))]
        if self.touches.clash(self.pending, new) is not None:
            self.flush()
        self.pending += new
        if isinstance(statement, Store) and statement.found is not None:
            self.run.append(self.finding.pop(statement.found.name))
        if tests and isinstance(statement, Let):
            self.run.append(_guarded_let(statement, all_of(tests)))
            return
        own = flagged(statement, self.fresh)
        last = self.run[-1] if self.run else None
        condition = all_of(tests)
        if not tests:
            self.run += own
        elif isinstance(last, If) and not last.orelse and last.condition == condition:
            self.run[-1] = last.but(then=(*last.then, *own))
        else:
            self.run.append(If(condition, own, (), place=statement.place))

    def together(self, statement: Stmt) -> None:
        """A statement that all threads do together, or those of the group around it."""
        self.flush()
        for guard in reversed(self.guards):
            if guard.group is None:
                _refuse_together(statement, guard)
            before = self.out[-1] if self.out else None
            if (
                isinstance(before, ThreadGroup)
                and before.place is guard.group.place
                and _same(before, guard.group)
            ):
                self.out.pop()
                statement = before.but(body=(*before.body, statement))
            else:
                statement = guard.group.but(body=(statement,))
        self.out.append(statement)

    def exchange(self, store: Stmt, guard: Guard) -> None:
        """Refuse an exchange between threads of a warp that not all of them take part in."""
        condition = replaced(guard.condition, self.touches.short)
        alike = same_in_warps(condition, self.block.extents, self.coordinates)
        if not alike and not self.warps(guard.condition):
            raise LanguageError(
                "threads of a warp exchange values under a condition that differs among them", at=store.place,
                also=[("the condition is here", guard.place)], expected="a condition for whole warps",
                hint="exchange in front of the condition, and use the value inside",
            )  # fmt: skip

    # -- statements
    def statement(self, statement: Stmt) -> None:
        match statement:
            case Let():
                self.let(statement)
            case AllocStmt():
                self.allocate(statement)
                if self.guards and statement.buffer.name in self.warps.told:
                    say_nothing(self, statement)
            case Store() | ExternCall() | Assume():
                alone = all(guard.group is not None for guard in self.guards)
                if alone and not self.differing(statement):
                    self.together(statement)
                else:
                    self.each(statement)
            case If():
                self.branch(statement)
            case ThreadGroup():
                self.group(statement)
            case LoopStmt() if not isinstance(statement, Parallel):
                self.loop(statement)
            case SyncThreads() if statement.threads:
                self.barrier_of_some(statement)
            case SyncThreads() | SyncWarp():
                self.barrier(statement)
            case WarpVote():
                vote(self, statement)
            case _:
                self.tiles(statement)

    def let(self, let: Let) -> None:
        if self.differing(let.value):
            self.each(let)
            return
        if not pure(let.value):
            self.flush()
        # A name of the block: it stands in front of the run that is open.
        self.out.append(let)

    def allocate(self, allocation: AllocStmt) -> None:
        """An array or scalar of each thread lives as long as the body it stands in."""
        if isinstance(allocation, TensorAt):
            self.tensor(allocation)
            return
        init = getattr(allocation, "init", None)
        if allocation.buffer.name in self.differing.found:
            self.finding[allocation.buffer.name] = allocation
            return
        if allocation.buffer.scope not in OWN or not self.differing(allocation):
            if init is not None and not pure(init):
                self.flush()
            self.out.append(allocation)
            return
        self.out.append(self.block.keep(allocation.buffer.name, allocation.buffer, allocation.place))
        if init is not None:
            self.each(Store(allocation.buffer, (), init, place=allocation.place))

    def tensor(self, tensor: TensorAt) -> None:
        """The array at an address of the block's."""
        culprit = self.differing.culprit(tensor.address)
        if culprit is not None:
            raise LanguageError(
                "the address of {name} is another in each thread, by {culprit}", name=tensor.buffer.name,
                culprit=culprit, at=tensor.place, expected="an address of the whole block",
            )  # fmt: skip
        if not pure(tensor.address):
            self.flush()
        self.out.append(tensor)

    def barrier(self, barrier: SyncThreads | SyncWarp) -> None:
        if self.guards and isinstance(barrier, SyncThreads):
            raise LanguageError(
                "a barrier of the block stands under a condition that differs from thread to thread",
                at=barrier.place, also=[("the condition is here", self.guards[-1].place)],
                expected="all threads of the block at T.sync_threads()",
                hint="put the barrier between two conditions; what is shared is guarded without one",
            )  # fmt: skip
        self.flush()
        self.out.append(barrier)

    def barrier_of_some(self, barrier: SyncThreads) -> None:
        """A barrier with a count: a group's own as it is, else all pass it, also those it is not for."""
        if self.guards and all(guard.group for guard in self.guards):
            return self.together(barrier)
        tests = [replaced(guard.condition, self.touches.short) for guard in self.guards]
        found = how_many(all_of(tests), self.block.extents, self.coordinates) if tests else self.block.count
        if found != barrier.threads:
            raise LanguageError(
                "a barrier of {count} threads, where {others} come to it", at=barrier.place,
                count=barrier.threads, others=found if found is not None else "nobody knows how many",
                expected="a condition on the numbers of threads that chooses as many",
            )  # fmt: skip
        self.flush()
        return self.out.append(SyncThreads(why=barrier.why, place=barrier.place))

    def tiles(self, statement: Stmt) -> None:
        culprit = self.differing.culprit(statement)
        if culprit is None:
            self.together(statement)
            return
        parts = elements_of(statement, self.fresh)
        if parts is None:
            raise LanguageError(
                "all threads do this together, and {name} is another in each thread", name=culprit,
                at=statement.place,
                hint="work on elements, of the thread's own arrays and of others: for k in T.serial(n)",
            )  # fmt: skip
        self.statements(parts)

    # -- branches
    def branch(self, branch: If) -> None:
        if isinstance(branch.condition, Const):
            self.statements(branch.then if branch.condition.value else branch.orelse)
            return
        differs = self.differing(branch.condition)
        if differs and with_tiles(branch):
            for group in self.groups(branch):
                self.group(group)
        elif self.whole(branch):
            self.each(branch)
        elif differs:
            self.distribute(branch)
        elif self.differing(branch):
            self.flush()
            self.out.append(branch.but(then=self.body(branch.then), orelse=self.body(branch.orelse)))
        else:
            self.together(branch)

    def groups(self, branch: If) -> list[ThreadGroup]:
        condition = replaced(branch.condition, self.touches.short)
        return [
            group.at(branch.place)
            for group in groups_of(branch, condition, self.block.extents, self.coordinates)
        ]

    def group(self, group: ThreadGroup) -> None:
        """What some threads do: their operations on tiles stay together, what each does gets a condition."""
        if not self.differing(group):
            self.together(group)
            return
        number: Expr = Const(0)
        for var, extent in zip(self.coordinates, self.block.extents, strict=True):
            number = number * extent + var
        end = self.block.count if group.count is None else group.first + group.count
        tests = [number.compare(">=", group.first), number.compare("<", end)]
        self.under(Guard(all_of(tests), group.place, group), group.body)

    def distribute(self, branch: If) -> None:
        """A condition of each thread around places where all threads meet."""
        condition = branch.condition
        if not pure(condition):
            name = Var(self.fresh("condition"), type=boolean, place=branch.place)
            self.differing.names.add(name.name)
            self.each(Let(name, condition, place=branch.place))
            condition = name
        self.under(Guard(condition, branch.place), branch.then)
        self.under(Guard(Arith("not", (condition,)), branch.place), branch.orelse)

    def under(self, guard: Guard, body: Sequence[Stmt]) -> None:
        around, self.guards = self.guards, (*self.guards, guard)
        self.statements(body)
        self.guards = around

    # -- loops
    def loop(self, loop: LoopStmt) -> None:
        bounds = next((name for part in heads(loop) if (name := self.differing.culprit(part))), None)
        if self.whole(loop):
            self.each(loop)
        elif not self.differing(loop):
            self.together(loop)
        elif bounds is not None and self.warps(loop.condition or Const(0)) and may_take_turns(self, loop):
            take_turns(self, loop, Guard)
        elif bounds is not None:
            refuse_loop(self, loop, bounds)
        else:
            self.flush()
            for var in loop.vars:
                self.touches.ranges.pop(var.name, None)
                self.touches.loose.discard(var.name)
            inner = self.body(loop.body)
            if isinstance(loop, Vectorized):
                self.out.append(Unroll(Const(loop.extent), loop.vars, inner, place=loop.place))
            else:
                self.out.append(loop.but(body=inner))

    def whole(self, statement: Stmt) -> bool:
        """Whether a loop or branch is each thread's own as it stands: nobody meets or waits inside."""
        self.touches.note(statement)
        made = {inner.buffer.name for inner in statements((statement,)) if isinstance(inner, AllocStmt)}
        # Inside a group of threads a statement without the number of one is the group's.
        alone = any(guard.group is None for guard in self.guards)
        under = alone or any(map(self.differing, heads(statement)))
        return (
            (under or self.differing(statement))
            and self._own(statement, made, under)
            and self.touches.inside(statement) is None
        )

    def _own(self, statement: Stmt, made: set[str], under: bool) -> bool:
        if isinstance(statement, (SyncThreads, SyncWarp, WarpVote)) or on_tiles(statement):
            return False
        if isinstance(statement, AllocStmt):
            return statement.buffer.scope in OWN
        if isinstance(statement, ExternCall):
            return under or self.differing(statement)
        if isinstance(statement, Store):
            return under or statement.buffer.name in made or self.differing(statement)
        under = under or any(map(self.differing, heads(statement)))
        bodies: list[Stmt] = []
        if isinstance(statement, If):
            bodies = [*statement.then, *statement.orelse]
        elif isinstance(statement, LoopStmt):
            bodies = [*statement.body]
        return all(self._own(inner, made, under) for inner in bodies)


def _guarded_let(let: Let, condition: Expr) -> Let:
    """A name of each thread, whose value reads memory only where the condition holds."""
    if not any(isinstance(part, Load) for part in walk(let.value)):
        return let
    value = Call("if_then_else", (condition, let.value, zero_of(let.value.dtype)), type=let.value.dtype)
    return let.but(value=value)


def _same(a: ThreadGroup, b: ThreadGroup) -> bool:
    return (a.first, a.count) == (b.first, b.count)


def _refuse_together(statement: Stmt, guard: Guard) -> NoReturn:
    raise LanguageError(
        "all threads do this together, and it stands under a condition that differs from thread to thread",
        at=statement.place, also=[("the condition is here", guard.place)],
        expected="a condition that chooses a range of threads: if tx < 32:",
    )  # fmt: skip
