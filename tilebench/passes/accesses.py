"""What a tile statement reads and writes in shared and global memory, as boxes, for the search of hazards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir import (
    Arith,
    Buffer,
    Const,
    Expr,
    If,
    Load,
    LoopStmt,
    Node,
    OpStmt,
    Region,
    Stmt,
    Store,
    WithStmt,
    children,
    const_of,
    effects_of,
)
from ..ir.arith import Range, bounds, linear
from ..ir.expr_walks import mentions, parts_of, replaced
from ..language.structure import Parallel

MEMORY = ("shared", "global")


@dataclass(frozen=True)
class Access:
    """A box of a buffer that is read or written. None in `start` is an unknown place in that dimension.

    Expressions hold loop variables and block indices; those of loops that have ended are forgotten.
    """

    buffer: Buffer
    write: bool
    start: tuple[Expr | None, ...]
    extent: tuple[int, ...]
    version: Expr | None = None
    known_version: bool = True

    def moved(self, values: Mapping[str, Expr]) -> Access:
        """The access as an earlier step of a loop made it."""
        start = tuple(None if each is None else replaced(each, values) for each in self.start)
        version = None if self.version is None else replaced(self.version, values)
        return Access(self.buffer, self.write, start, self.extent, version, self.known_version)

    def without(self, name: str) -> Access:
        """The access after the loop of `name` has ended: what depends on the variable is unknown."""
        start = tuple(None if each is not None and mentions(each, name) else each for each in self.start)
        known = self.known_version and not (self.version is not None and mentions(self.version, name))
        return Access(self.buffer, self.write, start, self.extent, self.version if known else None, known)


def _distance(a: Expr, b: Expr) -> int | None:
    """`a - b` when it is the same whatever the variables are."""
    form = linear(a - b)
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


def apart(a: Access, b: Access) -> bool:
    """Whether two accesses of one buffer are proved to touch nothing in common."""
    if a.version is not None and b.version is not None and versions_differ(a.version, b.version):
        return True
    for x, y, nx, ny in zip(a.start, b.start, a.extent, b.extent, strict=True):
        if x is None or y is None:
            continue
        distance = _distance(x, y)
        if distance is not None and (distance >= ny or -distance >= nx):
            # Of two versions that may differ nothing follows, but the boxes are apart in each.
            return True
    return False


def _of_region(region: Region, write: bool) -> Access:
    # Of an unknown place the extent says nothing.
    extent = region.extent or (1,) * region.buffer.rank
    start = region.start if region.extent is not None else (None,) * region.buffer.rank
    return Access(region.buffer, write, start, extent, region.version)


def _of_element(
    buffer: Buffer, index: tuple[Expr, ...], version: Expr | None, write: bool, inner: Mapping[str, Range]
) -> Access:
    """An element access under loops over `inner`: the box that it sweeps."""
    start: list[Expr | None] = []
    extent: list[int] = []
    for position in index:
        form = linear(position)
        moving = [(t, c) for t, c in form.terms if any(mentions(t, name) for name in inner)]
        low = high = 0
        known = True
        for term, factor in moving:
            a, b = bounds(term, inner)
            known = known and abs(a) < 2**40 and abs(b) < 2**40
            low += factor * (a if factor > 0 else b)
            high += factor * (b if factor > 0 else a)
        rest = form
        for term, _ in moving:
            rest = rest.without(term)
        start.append(rest.expr() + low if known else None)
        extent.append(high - low + 1 if known else 1)
    moved = version is not None and any(mentions(version, name) for name in inner)
    return Access(buffer, write, tuple(start), tuple(extent), None if moved else version, not moved)


def accesses_of(stmt: Stmt, inner: Mapping[str, Range] | None = None) -> list[Access]:
    """The reads, then the writes, of a statement that is one step between barriers."""
    ranges: dict[str, Range] = dict(inner or {})
    accesses: list[Access] = []
    if isinstance(stmt, OpStmt):
        for effect in effects_of(stmt):
            # What is accumulated is written where it is read: one box says both.
            touched = effect.reads or effect.writes
            if touched and effect.region is not None and effect.buffer.scope in MEMORY:
                accesses.append(_of_region(effect.region, effect.writes))
        for part in children(stmt):
            accesses += loads_of(part, ranges)
        return sorted(accesses, key=lambda access: access.write)
    if isinstance(stmt, Parallel):
        for var, extent in zip(stmt.vars, stmt.extents, strict=True):
            ranges[var.name] = (0, extent - 1)
        return [access for part in stmt.body for access in accesses_of(part, ranges)]
    if isinstance(stmt, LoopStmt):
        ranges[stmt.vars[0].name] = _loop_range(stmt, ranges)
        for part in children(stmt):
            accesses += accesses_of(part, ranges) if isinstance(part, Stmt) else loads_of(part, ranges)
        return accesses
    if isinstance(stmt, WithStmt):
        return [access for part in stmt.body for access in accesses_of(part, ranges)]
    if isinstance(stmt, If):
        accesses += loads_of(stmt.condition, ranges)
        return accesses + [
            access for part in (*stmt.then, *stmt.orelse) for access in accesses_of(part, ranges)
        ]
    for part in children(stmt):
        accesses += loads_of(part, ranges)
    if isinstance(stmt, Store) and stmt.buffer.scope in MEMORY:
        accesses.append(_of_element(stmt.buffer, stmt.index, stmt.version, True, ranges))
    return accesses


def _loop_range(stmt: LoopStmt, ranges: Mapping[str, Range]) -> Range:
    start: Expr = getattr(stmt, "start", Const(0))
    stop = getattr(stmt, "stop", None)
    if stop is None:
        return 0, getattr(stmt, "extent", 1) - 1
    return bounds(start, ranges)[0], bounds(stop, ranges)[1] - 1


def loads_of(node: Node, ranges: Mapping[str, Range]) -> list[Access]:
    loads: list[Access] = []
    stack: list[Node] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, Region):
            stack += part.start
        elif isinstance(part, Expr):
            if isinstance(part, Load) and part.buffer.scope in MEMORY:
                loads.append(_of_element(part.buffer, part.index, part.version, False, ranges))
            stack += parts_of(part)
    return loads
