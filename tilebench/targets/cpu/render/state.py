"""What is known while a function of the `loops` stage becomes LLVM: names, vectors, masks, addresses."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ....ir import Arith, Buffer, Call, Cast, Const, Expr, Load, Node, Var, children, walk
from ....ir.arith import INFINITE, linear
from ....ir.facts import NOTHING, Facts
from ..llvm import Function, Value, const, const_lanes, i64, lanes_of, vector
from ..loops.words import ColumnPanels, PaddedRows
from ..numbers.convert import STORAGE


@dataclass(frozen=True)
class Lanes:
    """The open loop over vectors: lane l has index `base + ahead + l`, `base` a multiple of `multiple`.

    Where not all lanes need be inside, the first `left` of them are (an i64, perhaps more than there are),
    and `inside` is the mask of those.
    """

    name: str
    base: Value
    count: int
    ahead: int = 0
    multiple: int = 1
    left: Value | None = None
    inside: Value | None = None


@dataclass(frozen=True)
class Address:
    """Elements from a pointer: `offset`, plus `step` a lane, plus a vector of further offsets."""

    pointer: Value
    offset: Value
    step: int = 0
    further: Value | None = None

    @property
    def varies(self) -> bool:
        return self.step != 0 or self.further is not None

    @property
    def backwards(self) -> bool:
        """Whether each lane's element stands right in front of the lane's before."""
        return self.step == -1 and self.further is None

    def turned(self, f: Function, lanes: int) -> Address:
        """The same elements, counted from the last lane's on."""
        return replace(self, offset=f.sub(self.offset, lanes - 1), step=1)


class Integers(Protocol):
    """Integer expressions as values: one for all lanes, the same without wrapping, and one a lane."""

    def index(self, expr: Expr) -> Value: ...
    def size(self, expr: Expr) -> Value: ...
    def value(self, expr: Expr) -> Value: ...


@dataclass
class State:
    """One function on its way into LLVM. `lazy` says that no lane of the mask need be set."""

    f: Function
    pointers: dict[str, Value] = field(default_factory=dict[str, Value])
    layouts: dict[str, PaddedRows | ColumnPanels] = field(default_factory=dict[str, Any])
    # Variables: an i64 for those that count, else the value in its compute type (perhaps a vector).
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    facts: Facts = NOTHING
    counters: set[str] = field(default_factory=set[str])
    varying: set[str] = field(default_factory=set[str])
    lanes: Lanes | None = None
    mask: Value | None = None
    lazy: bool = False
    # What is in the lanes already: loaded in front of the open loop, or stored in this turn (with its mask).
    fixed: dict[tuple[Any, ...], Value] = field(default_factory=dict[Any, Any])
    stored: dict[tuple[Any, ...], tuple[Value, Value | None]] = field(default_factory=dict[Any, Any])

    # What is known of expressions under these facts: `never_wraps` is asked of each part of each part.
    exact: tuple[Facts, dict[Expr, bool]] = field(default_factory=lambda: (NOTHING, {}))

    @property
    def count(self) -> int:
        """Lanes of the open loop over vectors; 1 outside."""
        return self.lanes.count if self.lanes else 1

    @contextmanager
    def under(self, mask: Value) -> Generator[None]:
        """What is written inside happens in the lanes of a mask, perhaps in none."""
        outer = self.mask, self.lazy
        self.mask, self.lazy = mask, True
        try:
            yield
        finally:
            self.mask, self.lazy = outer

    @contextmanager
    def in_lanes(self, lanes: Lanes, mask: Value | None) -> Generator[None]:
        """What is written inside happens in all of these lanes, or in those of a mask that has some."""
        outer = self.lanes, self.mask, self.lazy
        self.lanes, self.mask, self.lazy = lanes, mask, False
        try:
            yield
        finally:
            self.lanes, self.mask, self.lazy = outer

    def varies(self, expr: Node) -> bool:
        """Whether the value differs from lane to lane."""
        if self.lanes is None or self.lanes.count == 1:
            return False
        names = {self.lanes.name, *self.varying}
        return any(isinstance(node, Var) and node.name in names for node in walk(expr))

    def forget(self, name: str) -> None:
        """A store into a buffer: what the lanes have of it, or by an index read from it, is old."""
        old = [key for key in self.stored if key[0] == name or any(_reads(part, name) for part in key[1])]
        for key in old:
            del self.stored[key]

    def lane_value(self) -> Value:
        """The variable of the open vector loop, as an i64 (its first lane)."""
        assert self.lanes is not None
        return self.f.add(self.lanes.base, self.lanes.ahead)

    def wide(self, a: Value) -> Value:
        """A scalar as a vector of the open loop; a vector as it is."""
        return self.f.splat(a, self.count) if lanes_of(a.type) != self.count else a

    def alike(self, *values: Value) -> list[Value]:
        """All as vectors when one of them is."""
        if all(lanes_of(value.type) == 1 for value in values):
            return list(values)
        return [self.wide(value) for value in values]

    def iota(self, type_: str) -> Value:
        """The numbers of the lanes."""
        return const_lanes(range(self.count), type_)

    # -- addresses
    def address(self, buffer: Buffer, index: tuple[Expr, ...], integers: Integers) -> Address:
        """Where an element lies."""
        pointer = self.pointers[buffer.name]
        layout = self.layouts.get(buffer.name)
        if isinstance(layout, ColumnPanels):
            return self.in_panels(pointer, layout, index, integers)
        f, along, step, further = self.f, i64(0), 0, None
        moving = [self.varies(part) for part in index]
        for part, stride, moves in zip(index, self.strides(buffer), moving, strict=True):
            if not moves:
                continue
            assert self.lanes is not None
            form, by = linear(part), _size(stride, integers)
            var = Var(self.lanes.name)
            factor, rest = form.coefficient(var), form.without(var)
            strange = any(self.varies(term) for term, _ in rest.terms)
            if strange or not self.never_wraps(Arith("*", (var, Const(factor)))):
                lanes = f.cast("sext", self.wide(integers.value(part)), vector("i64", self.count))
                lanes = f.mul(lanes, self.wide(by))
                further = lanes if further is None else f.add(further, lanes)
                continue
            start = f.add(integers.index(rest.expr()), f.mul(self.lane_value(), factor))
            along = f.add(along, f.mul(start, by))
            if isinstance(stride, int):
                step += factor * stride
                continue
            # A stride known only at the launch: each lane by itself.
            lanes = f.mul(self.iota("i64"), self.wide(f.mul(by, factor)))
            further = lanes if further is None else f.add(further, lanes)
        if any(moving) and buffer.dtype.per_byte == 1:
            return Address(self.row(buffer, index, moving, integers), along, step, further)
        return Address(pointer, f.add(self.before(buffer, index, moving, integers), along), step, further)

    def before(
        self, buffer: Buffer, index: tuple[Expr, ...], moving: Sequence[bool], integers: Integers
    ) -> Value:
        """The elements in front of what an index goes over, by its parts that are the same in all lanes."""
        offset = i64(0)
        for part, stride, moves in zip(index, self.strides(buffer), moving, strict=True):
            if not moves:
                by = _size(stride, integers)
                offset = self.f.add(offset, self.f.mul(integers.index(part), by))
        return offset

    def row(
        self, buffer: Buffer, index: tuple[Expr, ...], moving: Sequence[bool], integers: Integers
    ) -> Value:
        """The address of the first element that an index goes over: of a row, as a rule."""
        offset = self.before(buffer, index, moving, integers)
        return self.f.at(self.pointers[buffer.name], offset, STORAGE[buffer.dtype.name])

    def strides(self, buffer: Buffer) -> tuple[int | Expr, ...]:
        """Elements from one index to the next, in each dimension."""
        layout = self.layouts.get(buffer.name)
        if not isinstance(layout, PaddedRows):
            return buffer.element_strides
        strides: list[int | Expr] = [1]
        step = layout.stride
        for extent in reversed(buffer.extents[1:-1]):
            strides.append(step)
            step *= extent
        if buffer.rank > 1:
            strides.append(step)
        return tuple(reversed(strides[: buffer.rank]))

    def in_panels(
        self, pointer: Value, layout: ColumnPanels, index: tuple[Expr, ...], integers: Integers
    ) -> Address:
        """An element of a matrix in panels; a vector stays inside one panel."""
        f = self.f
        row, column = index[::-1] if layout.transposed else index
        width = layout.width
        if (
            self.lanes is not None
            and column == Var(self.lanes.name)
            and width % max(1, self.lanes.multiple) == 0
        ):
            base, ahead, step = self.lanes.base, self.lanes.ahead, 1
            if self.lanes.multiple % self.lanes.count:
                base, ahead = self.lane_value(), 0
        else:
            base, ahead, step = integers.index(column), 0, 0
        if self.varies(row):
            step = width * linear(row).coefficient(Var(self.lanes.name if self.lanes else ""))
        which = f.binary("udiv", base, width) if base.integer is None else i64(base.integer // width)
        if layout.pairs:
            inside = f.mul(f.add(f.sub(base, f.mul(which, width)), ahead), 2)
            start = f.add(f.mul(which, width * layout.rows), inside)
            if not self.varies(row):
                return Address(pointer, f.add(start, _pair_row(f, integers.index(row), width)), step * 2)
            lanes = f.cast("sext", self.wide(integers.value(row)), vector("i64", self.count))
            return Address(pointer, start, 0, _pair_row(f, lanes, width))
        inside = f.add(f.sub(base, f.mul(which, width)), ahead)
        offset = f.add(f.mul(which, width * layout.rows), f.add(f.mul(integers.index(row), width), inside))
        return Address(pointer, offset, step)

    def pointer(self, where: Address, dtype: str) -> Value:
        """The first lane's address, or the vector of addresses where lanes are not side by side."""
        f, element = self.f, STORAGE[dtype]
        start = f.at(where.pointer, where.offset, element)
        if where.further is None and where.step in (0, 1):
            return start
        offsets = f.mul(self.iota("i64"), self.wide(i64(where.step)))
        if where.further is not None:
            offsets = f.add(offsets, where.further)
        type_ = vector("ptr", self.count)
        return f.pure(f"getelementptr {element}, ptr {start.name}, {offsets.type} {offsets.name}", type_)

    def counting(self, expr: Expr) -> bool:
        """Whether an integer expression is made of loop variables and constants alone, and never wraps."""
        if not counts(expr):
            return False
        counter = self.lanes.name if self.lanes else ""
        names = (node.name for node in walk(expr) if isinstance(node, Var))
        known = all(name == counter or name in self.counters for name in names)
        return known and self.never_wraps(expr)

    def never_wraps(self, expr: Expr) -> bool:
        """Whether numbers without end, such as 64 bits, give the value of an integer expression.

        A sum or product may leave its dtype on the way, if what it ends with is inside; what is divided,
        compared or converted must be inside itself.
        """
        if self.exact[0] is not self.facts:
            self.exact = self.facts, {}
        found = self.exact[1].get(expr)
        if found is None:
            terms = (term for term, _ in linear(expr).terms if isinstance(term, (Arith, Call, Cast)))
            parts = [each for term in terms for each in children(term) if isinstance(each, Expr)]
            found = self.facts.bounds(expr) != INFINITE and all(map(self.never_wraps, parts))
            self.exact[1][expr] = found
        return found

    def low(self, expr: Expr) -> int:
        """The least value of an integer expression, as far as is known."""
        return self.facts.bounds(expr)[0]


def _pair_row(f: Function, row: Value, width: int) -> Value:
    """Where a row of panels of pairs starts in its panel."""
    pair = f.binary("mul", f.binary("lshr", row, const(1, row.type)), const(2 * width, row.type))
    return f.binary("add", pair, f.binary("and", row, const(1, row.type)))


def _size(stride: int | Expr, integers: Integers) -> Value:
    return i64(stride) if isinstance(stride, int) else integers.size(stride)


def _reads(expr: Expr, name: str) -> bool:
    return any(isinstance(node, Load) and node.buffer.name == name for node in walk(expr))


def counts(expr: Expr) -> bool:
    """Whether an integer expression is made of counting variables and constants alone."""
    return all(_counts(node) for node in walk(expr))


def _counts(node: Node) -> bool:
    match node:
        case Const() | Var():
            return node.dtype.is_integer
        case Arith(op="+" | "-" | "*"):
            return True
        case Arith(op="//" | "%"):
            return isinstance(node.args[1], Const) and node.args[1].value > 0
        case Call():
            return node.word in ("min", "max")
        case _:
            return isinstance(node, Cast) and node.type.bits >= 32
