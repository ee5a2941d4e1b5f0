"""Vectors as values: `T.float32x4`, elements side by side that are loaded, computed with and stored together.

A vector is its elements: each operator is one for each of them. What is loaded or stored together goes
through an array of the thread's own and `T.vectorized`, so that it is one access where it may be one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import LanguageError, ShapeError
from ..ir import Buffer, Const, Expr, If, Load, Store, Var
from ..ir.dtypes import ALL, DType
from .elementwise import abs as magnitude
from .elementwise import cast as cast_to
from .elementwise import max as greater
from .elementwise import min as lesser
from .further_functions import ieee_fmaf
from .memory import AllocLocal
from .structure import Vectorized
from .tracing.builder import Builder, here, inside_kernel, shown
from .tracing.expressions import WORDS, DTypeWord, Value, word_for
from .tracing.indexing import index_expr
from .tracing.kinds import SideBySide
from .tracing.operands import part_of
from .tracing.promote import expr_of, number_of
from .tracing.stores import stored
from .tracing.values import BufferView, ElementRef

if TYPE_CHECKING:
    from .tracing.taken import Number, Whole

_NAME = re.compile(r"([a-z]+\d+(?:_e\d+m\d+(?:fn)?)?)x(\d+)")
_COUNTS = (2, 4, 8, 16)
# TileLang's other spelling.
_SPELLED = {"float8_e4m3": "float8_e4m3fn"}


@dataclass(frozen=True)
class VectorWord:
    """A type of vectors: so many elements of a dtype. Called, it makes one of values, or converts one."""

    element: DTypeWord
    lanes: int

    @property
    def name(self) -> str:
        return f"{self.element.name}x{self.lanes}"

    @property
    def bits(self) -> int:
        return self.element.bits * self.lanes

    def __call__(self, *values: Any) -> VectorValue:
        """A vector of these values, or of one value in all places, or another vector converted."""
        if len(values) == 1 and isinstance(values[0], VectorValue):
            values = values[0].parts
        values = values * self.lanes if len(values) == 1 else values
        if len(values) != self.lanes:
            raise ShapeError("T.{name} is made of {lanes} values, found {count}", name=self.name,
                             lanes=self.lanes, count=len(values))  # fmt: skip
        return VectorValue(cast_to(value, self.element) for value in values)

    def __repr__(self) -> str:
        return f"T.{self.name}"


def vector_word(name: str) -> VectorWord | None:
    """The type of vectors of that name, `float32x4`; None where it is no such name."""
    found = _NAME.fullmatch(name)
    element = None if found is None else ALL.get(_SPELLED.get(found[1], found[1]))
    if found is None or element is None or int(found[2]) not in _COUNTS or element.per_byte > 1:
        return None
    return VectorWord(WORDS[element.name], int(found[2]))


def _divided(a: Any, b: Any) -> Any:
    return a / b


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def swapped(a: Any, b: Any) -> Any:
        return function(b, a)

    return swapped


class VectorValue(SideBySide):
    """Elements side by side. `v[0]` is one of them; operators work on each."""

    __slots__ = ("parts",)

    def __init__(self, parts: Any) -> None:
        self.parts: tuple[Any, ...] = tuple(parts)

    @property
    def dtype(self) -> VectorWord:
        return VectorWord(word_for(expr_of(self.parts[0]).dtype), len(self.parts))

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, lane: object) -> Any:
        number = number_of(lane)
        if not isinstance(number, int) or not -len(self.parts) <= number < len(self.parts):
            raise ShapeError(
                "a vector of {count} elements has no element {lane}", count=len(self.parts), lane=shown(lane),
                hint="its elements are told apart as the kernel is compiled",
            )  # fmt: skip
        return self.parts[number]

    def __repr__(self) -> str:
        return f"{self.dtype!r}({', '.join(map(str, self.parts))})"

    def with_each(self, word: str, function: Callable[..., Any], *others: Any) -> VectorValue:
        """A function of each element and those of other vectors; a value stands for as many."""
        sides = [self.parts]
        for other in others:
            parts = other.parts if isinstance(other, VectorValue) else (other,) * len(self.parts)
            if len(parts) != len(self.parts):
                raise ShapeError("{word} of vectors of {a} and of {b} elements", word=word, a=len(self.parts),
                                 b=len(parts))  # fmt: skip
            sides.append(parts)
        return VectorValue(function(*together) for together in zip(*sides, strict=True))

    def __add__(self, other: Any) -> VectorValue:
        return self.with_each("+", operator.add, other)

    def __radd__(self, other: Any) -> VectorValue:
        return self.with_each("+", _swapped(operator.add), other)

    def __sub__(self, other: Any) -> VectorValue:
        return self.with_each("-", operator.sub, other)

    def __rsub__(self, other: Any) -> VectorValue:
        return self.with_each("-", _swapped(operator.sub), other)

    def __mul__(self, other: Any) -> VectorValue:
        return self.with_each("*", operator.mul, other)

    def __rmul__(self, other: Any) -> VectorValue:
        return self.with_each("*", _swapped(operator.mul), other)

    def __truediv__(self, other: Any) -> VectorValue:
        return self.with_each("/", _divided, other)

    def _compared(self, *_: object) -> NoReturn:
        raise LanguageError(
            "a vector is compared, and is true or not, by its elements",
            hint="v[0] < x, for each that is asked",
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _compared
    __hash__ = object.__hash__

    def __neg__(self) -> VectorValue:
        return self.with_each("-", operator.neg)

    def load(self, view: Any, key: Sequence[Any]) -> VectorValue:
        """`A[T.Ramp(i, 1, 4)]`: the elements side by side from the ramp's first on."""
        return loaded(view, _first(view, key), len(self.parts), None)

    def store(self, view: Any, key: Sequence[Any], value: Any) -> None:
        """`A[T.Ramp(i, 1, 4)] = value`, or with a box for the key the vector itself into it."""
        if any(isinstance(part, SideBySide) for part in key):
            kept = value if isinstance(value, VectorValue) else VectorValue((value,) * len(self.parts))
            stored_at(view, _first(view, key), _as_many(kept, len(self.parts), "the index"), None)
            return
        target = view[tuple(key)]
        part = part_of(target, "a vector")
        stored_at(
            view,
            part.region.start,
            _as_many(self, count_along(part.region.extent, part.name), "the box"),
            None,
        )


class _Ramp(VectorValue):
    """`T.Ramp(first, 1, lanes)`, which stands for an index."""

    __slots__ = ()


def _as_many(vector: VectorValue, count: int, what: str) -> VectorValue:
    if len(vector) != count:
        raise ShapeError("{what} has {count} elements, and the vector {lanes}", what=what, count=count,
                         lanes=len(vector))  # fmt: skip
    return vector


def count_along(extent: tuple[int, ...] | None, name: str) -> int:
    """Elements of a box, which are side by side along its last dimension."""
    box = extent or (1,)
    if any(size != 1 for size in box[:-1]):
        raise ShapeError(
            "a vector lies along the last dimension of {name}, and this box is {box}", name=name, box=box
        )
    return box[-1]


def _first(view: BufferView, key: Sequence[Any]) -> tuple[Expr, ...]:
    if not all(isinstance(part, SideBySide) is (axis == len(key) - 1) for axis, part in enumerate(key)):
        raise LanguageError("T.Ramp indexes the last dimension of {name}", name=view.name)
    if not isinstance(key[-1], _Ramp):
        raise LanguageError(
            "{name} is indexed by a vector whose elements need not be neighbours", name=view.name,
            hint="T.Ramp(first, 1, lanes), or one element at a time",
        )  # fmt: skip
    *lead, ramp = key
    return tuple(index_expr(view, axis, part) for axis, part in enumerate((*lead, ramp.parts[0])))


# -- loads and stores


def _refuse_registers(view: BufferView, how: str) -> Builder:
    builder = inside_kernel("a vector")
    if view.scope == "fragment":
        raise LanguageError(
            "a vector is {how} memory or a thread's own array, and {name} is a fragment", how=how,
            name=view.name, also=[("{name} is declared here", view.place)],
            hint="its elements lie in many threads: use T.Parallel",
        )  # fmt: skip
    view.check_element("read" if how == "loaded from" else "write")
    return builder


def _own(builder: Builder, name: str, dtype: DType, count: int) -> BufferView:
    """A new array of each thread's own."""
    own = Buffer(builder.unique(f"{name}_vector"), (count,), dtype, "local")
    builder.emit(AllocLocal(own, place=here()))
    return BufferView(own, builder.frames[-1], here())


def _together(builder: Builder, count: int, body: Callable[[Var], Store]) -> Vectorized:
    lane = Var(builder.unique("lane"))
    return Vectorized(count, (lane,), (body(lane),), place=here())


def loaded(view: BufferView, start: tuple[Expr, ...], count: int, pred: Expr | None) -> VectorValue:
    """Elements from `start` on along the last dimension; zeros where `pred` does not hold."""
    builder = _refuse_registers(view, "loaded from")
    dtype = view.buffer.dtype
    own = _own(builder, view.name, dtype, count)

    def load(lane: Var) -> Store:
        element = Load(view.buffer, (*start[:-1], start[-1] + lane), place=here())
        return Store(own.buffer, (lane,), element, place=here())

    if pred is not None:
        zero = stored(0, dtype)
        builder.emit(_together(builder, count, lambda lane: Store(own.buffer, (lane,), zero, place=here())))
        builder.emit(If(pred, (_together(builder, count, load),), (), place=here()))
    else:
        builder.emit(_together(builder, count, load))
    return VectorValue(ElementRef(own, (Const(lane),)) for lane in range(count))


def stored_at(view: BufferView, start: tuple[Expr, ...], vector: VectorValue, pred: Expr | None) -> None:
    """The elements of a vector from `start` on along the last dimension, where `pred` holds."""
    builder = _refuse_registers(view, "stored in")
    dtype, count = view.buffer.dtype, len(vector)
    own = _own_of(vector, dtype)
    if own is None:
        own = _own(builder, view.name, dtype, count).buffer
        for lane, part in enumerate(vector.parts):
            builder.emit(Store(own, (Const(lane),), stored(part, dtype), place=here()))
    source = own

    def store(lane: Var) -> Store:
        element = Load(source, (lane,), place=here())
        return Store(view.buffer, (*start[:-1], start[-1] + lane), element, place=here())

    loop = _together(builder, count, store)
    builder.emit(loop if pred is None else If(pred, (loop,), (), place=here()))


def _own_of(vector: VectorValue, dtype: DType) -> Buffer | None:
    """The array of the thread's own that holds a vector as it is."""
    first = vector.parts[0]
    if (
        not isinstance(first, ElementRef)
        or first.view.buffer.scope != "local"
        or first.view.buffer.dtype != dtype
    ):
        return None
    own = first.view.buffer
    same = own.extents == (len(vector),) and all(
        isinstance(part, ElementRef) and part.view.buffer == own and part.index == (Const(lane),)
        for lane, part in enumerate(vector.parts)
    )
    return own if same else None


# -- words


def Ramp(base: Whole, stride: int, lanes: int) -> VectorValue:
    """The index of `lanes` elements side by side from `base` on: `A[T.Ramp(i * 4, 1, 4)]` is a vector.

    Raises `LanguageError` for another stride than 1, and for another number than 2, 4, 8 or 16.
    """
    _check_count("T.Ramp", lanes)
    if number_of(stride) != 1:
        raise LanguageError("T.Ramp has the stride {stride}", stride=shown(stride), expected="1: neighbours")
    first = Value(expr_of(base))
    return _Ramp(first + lane for lane in range(lanes))


def Broadcast(value: Number, lanes: int) -> VectorValue:
    """A vector of one value in all places."""
    _check_count("T.Broadcast", lanes)
    return VectorValue((Value(expr_of(value)),) * lanes)


def extract_lane(value: Any, lane: int) -> Any:
    """An element of a vector: `value[lane]`."""
    return _vector("T.extract_lane", value)[lane]


def _check_count(word: str, lanes: object) -> None:
    if number_of(lanes) not in _COUNTS:
        raise LanguageError(
            "{word} of {lanes} elements", word=word, lanes=shown(lanes), expected="2, 4, 8 or 16"
        )


def _vector(word: str, value: object) -> VectorValue:
    if not isinstance(value, VectorValue):
        raise LanguageError("{word} takes a vector", word=word, found="{text}", text=shown(value))
    return value


def _pair(word: str, function: Callable[..., Any], x: Any, *others: Any) -> VectorValue:
    if len(_vector(word, x)) != 2:
        raise ShapeError("{word} works on two elements, found {count}", word=word, count=len(x))
    return x.with_each(word, function, *others)


def add2(x: Any, y: Any) -> VectorValue:
    """`x + y` of vectors of two elements."""
    return _pair("T.add2", operator.add, x, y)


def sub2(x: Any, y: Any) -> VectorValue:
    """`x - y` of vectors of two elements."""
    return _pair("T.sub2", operator.sub, x, y)


def mul2(x: Any, y: Any) -> VectorValue:
    """`x * y` of vectors of two elements."""
    return _pair("T.mul2", operator.mul, x, y)


def fma2(x: Any, y: Any, z: Any) -> VectorValue:
    """`x * y + z` of vectors of two float32, rounded once. Raises `DTypeError` for other dtypes."""
    return _pair("T.fma2", ieee_fmaf, x, y, z)


def max2(x: Any, y: Any) -> VectorValue:
    """`T.max(x, y)` of each of two elements."""
    return _pair("T.max2", greater, x, y)


def min2(x: Any, y: Any) -> VectorValue:
    """`T.min(x, y)` of each of two elements."""
    return _pair("T.min2", lesser, x, y)


def abs2(x: Any) -> VectorValue:
    """`T.abs(x)` of each of two elements."""
    return _pair("T.abs2", magnitude, x)


__all__ = ["Broadcast", "Ramp", "abs2", "add2", "extract_lane", "fma2", "max2", "min2", "mul2", "sub2"]
