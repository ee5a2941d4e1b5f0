"""The code of one thread under construction: names and what is known of them, by scopes.

A scope is the body of a loop or branch that is being written: what is bound in it is forgotten when it
ends, names and facts alike, so that the next one may use the same. Names of ours never equal one
that the kernel uses anywhere; a coordinate that the kernel names keeps its name unless it is still bound.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from ...ir import ZERO, Buffer, Call, Const, Expr, Let, Region, Stmt, Var, int32
from ...ir.facts import NOTHING, Facts
from ...language.memory import AllocLocal
from ...layout import Fragment
from ...machine import Machine
from ..analysis.thread_groups import Threads
from .tiles import FragmentTile, SharedTile


class Emitter:
    """One function on its way to the code of one thread.

    `facts` are what is known at the place that is being written, `threads` those that carry it out,
    and `tid` is the number of the thread among them.
    """

    def __init__(
        self,
        machine: Machine,
        threads: Threads,
        reserved: set[str],
        barriers: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        self.machine = machine
        # The number of each group's own barrier, by its first thread and their count.
        self.barriers: Mapping[tuple[int, int], int] = barriers or {}
        self.threads = threads
        self.facts: Facts = NOTHING
        # The names of sizes that a launch brings.
        self.sizes: frozenset[str] = frozenset()
        # Blocks of a cluster, and the number of this one there.
        self.cluster = 1
        self.rank: Expr = ZERO
        self.shared: dict[str, SharedTile] = {}
        self.fragments: dict[str, FragmentTile] = {}
        self._reserved = frozenset(reserved)
        # All names that are bound in scopes that are open, and the lists of each scope, outermost first.
        self._bound: set[str] = set()
        self._scopes: list[list[str]] = [[]]
        self._digits: dict[tuple[int, int], Expr] = {}
        self._uniform: dict[tuple[int, int], Expr] = {}
        self._prologue: list[Let] = []
        # What was issued under a token: registers that hold sums then, and what is left to do with them.
        self.issued: dict[str, dict[str, tuple[Region, list[Stmt]]]] = {}
        # The names of those registers by the groups of a token that were closed, the open one last.
        self._groups: dict[str, list[list[str]]] = {}
        # What the digits add to coordinates, by the fragment that asked.
        self._parts: dict[Fragment, list[Expr]] = {}
        self.tid = Var(self.name("tid"))
        self.facts = self.facts.with_range(self.tid.name, 0, threads.count - 1)

    # -- scopes and names
    @contextmanager
    def scope(self, opened: bool = True) -> Generator[None]:
        """The body of a loop or branch. Not `opened`: code that goes into the scope around it."""
        if not opened:
            yield
            return
        facts, digits = self.facts, self._digits_known
        self._scopes.append([])
        try:
            yield
        finally:
            self._bound.difference_update(self._scopes.pop())
            self.facts = self._with_digits(facts, digits)

    @contextmanager
    def statement(self) -> Generator[None]:
        """The code of one statement, whose own names nothing behind it uses: what is known of them goes.

        The names stay bound. With what is known of all statements before it each would take longer than
        the last.
        """
        facts, digits = self.facts, self._digits_known
        yield
        self.facts = self._with_digits(facts, digits)

    @property
    def _digits_known(self) -> int:
        return len(self._prologue)

    def _with_digits(self, facts: Facts, known: int) -> Facts:
        """The facts of a scope that is gone back to: digits of the thread number, bound at the head of the
        kernel, stay known."""
        return facts if known == self._digits_known else facts.with_ranges(self._digit_ranges)

    def name(self, base: str) -> str:
        """A name of ours, bound from here to the end of the scope."""
        return self._bind(self._free(base))

    def _free(self, base: str) -> str:
        name, number = base, 1
        while name in self._reserved or name in self._bound:
            number += 1
            name = f"{base}__{number}"
        return name

    def _bind(self, name: str) -> str:
        self._bound.add(name)
        self._scopes[-1].append(name)
        return name

    def rebind(self, statements: list[Stmt]) -> None:
        """Names of statements that stand in front of the scope they were made in, bound in this one."""
        for statement in statements:
            if isinstance(statement, AllocLocal):
                self._bind(statement.buffer.name)
            elif isinstance(statement, Let):
                self._bind(statement.var.name)

    def unbound(self, name: str) -> str:
        """The name, or the next spelling of it where something around is bound to it."""
        return self._free(name) if name in self._bound else name

    def coordinate(self, name: str) -> str:
        """A name that the kernel gave, or the next spelling of it where it is bound already."""
        return self._bind(self.unbound(name))

    def variable(self, base: str, count: int) -> Var:
        """A variable of ours over `count` steps from 0, bound like `name`."""
        variable = Var(self.name(base))
        self.facts = self.facts.with_range(variable.name, 0, max(count - 1, 0))
        return variable

    def leaf_variable(self, base: str, count: int) -> Var:
        """The variable of a loop that holds no other loop of this name: it stays free for the next one."""
        name = self._free(base)
        self.facts = self.facts.with_range(name, 0, max(count - 1, 0))
        return Var(name)

    def let(self, variable: Var, value: Expr) -> Let:
        """A `Let` that proofs see through when it is short."""
        self.facts = self.facts.with_let(variable, value)
        return Let(variable, value)

    def buffer(self, base: str, size: int, like: Buffer) -> Buffer:
        """An array of `size` registers with a name of ours and the dtype of `like`."""
        return Buffer(self.name(base), (size,), like.dtype, "local")

    # -- the thread's number
    @property
    def _digit_ranges(self) -> dict[str, tuple[int, int]]:
        return {
            let.var.name: self.facts.ranges[let.var.name]
            for let in self._prologue
            if let.var.name in self.facts.ranges
        }

    def digit(self, divisor: int, count: int) -> Expr:
        """`tid // divisor % count`, bound once at the head of what these threads do."""
        if count == 1:
            return Const(0)
        if divisor == 1 and count >= self.threads.count:
            return self.tid
        key = divisor, count
        bound = self._digits.get(key)
        if bound is None:
            value: Expr = self.tid // divisor
            if divisor * count < self.threads.count:
                value = value % count
            variable = Var(self._outermost(f"{self.tid.name}_{divisor}_{count}"))
            self._prologue.append(Let(variable, value))
            most = min(count, -(-self.threads.count // divisor)) - 1
            self.facts = self.facts.with_range(variable.name, 0, most)
            bound = self._digits[key] = variable
        return bound

    def uniform_digit(self, divisor: int, count: int) -> Expr:
        """`digit`, which is the same in a warp, as a number that the compiler below knows to be so."""
        digit, key = self.digit(divisor, count), (divisor, count)
        if isinstance(digit, Const):
            return digit
        if key not in self._uniform:
            variable = Var(self._outermost(f"{self.tid.name}_{divisor}"))
            self._prologue.append(Let(variable, Call("shfl", (digit, Const(0)), type=int32)))
            self.facts = self.facts.with_range(variable.name, 0, count - 1)
            self._uniform[key] = variable
        return self._uniform[key]

    def issue(self, token: str, sums: Region, after: list[Stmt]) -> None:
        """Note that something issued under a token fills registers; `after` is left to do behind the wait."""
        self.issued.setdefault(token, {})[sums.buffer.name] = (sums, after)
        self._groups.setdefault(token, [[]])[-1].append(sums.buffer.name)

    def close_group(self, token: str) -> None:
        """What was issued under a token since the last group is one."""
        self._groups.setdefault(token, [[]]).append([])

    def done_of(self, token: str, pending: int) -> list[Region]:
        """The registers that nothing fills any more when all groups but the youngest are complete."""
        closed = self._groups.get(token, [[]])[:-1]
        left = {name for group in closed[-pending:] for name in group}
        done = dict.fromkeys(name for group in closed[:-pending] for name in group)
        return [self.issued[token][name][0] for name in done if name not in left]

    def _outermost(self, base: str) -> str:
        """A name bound at the head of what the threads do, whatever scope is open now."""
        name = self._free(base)
        self._bound.add(name)
        self._scopes[0].append(name)
        return name

    @contextmanager
    def acting(self, threads: Threads, first: Expr) -> Generator[list[Let]]:
        """Code of a group of threads; gives the lets that belong at the head of it.

        `first` is the number, among the threads so far, of the group's first.
        """
        before = self.threads, self.tid, self._digits, self._prologue, self._parts, self._uniform
        number = self.tid - first
        head: list[Let] = []
        with self.scope():
            self.threads, self._digits, self._prologue, self._parts = threads, {}, head, {}
            self._uniform = {}
            if number is not self.tid:
                self.tid = Var(self.name("tid_in_group"))
                head.append(Let(self.tid, number))
            self.facts = self.facts.with_range(self.tid.name, 0, threads.count - 1)
            try:
                yield head
            finally:
                self.threads, self.tid, self._digits, self._prologue, self._parts, self._uniform = before

    @property
    def prologue(self) -> list[Let]:
        """The digits of the thread number, for the head of the kernel."""
        return list(self._prologue)

    # -- fragments
    def thread_part(self, fragment: Fragment) -> list[Expr]:
        """What the thread's digits add to the coordinate of each dimension."""
        if fragment not in self._parts:
            parts: list[Expr] = [Const(0) for _ in fragment.extents]
            for divisor, count, dim, step in fragment.thread_digits:
                if dim >= 0:
                    parts[dim] = parts[dim] + self.digit(divisor, count) * step
            self._parts[fragment] = parts
        return list(self._parts[fragment])

    def owner(self, fragment: Fragment) -> list[Expr]:
        """The conditions under which this thread owns what it holds: digits of replication are 0."""
        conditions = [
            self.digit(divisor, count).compare("==", 0)
            for divisor, count, dim, _ in fragment.thread_digits
            if dim < 0 and count > 1
        ]
        if fragment.threads < self.threads.count:
            conditions.append(self.tid.compare("<", fragment.threads))
        return conditions
