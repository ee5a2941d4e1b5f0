"""Expressions: values of one element, and regions of buffers.

Every expression has a dtype. Integer arithmetic folds constants and drops neutral terms as it is
built (`a + 0`, `a * 1`), so passes can compute addresses with Python's own operators; floating
arithmetic is never touched. Equality is structural.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import attrgetter
from typing import Any

from ..errors import ShapeError
from .dtypes import DType, boolean, int32
from .node import READS, Node, attribute, node, operand

COMPARE = ("<", "<=", ">", ">=", "==", "!=")
LOGIC = ("and", "or", "not")
# The operators that give a bool, whatever they are of.
TRUTH = frozenset((*COMPARE, *LOGIC))
# The dtype of an expression that names it, or names a buffer of it. Asked for thousands of times: no function
# of Python's is called.
OWN_TYPE: Any = property(attrgetter("type"))
BUFFER_TYPE: Any = property(attrgetter("buffer.dtype"))


def round_up(number: int, unit: int) -> int:
    """The least multiple of `unit` that is at least `number`."""
    return -(-number // unit) * unit


@dataclass(frozen=True)
class Buffer:
    """A named array. `scope` is `global`, `shared`, `fragment`, `local` (a thread's own) or `var`.

    `shape` is in elements; extents of global buffers, and their strides, may be expressions of the
    function's parameters, which are known only at a launch. `strides` are in elements and only for global
    buffers; None means row-major. `align` is what the address of a global buffer is a multiple of,
    in bytes. A `var` has rank 0: a scalar of each thread that can be assigned.
    """

    name: str
    shape: tuple[int | Expr, ...]
    dtype: DType
    scope: str = "global"
    strides: tuple[int | Expr, ...] | None = None
    align: int = 16

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The shape as numbers: of a tile, or where all sizes are known. `ShapeError` where one is not."""
        for extent in self.shape:
            if not isinstance(extent, int):
                raise ShapeError(
                    "an extent of {name} is known only when the kernel is launched", name=self.name,
                    hint="give the sizes, or the arrays that they are read from",
                )  # fmt: skip
        return self.shape  # type: ignore[return-value]

    @property
    def fixed_strides(self) -> tuple[int, ...] | None:
        """The strides it was given, as numbers. `ShapeError` where one is known only at a launch."""
        if self.strides is None:
            return None
        return Buffer(self.name, self.strides, self.dtype).extents

    @cached_property
    def span(self) -> int | Expr:
        """Elements from the first to behind the last one, gaps of strides included; none without elements."""
        if any(isinstance(extent, int) and extent == 0 for extent in self.shape):
            return 0
        total: int | Expr = 1
        for extent, stride in zip(self.shape, self.element_strides, strict=True):
            steps = extent - 1
            total = (steps * stride if isinstance(steps, Expr) else stride * steps) + total
        return total

    @cached_property
    def size(self) -> int:
        """Elements."""
        return prod(self.extents)

    @cached_property
    def row_elements(self) -> int | Expr:
        """Elements from one row to the next: the last extent, rounded up to whole bytes."""
        if not self.shape:
            return 1
        last, packed = self.shape[-1], self.dtype.per_byte
        if isinstance(last, int):
            return round_up(last, packed)
        return last if packed == 1 else (last + (packed - 1)) // packed * packed

    @cached_property
    def bytes(self) -> int:
        """Bytes of all rows, each of whole bytes."""
        rows = prod(self.extents[:-1])
        row = round_up(self.extents[-1], self.dtype.per_byte) if self.shape else 1
        return -(-self.dtype.bits * row * rows // 8)

    @cached_property
    def element_strides(self) -> tuple[int | Expr, ...]:
        """Strides in elements, row-major in rows of whole bytes where none were given."""
        if self.strides is not None or not self.shape:
            return self.strides or ()
        out: list[int | Expr] = [1]
        step = self.row_elements
        for extent in reversed(self.shape[:-1]):
            out.append(step)
            step = extent if step == 1 else extent * step
        return tuple(reversed(out))


class Expr(Node):
    """The base of values. Python operators on it build folded integer arithmetic."""

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    def __add__(self, other: Expr | int) -> Expr:
        return add(self, other if isinstance(other, Expr) else Const(other, type=self.dtype))

    def __radd__(self, other: int) -> Expr:
        return add(lift(other, self.dtype), self)

    def __sub__(self, other: Expr | int) -> Expr:
        return sub(self, lift(other, self.dtype))

    def __rsub__(self, other: int) -> Expr:
        return sub(lift(other, self.dtype), self)

    def __mul__(self, other: Expr | int) -> Expr:
        return mul(self, other if isinstance(other, Expr) else Const(other, type=self.dtype))

    def __rmul__(self, other: int) -> Expr:
        return mul(lift(other, self.dtype), self)

    def __floordiv__(self, other: Expr | int) -> Expr:
        return floordiv(self, lift(other, self.dtype))

    def __mod__(self, other: Expr | int) -> Expr:
        return mod(self, lift(other, self.dtype))

    def compare(self, op: str, other: Expr | int) -> Expr:
        """The comparison `self op other`, folded when both are constants."""
        return compare(op, self, lift(other, self.dtype))


def _number_of(literal: Const) -> tuple[Any, DType]:
    """The number that a literal is and its dtype. To Python NaN is not itself, and -0.0 is 0.0."""
    value, dtype = literal.value, literal.type
    if not dtype.is_float or (value and value == value):
        return value, dtype
    return str(float(value)), dtype


@node
class Const(Expr):
    """A typed literal. `value` is a Python int, float or bool. Equal are those that are the same number."""

    value: Any = attribute()
    type: DType = attribute(default=int32)
    values_of = staticmethod(_number_of)
    dtype = OWN_TYPE  # pyright: ignore[reportIncompatibleMethodOverride]


@node
class Var(Expr):
    """A name bound once: a loop variable, a block index, a `let`."""

    name: str = attribute()
    type: DType = attribute(default=int32)
    dtype = OWN_TYPE  # pyright: ignore[reportIncompatibleMethodOverride]


@node
class Load(Expr):
    """An element of a buffer. `version` picks a stage of a multi-buffered one."""

    buffer: Buffer = attribute(effect=READS)
    index: tuple[Expr, ...] = operand()
    version: Expr | None = operand(default=None)
    dtype = BUFFER_TYPE  # pyright: ignore[reportIncompatibleMethodOverride]


@node
class Arith(Expr):
    """An operator of Python's syntax over arguments of one dtype.

    `+ * and or & | ^` take any number from two, `-` and `not` and `~` also one, the others two.
    `/` is true division of floats; `//` and `%` are floor division and its remainder.
    """

    op: str = attribute()
    args: tuple[Expr, ...] = operand()

    @property
    def dtype(self) -> DType:
        first: Expr = self
        while type(first) is Arith:
            if first.op in TRUTH:
                return boolean
            first = first.args[0]
        return first.dtype


@node
class Cast(Expr):
    """Conversion to another dtype: to nearest even for floats, towards zero for float to int."""

    value: Expr = operand()
    type: DType = attribute(default=int32)
    dtype = OWN_TYPE  # pyright: ignore[reportIncompatibleMethodOverride]


@node
class Reinterpret(Cast):
    """The same bits in another dtype of that width; one of both is a float, else it is a `Cast`."""

    value: Expr = operand()
    type: DType = attribute(default=int32)


@node
class Call(Expr):
    """A scalar function of the registry, by its word."""

    word: str = attribute()
    args: tuple[Expr, ...] = operand()
    type: DType = attribute(default=int32)
    dtype = OWN_TYPE  # pyright: ignore[reportIncompatibleMethodOverride]


@node
class Region(Node):
    """A box of a buffer: `start` per dimension, and `extent` per dimension in elements.

    `extent` None is a head address, whose extents come from the other side of the operation.
    """

    buffer: Buffer = attribute()
    start: tuple[Expr, ...] = operand()
    extent: tuple[int, ...] | None = attribute(default=None)
    version: Expr | None = operand(default=None)

    @property
    def is_whole(self) -> bool:
        return self.extent == self.buffer.shape and all(
            isinstance(each, Const) and each.value == 0 for each in self.start
        )


def whole(buffer: Buffer, version: Expr | None = None) -> Region:
    """The region that is all of a buffer, whose extents are numbers."""
    return Region(buffer, (ZERO,) * buffer.rank, extent=buffer.extents, version=version)


ZERO, ONE = Const(0), Const(1)
TRUE, FALSE = Const(True, type=boolean), Const(False, type=boolean)


def lift(value: Expr | int | float | bool, dtype: DType = int32) -> Expr:
    """A Python number as a typed literal; an expression as it is."""
    return value if isinstance(value, Expr) else Const(value, type=dtype)


def const_of(expr: Expr) -> int | None:
    """The value of an integer literal, else None."""
    if type(expr) is not Const:
        return None
    value = expr.value
    return value if isinstance(value, int) else None


def wrapped(value: int, dtype: DType) -> int:
    """An integer modulo 2**bits, as a value of the dtype: what the operation gives when the kernel runs."""
    inside = value & ((1 << dtype.bits) - 1)
    return inside - (1 << dtype.bits) if dtype.kind == "int" and inside >> (dtype.bits - 1) else inside


def _terms(expr: Expr, op: str) -> tuple[Expr, ...]:
    return expr.args if type(expr) is Arith and expr.op == op and len(expr.args) > 1 else (expr,)


def add(a: Expr, b: Expr, *more: Expr) -> Expr:
    """`a + b`, and `more` of integers. Integers: flat, constants gathered at the end, zero dropped."""
    dtype = a.dtype
    if not dtype.is_integer:
        return Arith("+", (*_terms(a, "+"), b))
    if type(b) is Const and not b.value and not more:
        return a
    total = 0
    out: list[Expr] = []
    for side in (a, b, *more):
        # Nothing is called here: a GEMM adds 300 times.
        terms = side.args if type(side) is Arith and side.op == "+" and len(side.args) > 1 else (side,)
        for term in terms:
            if type(term) is Const:
                total += term.value
            else:
                out.append(term)
    total = wrapped(total, dtype) if total else 0
    if total or not out:
        out.append(Const(total, type=dtype))
    return out[0] if len(out) == 1 else Arith("+", tuple(out))


def sub(a: Expr, b: Expr) -> Expr:
    """`a - b`; integer constants fold into a sum."""
    value = const_of(b)
    if a.dtype.is_integer and value is not None:
        if const_of(a) is not None or wrapped(-value, a.dtype) == -value:
            return add(a, Const(-value, type=a.dtype)) if value else a
        return Arith("-", (a, b)) if value else a  # -value is no value of an unsigned dtype
    return Arith("-", (a, b))


def mul(a: Expr, b: Expr) -> Expr:
    """`a * b`. Integers: constants folded to the right, one and zero handled."""
    dtype = a.dtype
    if not dtype.is_integer:
        return Arith("*", (*_terms(a, "*"), b))
    x = a.value if type(a) is Const else None
    y = b.value if type(b) is Const else None
    if x is not None and y is not None:
        return Const(wrapped(x * y, dtype), type=dtype)
    if x is not None:
        a, b, x, y = b, a, y, x
    if y == 0:
        return Const(0, type=dtype)
    if y == 1:
        return a
    if y is not None and isinstance(a, Arith) and a.op == "*":
        last = const_of(a.args[-1])
        if last is not None:
            rest, folded = a.args[:-1], wrapped(last * y, dtype)
            return mul(rest[0] if len(rest) == 1 else Arith("*", rest), Const(folded, type=dtype))
    return Arith("*", (*_terms(a, "*"), b))


def floordiv(a: Expr, b: Expr) -> Expr:
    """`a // b`, folded when both are known or `b` is one."""
    x, y = const_of(a), const_of(b)
    if y == 1:
        return a
    if x is not None and y:
        return Const(wrapped(x // y, a.dtype), type=a.dtype)
    return Arith("//", (a, b))


def mod(a: Expr, b: Expr) -> Expr:
    """`a % b` (the sign of `b`), folded when both are known or `b` is one."""
    x, y = const_of(a), const_of(b)
    if y == 1:
        return Const(0, type=a.dtype)
    if x is not None and y:
        return Const(x % y, type=a.dtype)
    return Arith("%", (a, b))


def compare(op: str, a: Expr, b: Expr) -> Expr:
    """`a op b` as a bool, folded when both are integer literals."""
    x, y = (const_of(a), const_of(b)) if type(a) is Const and type(b) is Const else (None, None)
    if x is not None and y is not None:
        sign = (x > y) - (x < y)
        known = {
            "<": sign < 0,
            "<=": sign <= 0,
            ">": sign > 0,
            ">=": sign >= 0,
            "==": sign == 0,
            "!=": sign != 0,
        }
        return TRUE if known[op] else FALSE
    return Arith(op, (a, b))


def zero_of(dtype: DType) -> Const:
    """The zero of a dtype: what a read outside a buffer gives."""
    return Const(0.0 if dtype.is_float else (False if dtype.kind == "bool" else 0), type=dtype)


def all_of(conditions: list[Expr]) -> Expr:
    """The conjunction; true ones drop out, and none left is `True`."""
    out: list[Expr] = []
    for condition in conditions:
        if type(condition) is Const and condition == FALSE:
            return FALSE
        if (type(condition) is not Const or condition != TRUE) and condition not in out:
            out.append(condition)
    if not out:
        return TRUE
    return out[0] if len(out) == 1 else Arith("and", tuple(out))
