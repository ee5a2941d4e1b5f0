"""What the lowering to one thread's code knows: names, ranges, digits of the thread number, buffers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import LayoutError
from ...ir import (
    Buffer,
    Const,
    Expr,
    Let,
    Node,
    Stmt,
    Var,
)
from ...ir.arith import Range, bounds
from ...language.structure import Serial, Unroll
from ...layout import Fragment, SharedLayout
from ...machine import Machine
from ..fast_exprs import replaced
from ..inline_indices import is_small
from ..names import fresh_name

MOST_REGISTERS = 1024


@dataclass(frozen=True)
class SharedTile:
    """A shared buffer flattened to one dimension: `layout` within a version, versions in a row."""

    flat: Buffer
    layout: SharedLayout


@dataclass(frozen=True)
class FragmentTile:
    """The registers of one thread that hold its part of a fragment."""

    local: Buffer
    layout: Fragment


@dataclass(frozen=True)
class Site:
    """Where an element is computed: the mapping, the names of its coordinates, the value digits.

    `digits[k]` is the expression of the k-th value digit of `map`, a loop variable or a constant.
    `shift` is (name, e): inside a vector the coordinate of that name is its base, the element `e` on.
    """

    map: Fragment | None = None
    vars: tuple[str, ...] = ()
    digits: tuple[Expr, ...] = ()
    shift: tuple[str, Expr] | None = None


NOWHERE = Site()


@dataclass
class Env:
    """One function on its way down. `lets` holds what names stand for, for proofs only.

    `opened` are coordinates bound without a loop around them.
    """

    machine: Machine
    threads: int
    names: set[str]
    tid: Var
    ranges: dict[str, Range] = field(default_factory=dict[str, "Range"])
    lets: dict[str, Expr] = field(default_factory=dict[str, Expr])
    shared: dict[str, SharedTile] = field(default_factory=dict[str, SharedTile])
    fragments: dict[str, FragmentTile] = field(default_factory=dict[str, FragmentTile])
    opened: set[str] = field(default_factory=set[str])
    prologue: list[Stmt] = field(default_factory=list[Stmt])
    _digits: dict[tuple[int, int], Expr] = field(default_factory=dict[tuple[int, int], Expr])
    _own: dict[str, str] = field(default_factory=dict[str, str])
    _used: set[str] = field(default_factory=set[str])
    _open: bool = False

    def name(self, base: str) -> str:
        """A name of ours that no name of the user's equals; the same base gives the same name."""
        found = self._own.get(base)
        if found is None:
            found = self._own[base] = fresh_name(base, self.names)
        return found

    def fresh(self, base: str) -> str:
        """A name of ours that nothing else has, not even another call with this base."""
        return fresh_name(base, self.names)

    def begin(self, *, open: bool) -> None:
        """Start the code of a tile statement; `open` when no loop of its own is a scope around it."""
        self._used, self._open = set(), open

    def scoped(self, base: str) -> str:
        """A name for what the code of one tile statement binds: short, and new where it must be."""
        found = self.fresh(base) if self._open else self.name(base)
        if found in self._used:
            found = self.fresh(base)
        self._used.add(found)
        return found

    def loop_var(self, base: str, count: int) -> Var:
        """A loop variable over `count` steps from 0; its name is shared by loops that do not nest."""
        made = Var(self.name(base))
        self.ranges[made.name] = (0, count - 1)
        return made

    def digit(self, divisor: int, count: int) -> Expr:
        """`tid // divisor % count`, bound once at the head of the kernel."""
        if count == 1:
            return Const(0)
        if divisor == 1 and count >= self.threads:
            return self.tid
        key = divisor, count
        found = self._digits.get(key)
        if found is None:
            value: Expr = self.tid // divisor
            if divisor * count < self.threads:
                value = value % count
            var = Var(self.fresh(f"tid_{divisor}_{count}"))
            self.prologue.append(Let(var, value))
            self.ranges[var.name] = (0, min(count, -(-self.threads // divisor)) - 1)
            found = self._digits[key] = var
        return found

    def resolved(self, expr: Expr) -> Expr:
        """The expression with let-bound names replaced by what they stand for."""
        return replaced(expr, self.lets) if self.lets else expr

    def bind(self, var: Var, value: Expr) -> Let:
        """A `Let` that proofs see through when it is short."""
        seen = self.resolved(value)
        if not var.type.is_float:
            self.ranges[var.name] = bounds(seen, self.ranges)
        if is_small(seen):
            self.lets[var.name] = seen
        return Let(var, value)

    def thread_part(self, fragment: Fragment) -> list[Expr]:
        """What the thread's digits add to the coordinate of each dimension."""
        out: list[Expr] = [Const(0) for _ in fragment.extents]
        for divisor, count, dim, step in fragment.thread_digits:
            if dim >= 0:
                out[dim] = out[dim] + self.digit(divisor, count) * step
        return out

    def owner(self, fragment: Fragment) -> list[Expr]:
        """The conditions under which this thread owns what it holds: digits of replication are 0."""
        out = [
            self.digit(divisor, count).compare("==", 0)
            for divisor, count, dim, _ in fragment.thread_digits
            if dim < 0 and count > 1
        ]
        if fragment.threads < self.threads:
            out.append(self.tid.compare("<", fragment.threads))
        return out


def written_out(total: int) -> type[Serial] | type[Unroll]:
    """The loop over `total` registers in all: written out, so that each is a register of its own.

    More than four times what a thread can have lie in local memory anyway; such loops stay rolled,
    or the compiler would take minutes for them.
    """
    return Unroll if total <= MOST_REGISTERS else Serial


def placed(body: list[Stmt], at: Node) -> list[Stmt]:
    """Statements, and those inside them, with the place of the node they were made from."""
    return [_place(each, at) for each in body]


def _place(stmt: Stmt, at: Node) -> Stmt:
    changes: dict[str, object] = {}
    for mark in stmt.marks:
        if mark.mark == "body":
            changes[mark.name] = tuple(_place(each, at) for each in getattr(stmt, mark.name))
    if stmt.place is None:
        changes["place"] = at.place
    return stmt.but(**changes) if changes else stmt


def missing_map(node: Node, word: str) -> LayoutError:
    return LayoutError(
        "T.{word} has no thread mapping", at=node.place, word=word,
        hint="the stage laid_out gives it one: map=T.Fragment(...)",
    )  # fmt: skip
