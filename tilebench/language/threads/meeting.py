"""Whether two threads may touch one element, so that they have to meet between two accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ir import Arith, Buffer, Const, Expr, If, Let, Load, LoopStmt, Stmt, Store, Var, const_of, walk
from ...ir.arith import Linear, linear
from ...ir.effects import effects_of
from ...ir.expr_walks import replaced
from ...ir.facts import MOST_NODES, conjuncts
from ...ir.stmt import statements
from ..extern import ExternCall
from ..structure import Vectorized
from .differing import heads, pure

Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class SharedTouch:
    """An access to memory that threads share. `how` is `read`, `write` or the name of an atomic's sum."""

    buffer: Buffer
    index: tuple[Expr, ...]
    how: str


class Touches:
    """What runs of statements touch. `extents` are those of the threads' numbers, by name."""

    def __init__(self, extents: Mapping[str, int], kept: Mapping[str, Buffer]) -> None:
        self.extents = extents
        self.kept = kept
        # Integers with a name, written out; names of loops with their values, and names that memory decides.
        self.short: dict[str, Expr] = {}
        self.ranges: Ranges = {}
        self.loose: set[str] = set()

    def note(self, statement: Stmt) -> None:
        """Learn the names that a statement and those inside bind."""
        for inner in statements((statement,)):
            if isinstance(inner, Let):
                value = replaced(inner.value, self.short)
                if pure(value) and len(walk(value)) <= MOST_NODES:
                    self.short[inner.var.name] = value
                else:
                    self.loose.add(inner.var.name)
            elif isinstance(inner, LoopStmt):
                for var in inner.vars:
                    found = _values_of(inner)
                    if found is None:
                        self.loose.add(var.name)
                    else:
                        self.ranges[var.name] = found

    def of(self, statement: Stmt) -> list[SharedTouch]:
        """The accesses of a simple statement."""
        found = [
            self._touch(load, "read")
            for part in heads(statement)
            for load in walk(part)
            if isinstance(load, Load) and self.shared(load.buffer)
        ]
        if isinstance(statement, ExternCall):
            found += self._behind_pointers(statement)
        if isinstance(statement, Store) and self.shared(statement.buffer):
            found.append(self._touch(statement, statement.atomic or "write"))
        return found

    def _behind_pointers(self, call: ExternCall) -> list[SharedTouch]:
        """What a function may touch: the elements of a box are those of a loop over it."""
        found: list[SharedTouch] = []
        for effect in effects_of(call):
            region = effect.region
            if region is None or not self.shared(region.buffer):
                continue
            index: list[Expr] = []
            for axis, (start, extent) in enumerate(zip(region.start, region.extent or (), strict=True)):
                inner = Var(f"element {axis} of {extent}")  # no name of a kernel
                self.ranges[inner.name] = (0, extent - 1)
                index.append(replaced(start, self.short) + (inner if extent > 1 else 0))
            found.append(SharedTouch(region.buffer, tuple(index), "write" if effect.writes else "read"))
        return found

    def shared(self, buffer: Buffer) -> bool:
        """Whether threads meet in a buffer; a tile with a row for each is read by others in exchanges."""
        return buffer.scope in ("shared", "global") or buffer.name in self.kept

    def _touch(self, access: Load | Store, how: str) -> SharedTouch:
        return SharedTouch(access.buffer, tuple(replaced(part, self.short) for part in access.index), how)

    def clash(self, old: Sequence[SharedTouch], new: Sequence[SharedTouch]) -> str | None:
        """The buffer for which threads have to meet between accesses; None where there is none."""
        for a in old:
            for b in new:
                if a.buffer.name == b.buffer.name and a.how != b.how and not self.apart(a, b):
                    return a.buffer.name
                if a.how == b.how == "write" and a.buffer.name == b.buffer.name and not self.apart(a, b):
                    return a.buffer.name
        return None

    def inside(self, statement: Stmt) -> str | None:
        """The buffer for which threads would have to meet within a statement."""
        if not isinstance(statement, (If, LoopStmt)) or self.one_thread(statement):
            return None
        parts = [self.of(inner) for inner in statements((statement,))]
        for k, part in enumerate(parts):
            for other in parts[k + 1 :]:
                name = self.clash(part, other)
                if name is not None:
                    return name
        return None

    def one_thread(self, statement: Stmt) -> bool:
        """Whether a branch is one of a single thread: everything in it is in order."""
        if not isinstance(statement, If) or statement.orelse:
            return False
        tests = conjuncts(replaced(statement.condition, self.short))
        fixed: set[str] = set()
        for part in tests:
            if isinstance(part, Arith) and part.op == "==" and isinstance(part.args[0], Var):
                fixed |= set() if self._moves(part.args[1]) else {part.args[0].name}
        return all(name in fixed for name, extent in self.extents.items() if extent > 1)

    def _moves(self, expr: Expr) -> bool:
        names = self.extents.keys() | self.loose | self.ranges.keys()
        return any(
            isinstance(part, Load) or (isinstance(part, Var) and part.name in names) for part in walk(expr)
        )

    def apart(self, a: SharedTouch, b: SharedTouch) -> bool:
        """Whether two threads never touch one element, whatever their inner loops count."""
        covered: set[str] = set()
        for x, y in zip(a.index, b.index, strict=True):
            covered |= self._covered(linear(x), linear(y))
        return all(name in covered for name, extent in self.extents.items() if extent > 1)

    def _covered(self, x: Linear, y: Linear) -> set[str]:
        """The threads' numbers that two positions of an index tell apart."""
        moved: dict[str, int] = {}
        for name in self.extents:
            factor = x.coefficient(Var(name))
            if factor != y.coefficient(Var(name)):
                return set()
            if factor:
                moved[name] = abs(factor)
            x, y = x.without(Var(name)), y.without(Var(name))
        one, two = self._rest(x), self._rest(y)
        if one is None or two is None or one[0] != two[0]:
            return set()
        reach = max(one[2], two[2]) - min(one[1], two[1])
        for name in sorted(moved, key=lambda name: moved[name]):
            if moved[name] <= reach:
                return set()
            reach += moved[name] * (self.extents[name] - 1)
        return set(moved)

    def _rest(self, form: Linear) -> tuple[dict[Expr, int], int, int] | None:
        """What is the same in all threads, and the least and the most that inner loops add to it."""
        same: dict[Expr, int] = {}
        least = most = form.constant
        for term, factor in form.terms:
            if isinstance(term, Var) and term.name in self.ranges:
                ends = [factor * end for end in self.ranges[term.name]]
                least, most = least + min(ends), most + max(ends)
            elif self._moves(term):
                return None
            else:
                same[term] = factor
        return same, least, most


def _values_of(loop: LoopStmt) -> tuple[int, int] | None:
    """The least and greatest value of a loop's variable, where they are known."""
    if isinstance(loop, Vectorized):
        return 0, loop.extent - 1
    start, stop = (const_of(getattr(loop, end, Const(0))) for end in ("start", "stop"))
    return None if start is None or stop is None else (start, max(start, stop - 1))
