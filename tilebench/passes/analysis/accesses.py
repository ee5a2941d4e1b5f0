"""What a tile statement reads and writes in shared and global memory, as boxes, for the search of hazards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...ir import (
    Arith,
    Buffer,
    Expr,
    Load,
    LoopStmt,
    Node,
    OpStmt,
    Region,
    Stmt,
    Store,
    children,
    const_of,
    effects_of,
)
from ...ir.arith import linear
from ...ir.expr_walks import mentions, parts_of, replaced, seen
from ...ir.facts import NOTHING, Facts
from ...language.copy import Copy
from ...language.scopes import entered

MEMORY = ("shared", "global")


@dataclass(frozen=True)
class GroupOrder:
    """Of threads from `first` on: the kernel's own barriers that tell of an access, and those before it.

    While a body is gone through, `arrived` are those that they have come to since, by name and number, and
    those that others come to behind them; `met` says that the group itself knows of the access: it is others
    that may not. `fenced` is what instructions see that read shared memory by themselves.
    """

    first: int
    count: int
    told: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    arrived: frozenset[tuple[str, Expr]] = frozenset()
    met: bool = False
    fenced: bool = False

    def connected(self, other: GroupOrder) -> bool:
        """Whether other threads tell of one of two accesses at a barrier that the other is behind."""
        apart = self.first + self.count <= other.first or other.first + other.count <= self.first
        return apart and bool(self.told & other.after or other.told & self.after)

    def moved(self, values: Mapping[str, Expr]) -> GroupOrder:
        """The order as an earlier step of a loop had it."""
        if not self.arrived:
            return self
        return replace(self, arrived=frozenset((name, replaced(e, values)) for name, e in self.arrived))

    def without(self, name: str) -> GroupOrder:
        """The order behind the loop of `name`: which barrier it was of several is unknown."""
        if not self.arrived:
            return self
        return replace(self, arrived=frozenset((n, e) for n, e in self.arrived if not mentions(e, name)))

    def within(self, first: int, count: int) -> bool:
        """Whether all its threads are among others."""
        return first <= self.first and self.first + self.count <= first + count


@dataclass(frozen=True)
class Access:
    """A box of a buffer that is read or written. None in `start` is an unknown place in that dimension.

    Expressions hold loop variables and block indices; those of loops that have ended are forgotten.
    `order` is there in kernels that have barriers by hand.
    """

    buffer: Buffer
    write: bool
    start: tuple[Expr | None, ...]
    extent: tuple[int, ...]
    version: Expr | None = None
    known_version: bool = True
    order: GroupOrder | None = None

    def __hash__(self) -> int:
        # Kept: what is pending is gone through for each statement that follows.
        kept: int | None = self.__dict__.get("_hash")
        if kept is None:
            # With the order: a ring has the same box once for each of the steps since it was touched.
            kept = hash((self.buffer, self.write, self.start, self.extent, self.version, self.order))
            self.__dict__["_hash"] = kept
        return kept

    def ordered(self, order: GroupOrder | None) -> Access:
        """The access of a statement with that order."""
        return self if order is None else replace(self, order=order)

    def moved(self, values: Mapping[str, Expr]) -> Access:
        """The access as an earlier step of a loop made it."""
        start = tuple(None if each is None else replaced(each, values) for each in self.start)
        version = None if self.version is None else replaced(self.version, values)
        order = None if self.order is None else self.order.moved(values)
        return Access(self.buffer, self.write, start, self.extent, version, self.known_version, order)

    def anywhere(self) -> Access:
        """The access with its place forgotten: it may be all over the buffer."""
        rank = self.buffer.rank
        return Access(self.buffer, self.write, (None,) * rank, (1,) * rank, None, False, self.order)

    def without(self, name: str) -> Access:
        """The access after the loop of `name` has ended: what depends on the variable is unknown."""
        start = tuple(None if each is not None and mentions(each, name) else each for each in self.start)
        known = self.known_version and not (self.version is not None and mentions(self.version, name))
        version = self.version if known else None
        order = None if self.order is None else self.order.without(name)
        return Access(self.buffer, self.write, start, self.extent, version, known, order)

    def unsettled(self, names: frozenset[str]) -> Access:
        """The access where these buffers may change meanwhile: a place that is read from them is unknown."""
        if not names or not any(_loads(part, names) for part in (*self.start, self.version)):
            return self
        start = tuple(None if _loads(part, names) else part for part in self.start)
        known = self.known_version and not _loads(self.version, names)
        version = self.version if known else None
        return Access(self.buffer, self.write, start, self.extent, version, known, self.order)


def _loads(expr: Expr | None, names: frozenset[str]) -> bool:
    """Whether an expression reads one of these buffers."""
    if expr is None or not seen(expr).loads:
        return False
    if isinstance(expr, Load) and expr.buffer.name in names:
        return True
    return any(_loads(part, names) for part in parts_of(expr))


def _distance(a: Expr, b: Expr) -> int | None:
    """`a - b` when it is the same whatever the variables are."""
    x, y = const_of(a), const_of(b)
    if x is not None and y is not None:
        return x - y
    form = linear(a).plus(linear(b), -1)
    return None if form.terms else form.constant


def versions_differ(a: Expr, b: Expr) -> bool:
    """Whether two version expressions are proved to name different versions."""
    x, y = const_of(a), const_of(b)
    if x is not None and y is not None:
        return x != y
    if isinstance(a, Arith) and isinstance(b, Arith) and a.op == b.op == "%":
        n = const_of(a.args[1])
        if n and n == const_of(b.args[1]):
            distance = _distance(a.args[0], b.args[0])
            return distance is not None and distance % n != 0
    if any(isinstance(each, Arith) and each.op == "%" for each in (a, b)):
        return False
    # Without a remainder a version is the number itself.
    return _distance(a, b) not in (None, 0)


def same_number(a: Expr, b: Expr) -> bool:
    """Whether two numbers of a barrier are proved the same: equal, or remainders of a whole ring apart."""
    if _distance(a, b) == 0:
        return True
    x, y = linear(a), linear(b)
    if x.constant != y.constant or len(x.terms) != 1 or len(y.terms) != 1:
        return False
    (one, by), (two, other) = x.terms[0], y.terms[0]
    if by != other or not (isinstance(one, Arith) and isinstance(two, Arith) and one.op == two.op == "%"):
        return False
    n, distance = const_of(one.args[1]), _distance(one.args[0], two.args[0])
    return bool(n) and n == const_of(two.args[1]) and distance is not None and distance % n == 0


def apart(a: Access, b: Access) -> bool:
    """Whether two accesses of one buffer are proved to touch nothing in common."""
    if a.version is not None and b.version is not None and versions_differ(a.version, b.version):
        return True
    for x, y, nx, ny in zip(a.start, b.start, a.extent, b.extent, strict=True):
        if x is None or y is None:
            continue
        distance = _distance(x, y)
        if distance is None and nx == ny == 1 and versions_differ(x, y):
            return True
        if distance is not None and (distance >= ny or -distance >= nx):
            # Of two versions that may differ nothing follows, but the boxes are apart in each.
            return True
    return False


def reads_its_target(copy: Copy) -> bool:
    """Whether a copy may read elements of its buffer that it writes elsewhere in it."""
    src, dst = copy.src, copy.dst
    if src.buffer.name != dst.buffer.name:
        return False
    if (src.start, src.extent, src.version) == (dst.start, dst.extent, dst.version):
        return False  # each thread moves what it has to the place where it was
    return not apart(_of_region(src, False), _of_region(dst, True))


def _of_region(region: Region, write: bool) -> Access:
    # Of an unknown place the extent says nothing.
    extent = region.extent or (1,) * region.buffer.rank
    start = region.start if region.extent is not None else (None,) * region.buffer.rank
    return Access(region.buffer, write, start, extent, region.version)


def _of_element(
    buffer: Buffer, index: tuple[Expr, ...], version: Expr | None, write: bool, inner: Facts
) -> Access:
    """An element access under loops over the names of `inner`: the box that it sweeps."""
    start: list[Expr | None] = []
    extent: list[int] = []
    for position in index:
        form = linear(position)
        moving = [(t, c) for t, c in form.terms if any(mentions(t, name) for name in inner.ranges)]
        low = high = 0
        known = True
        for term, factor in moving:
            a, b = inner.bounds(term)
            known = known and abs(a) < 2**40 and abs(b) < 2**40
            low += factor * (a if factor > 0 else b)
            high += factor * (b if factor > 0 else a)
        rest = form
        for term, _ in moving:
            rest = rest.without(term)
        start.append(rest.expr() + low if known else None)
        extent.append(high - low + 1 if known else 1)
    moved = version is not None and any(mentions(version, name) for name in inner.ranges)
    return Access(buffer, write, tuple(start), tuple(extent), None if moved else version, not moved)


def accesses_of(stmt: Stmt, inner: Facts = NOTHING) -> list[Access]:
    """The reads, then the writes, of a statement that is one step between barriers.

    `inner` is what is known of the variables of loops that belong to the step.
    """
    if isinstance(stmt, OpStmt):
        return _of_operation(stmt, inner)
    if isinstance(stmt, LoopStmt):
        inner = entered(stmt, inner)
    accesses: list[Access] = []
    for part in children(stmt):
        accesses += accesses_of(part, inner) if isinstance(part, Stmt) else loads_of(part, inner)
    if isinstance(stmt, Store) and stmt.buffer.scope in MEMORY:
        accesses.append(_of_element(stmt.buffer, stmt.index, stmt.version, True, inner))
    return accesses


def _of_operation(stmt: OpStmt, inner: Facts) -> list[Access]:
    """Of an operation on tiles: its regions, and what the indices in them load."""
    accesses: list[Access] = []
    for effect in effects_of(stmt):
        # What is accumulated is written where it is read: one box says both.
        touched = effect.reads or effect.writes
        if touched and effect.region is not None and effect.buffer.scope in MEMORY:
            swept = _swept(effect.region, effect.writes, inner) if inner.ranges else None
            accesses.append(swept or _of_region(effect.region, effect.writes))
    for part in children(stmt):
        accesses += loads_of(part, inner)
    return sorted(accesses, key=lambda access: access.write)


def _swept(region: Region, write: bool, inner: Facts) -> Access | None:
    """The box that a region sweeps under loops over the names of `inner`."""
    if region.extent is None:
        return None
    first = _of_element(region.buffer, region.start, region.version, write, inner)
    extent = tuple(n + m - 1 for n, m in zip(first.extent, region.extent, strict=True))
    return Access(first.buffer, write, first.start, extent, first.version, first.known_version)


def loads_of(node: Node, inner: Facts = NOTHING) -> list[Access]:
    """The elements of memory that an expression or region reads."""
    loads: list[Access] = []
    stack: list[Node] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, Region):
            stack += part.start
        elif isinstance(part, Expr) and seen(part).loads:
            if isinstance(part, Load) and part.buffer.scope in MEMORY:
                loads.append(_of_element(part.buffer, part.index, part.version, False, inner))
            stack += parts_of(part)
    return loads
