"""What a kernel prints and asserts, written as stores to arrays that each call brings along.

A block has a row of an array of integers, and one of floats for values that are: at its first place how far
it has got, then a record for each time that a print was reached: which print, how many values, the values.
The block's threads count along in a variable of their own, so no two blocks wait for each other. What does
not fit is not stored, as nothing outside an array is. An assertion that fails leaves where in one number, the
first of all by an atomic maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ...errors import LanguageError
from ...ir import (
    Buffer,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    int32,
    lift,
    walk,
)
from ...ir.dtypes import float64, int64
from ...ir.names import Names
from ...ir.node import BODY
from ...ir.stmt import LoopStmt
from ..grid_barriers import SyncGrid
from ..memory import AllocVar
from ..printing import DeviceAssert, Print, Saying, as_written
from ..structure import KernelLaunch, Parallel, Serial, ThreadGroup, Unroll, Vectorized
from ..threads.differing import Differing, heads
from ..tracing.arithmetic import logical_not
from ..tracing.builder import Builder
from ..tracing.promote import convert

# Numbers that one call keeps, blocks that have a row, and the least and most that a row holds.
_NUMBERS, _MOST_ROWS, _LEAST, _MOST = 1 << 21, 2048, 2048, 1 << 16
# What a failed assertion leaves is this less its block and iteration, so that the first is the most.
FIRST = 1 << 62
ITERATIONS = 1 << 32


_Loops = tuple[tuple[Var, Expr, Expr | int], ...]


@dataclass(frozen=True)
class Rows:
    """The two arrays of what one launch, or a group of its threads, prints."""

    integers: Buffer
    floats: Buffer
    grid: tuple[int | Expr, ...]


@dataclass(frozen=True)
class Speech:
    """What a kernel says when it runs: where it leaves that, and what the numbers mean."""

    sites: tuple[Saying, ...]
    rows: tuple[Rows, ...]
    failed: Buffer | None
    clocks: Buffer | None = None

    @property
    def arrays(self) -> tuple[Buffer, ...]:
        """The arrays that each call brings along, the last parameters of the kernel."""
        pairs = [array for rows in self.rows for array in (rows.integers, rows.floats)]
        return (*pairs, *[each for each in (self.failed, self.clocks) if each is not None])


@dataclass
class _Group:
    """Threads that print together: their rows, and the variable that says how far theirs has got."""

    launch: KernelLaunch
    rows: Rows
    place: Buffer


@dataclass
class _Nest:
    """Loops of T.Parallel and those inside, whose iterations are told apart; what stands in front of them."""

    before: list[Stmt] = field(default_factory=list[Stmt])
    loops: _Loops = ()


def with_rows(function: Function, builder: Builder) -> tuple[Function, Speech]:
    """The kernel with its prints and assertions as stores, and what they mean.

    Raises `LanguageError` for a print whose iterations cannot be told apart.
    """
    said = sum(isinstance(each, (Print, DeviceAssert)) for each in walk(function))
    writer = _Writer(Names(function), said, builder)
    body = writer.body(function.body, None, None)
    printed = writer.printed()
    return function.but(body=body, params=(*function.params, *printed.arrays)), printed


class _Writer:
    def __init__(self, names: Names, count: int, builder: Builder) -> None:
        self.names = names
        self.builder = builder
        # In a kernel of single threads: their numbers, and what differs from one to another.
        self.threads: _Loops = ()
        self.differing: Differing | None = None
        self.count = count
        self.sites: list[Saying] = []
        self.rows: list[Rows] = []
        self.failed: Buffer | None = None
        self.launch: KernelLaunch | None = None
        # The variables of each launch's groups.
        self.places: list[Buffer] = []

    def printed(self) -> Speech:
        return Speech(tuple(self.sites), tuple(self.rows), self.failed)

    # -- the tree
    def body(
        self, statements: tuple[Stmt, ...], nest: _Nest | None, group: list[_Group] | None
    ) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for statement in statements:
            if nest is None and self.differs(statement):
                # From here on each thread has something of its own to say.
                inner = _Nest(loops=self.threads)
                own = self.body((statement,), inner, group)
                out += [*inner.before, *own]
                continue
            match statement:
                case Print():
                    out += self.print(statement, nest, group)
                case DeviceAssert():
                    out.append(self.assertion(statement, nest))
                case KernelLaunch():
                    out.append(self.launched(statement))
                case Parallel():
                    inner = nest or _Nest()
                    loops = tuple(
                        zip(statement.vars, (lift(0),) * len(statement.vars), statement.extents, strict=True)
                    )
                    loop = self.looped(statement, inner, loops, group)
                    out += [*inner.before, loop] if nest is None else [loop]
                case LoopStmt() if nest is not None:
                    out.append(self.looped(statement, nest, _counted(statement), group))
                case ThreadGroup():
                    out.append(self.inside(statement, nest, []))
                case _:
                    out.append(self.inside(statement, nest, group))
        return tuple(out)

    def inside(self, statement: Stmt, nest: _Nest | None, group: list[_Group] | None) -> Stmt:
        bodies = [mark.name for mark in type(statement).marks if mark.mark == BODY]
        return (
            statement.but(**{name: self.body(getattr(statement, name), nest, group) for name in bodies})
            if bodies
            else statement
        )

    def differs(self, statement: Stmt) -> bool:
        """Whether what a statement says, or whether it is reached, differs from thread to thread."""
        if self.differing is None or isinstance(statement, (Parallel, ThreadGroup)):
            return False
        said = isinstance(statement, (Print, DeviceAssert, If, LoopStmt))
        return said and any(map(self.differing, heads(statement))) and _speaks(statement)

    def launched(self, launch: KernelLaunch) -> Stmt:
        self.launch, self.threads, self.differing = launch, (), None
        names = {part.name for part in walk(launch) if isinstance(part, Var)}
        for block in self.builder.blocks:
            if any(var.name in names for var in block.numbers.values()):
                numbers = block.coordinates(self.builder)
                starts = (lift(0),) * len(numbers)
                self.threads = tuple(zip(numbers, starts, block.extents, strict=True))
                self.differing = Differing(launch.body, [var.name for var in numbers], list(block.kept))
        # Behind a barrier of the grid a launch of its own begins, whose blocks have rows of their own.
        barriers = [k for k, part in enumerate(launch.body) if isinstance(part, SyncGrid)]
        out: list[Stmt] = []
        for start, end in pairwise((0, *barriers, len(launch.body))):
            self.places = []
            body = self.body(launch.body[start:end], None, [])
            first = [AllocVar(place, init=Const(1), place=launch.place) for place in self.places]
            barriers_first = 1 if start in barriers else 0
            out += [*body[:barriers_first], *first, *body[barriers_first:]]
        return launch.but(body=tuple(out))

    def looped(
        self,
        loop: Stmt,
        nest: _Nest,
        loops: _Loops,
        group: list[_Group] | None,
    ) -> Stmt:
        around = nest.loops
        nest.loops = (*around, *loops)
        out = self.inside(loop, nest, group)
        nest.loops = around
        return out

    # -- prints
    def group(self, known: list[_Group] | None) -> _Group:
        """The rows of the threads that print here, made when they first do."""
        launch = self.launch
        assert launch is not None  # a print stands in a kernel
        assert known is not None
        if not known:
            blocks = [count for count in launch.grid if isinstance(count, int)]
            count = math.prod(blocks) if len(blocks) == len(launch.grid) else _MOST_ROWS
            rows = max(1, min(count, _MOST_ROWS))
            width = max(_LEAST, min(_MOST, _NUMBERS // rows))
            integers = Buffer(self.names.fresh("printed"), (rows, width), int64)
            floats = Buffer(self.names.fresh("printed_floats"), (rows, width), float64)
            place = Buffer(self.names.fresh("print_place"), (), int32, "var")
            known.append(_Group(launch, Rows(integers, floats, launch.grid), place))
            self.rows.append(known[0].rows)
            self.places.append(place)
        return known[0]

    def site(self, site: Saying, nest: _Nest | None) -> int:
        loops = () if nest is None else nest.loops
        counts = tuple(count for _, _, count in loops if isinstance(count, int))
        if len(counts) == len(loops):
            starts = tuple(const_of(start) or 0 for _, start, _ in loops)
            names = tuple(as_written(var.name) for var, _, _ in loops)
            site = replace(site, loops=names, counts=counts, starts=starts)
        assert self.launch is not None  # it stands in a kernel
        self.sites.append(replace(site, grid=self.launch.grid))
        return len(self.sites)

    def print(self, said: Print, nest: _Nest | None, known: list[_Group] | None) -> list[Stmt]:
        group, number = self.group(known), self.site(said.site, nest)
        if nest is not None:
            return self.in_each(said, nest, group, number)
        if said.region is None:
            count = 0 if said.value is None else 1
            out = self.head(group, number, count, said)
            start = Load(group.place, ())
            if said.value is not None:
                out.insert(2, _keep(group, start + 2, said.value, said))
            return out
        extent = said.region.extent or said.region.buffer.extents
        out = self.head(group, number, math.prod(extent), said)
        if math.prod(extent):
            out.insert(2, self.tile(group, said.region, extent, said))
        return out

    def head(self, group: _Group, number: int, count: int, said: Print, per_value: int = 1) -> list[Stmt]:
        """The head of a record, and the step past it and its values."""
        integers, row, start = group.rows.integers, _row(group.launch), Load(group.place, ())
        end = start + (2 + per_value * count)
        parts: list[tuple[Buffer, tuple[Expr, ...], Expr]] = [
            (integers, (row, start), Const(number, type=int64)),
            (integers, (row, start + 1), Const(count, type=int64)),
            (group.place, (), end),
            (integers, (row, lift(0)), convert(start, int64)),
        ]
        return [Store(buffer, index, value, place=said.place) for buffer, index, value in parts]

    def tile(self, group: _Group, region: Region, extent: tuple[int, ...], said: Print) -> Stmt:
        names = tuple(Var(self.names.fresh(f"i{axis}")) for axis in range(len(extent)))
        index = tuple(
            start + name for start, name in zip(region.start or (lift(0),) * len(names), names, strict=True)
        )
        flat = _flat(tuple(zip(names, (lift(0),) * len(names), extent, strict=True)))
        kept = _keep(
            group, Load(group.place, ()) + 2 + flat, Load(region.buffer, index, place=said.place), said
        )
        if region.buffer.scope != "local":
            return Parallel(extent, names, (kept,), place=said.place)
        for name, count in zip(reversed(names), reversed(extent), strict=True):
            kept = Serial(lift(count), (name,), (kept,), place=said.place)
        return kept

    def in_each(self, said: Print, nest: _Nest, group: _Group, number: int) -> list[Stmt]:
        """A value of each iteration: whether it was reached, and what it is."""
        counts = [count for _, _, count in nest.loops if isinstance(count, int)]
        if len(counts) != len(nest.loops):
            raise LanguageError(
                "T.print stands in a loop inside T.Parallel whose number of iterations is not known",
                at=said.place,
                hint="print the tile after the loop, T.print(S), or store what is to be printed",
            )  # fmt: skip
        if said.region is not None:
            return self.each_element(said, said.region, nest, group)
        start = Var(self.names.fresh("print_start"))
        nest.before.append(Let(start, Load(group.place, ()), place=said.place))
        nest.before += self.head(group, number, math.prod(counts), said, per_value=2)
        here = start + 2 + _flat(nest.loops) * 2
        row, integers = _row(group.launch), group.rows.integers
        out: list[Stmt] = [Store(integers, (row, here), Const(1, type=int64), place=said.place)]
        if said.value is not None:
            out.append(_keep(group, here + 1, said.value, said))
        return out

    def each_element(self, said: Print, region: Region, nest: _Nest, group: _Group) -> list[Stmt]:
        """A thread's own array, element by element."""
        if region.buffer.scope != "local":
            raise LanguageError(
                "T.print of a tile stands under a condition on the number of a thread", at=said.place,
                hint="print it outside: a tile is printed once, by the block",
            )  # fmt: skip
        extent = region.extent or region.buffer.extents
        names = tuple(Var(self.names.fresh(f"i{axis}")) for axis in range(len(extent)))
        starts = region.start or (lift(0),) * len(names)
        index = tuple(start + name for start, name in zip(starts, names, strict=True))
        value = Load(region.buffer, index, place=said.place)
        self.sites.pop()  # it is one of more loops
        loops: _Loops = tuple(zip(names, (lift(0),) * len(names), extent, strict=True))
        inner = _Nest(nest.before, (*nest.loops, *loops))
        inside = Print(value=value, site=said.site, place=said.place)
        body = tuple(self.in_each(inside, inner, group, self.site(said.site, inner)))
        for name, count in zip(reversed(names), reversed(extent), strict=True):
            body = (Serial(lift(count), (name,), body, place=said.place),)
        return list(body)

    # -- assertions
    def assertion(self, said: DeviceAssert, nest: _Nest | None) -> Stmt:
        if self.failed is None:
            self.failed = Buffer(self.names.fresh("failed"), (self.count,), int64)
        number = self.site(said.site, nest) - 1
        loops = () if nest is None else nest.loops
        known = all(isinstance(count, int) for _, _, count in loops)
        flat = convert(_flat(loops), int64) if loops and known else Const(0, type=int64)
        assert self.launch is not None  # it stands in a kernel
        where = convert(_row(self.launch), int64) * Const(ITERATIONS, type=int64) + flat
        value = Const(FIRST, type=int64) - where
        store = Store(self.failed, (lift(number),), value, atomic="max", place=said.place)
        return If(logical_not(said.condition), (store,), (), place=said.place)


def _speaks(statement: Stmt) -> bool:
    return any(isinstance(inner, (Print, DeviceAssert)) for inner in walk(statement))


def _counted(loop: Stmt) -> _Loops:
    """The variables of a loop inside T.Parallel, with where they start and how many values they have."""
    match loop:
        case Vectorized():
            return ((loop.vars[0], lift(0), loop.extent),)
        case Serial() | Unroll() if loop.step == lift(1):
            count = loop.stop - loop.start
            return ((loop.vars[0], loop.start, count.value if isinstance(count, Const) else count),)  # type: ignore[arg-type]
        case _:
            return ((Var("?"), lift(0), lift(0) + Var("?")),)


def _row(launch: KernelLaunch) -> Expr:
    """The number of a block, x fastest."""
    row: Expr = lift(0)
    for var, count in reversed(list(zip(launch.vars, launch.grid, strict=True))):
        row = row * lift(count) + var
    return row


def _flat(loops: _Loops) -> Expr:
    """The number of an iteration, the last variable fastest."""
    flat: Expr = lift(0)
    for var, start, count in loops:
        flat = flat * lift(count) + (var - start)
    return flat


def _keep(group: _Group, place: Expr, value: Expr, said: Print) -> Stmt:
    """Store a value where its kind has its row."""
    buffer, dtype = (group.rows.floats, float64) if value.dtype.is_float else (group.rows.integers, int64)
    return Store(buffer, (_row(group.launch), place), convert(value, dtype), place=said.place)
