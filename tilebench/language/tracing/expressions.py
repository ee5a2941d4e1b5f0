"""A value that is known only when the kernel runs, and the dtypes, which are called to convert to one.

`T.float16` names the type and, called, converts to it; a value's `dtype` is such a word again.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import DTypeError, LanguageError
from ...ir import Arith, Call, Expr, Let, Var, boolean, show
from ...ir.dtypes import ALIASES, ALL, DType
from .arithmetic import arithmetic, comparison, logical_not, negative
from .builder import here, in_trace, running
from .kinds import Scalar
from .promote import cast_expr, computable, convert, expr_of, number_of

if TYPE_CHECKING:
    from .taken import Number


@dataclass(frozen=True, eq=False, repr=False)
class DTypeWord(DType, str):  # noqa: SLOT000 -- the fields of `DType` are in a dict
    """An element type that can be called: `T.float32(x)` is `T.cast(x, T.float32)`.

    It is its name, a str, as in TileLang, and equals the plain `DType` of that name; all three hash alike, so
    `getattr(torch, T.float16)` and look-ups in dicts by any of them work.
    """

    def __new__(cls, name: str, *fields: object) -> DTypeWord:
        return str.__new__(cls, name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return other.name == self.name
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = DType.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return word_for, (ALL[self.name],)

    def as_torch(self) -> Any:
        """torch's dtype of this name, of 4-bit floats that of pairs; `DTypeError` where torch has none."""
        name = f"{self.name}_x2" if self.is_float and self.per_byte == 2 else self.name
        found = getattr(importlib.import_module("torch"), name, None)
        if found is None:
            raise DTypeError("torch has no dtype {name}", name=self.name)
        return found

    def __call__(self, value: Number | None = None) -> Value:
        """The value converted: floats round to nearest even, float to int goes towards zero.

        Without one, `x = T.int32()`, a name to which `T.let(x, value)` gives its value.
        """
        return Pending(self) if value is None else cast_value(value, self)


WORDS: dict[str, DTypeWord] = {
    each.name: DTypeWord(each.name, each.bits, each.kind, each.mantissa) for each in ALL.values()
}
SHORT: dict[str, DTypeWord] = {name: WORDS[each.name] for name, each in ALIASES.items()}


def word_for(dtype: DType) -> DTypeWord:
    """The callable dtype of the same name."""
    return WORDS[dtype.name]


def refuse(what: str, hint: str) -> NoReturn:
    raise LanguageError(what, hint=hint)


class Value(Scalar):
    """A scalar that is known only when the kernel runs: an expression with a dtype.

    Python's operators build further values. It has no truth value: `if`, `and`, `or` and `not`
    are understood in the kernel's own body, not in a helper that Python itself runs.
    """

    __slots__ = ("_expr",)
    # NumPy's own scalars leave the operator to us: np.float32(2) * value.
    __array_ufunc__ = None

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    @property
    def expr(self) -> Expr:
        """The IR expression."""
        return self._expr

    @property
    def dtype(self) -> DTypeWord:
        """The element type."""
        return word_for(self.expr.dtype)

    def astype(self, dtype: object) -> Value:
        """The value converted to another dtype, as `T.cast` does."""
        return cast_value(self, dtype)

    def __repr__(self) -> str:
        return show(self.expr)

    __hash__ = object.__hash__

    # -- arithmetic
    def __add__(self, other: object) -> Value:
        return Value(arithmetic("+", self, other))

    def __radd__(self, other: object) -> Value:
        return Value(arithmetic("+", other, self))

    def __sub__(self, other: object) -> Value:
        return Value(arithmetic("-", self, other))

    def __rsub__(self, other: object) -> Value:
        return Value(arithmetic("-", other, self))

    def __mul__(self, other: object) -> Value:
        return Value(arithmetic("*", self, other))

    def __rmul__(self, other: object) -> Value:
        return Value(arithmetic("*", other, self))

    def __truediv__(self, other: object) -> Value:
        return Value(arithmetic("/", self, other))

    def __rtruediv__(self, other: object) -> Value:
        return Value(arithmetic("/", other, self))

    def __floordiv__(self, other: object) -> Value:
        return Value(arithmetic("//", self, other))

    def __rfloordiv__(self, other: object) -> Value:
        return Value(arithmetic("//", other, self))

    def __mod__(self, other: object) -> Value:
        return Value(arithmetic("%", self, other))

    def __rmod__(self, other: object) -> Value:
        return Value(arithmetic("%", other, self))

    def __pow__(self, other: object) -> Value:
        return Value(arithmetic("**", self, other))

    def __rpow__(self, other: object) -> Value:
        return Value(arithmetic("**", other, self))

    def __lshift__(self, other: object) -> Value:
        return Value(arithmetic("<<", self, other))

    def __rlshift__(self, other: object) -> Value:
        return Value(arithmetic("<<", other, self))

    def __rshift__(self, other: object) -> Value:
        return Value(arithmetic(">>", self, other))

    def __rrshift__(self, other: object) -> Value:
        return Value(arithmetic(">>", other, self))

    def __and__(self, other: object) -> Value:
        return Value(arithmetic("&", self, other))

    def __rand__(self, other: object) -> Value:
        return Value(arithmetic("&", other, self))

    def __or__(self, other: object) -> Value:
        return Value(arithmetic("|", self, other))

    def __ror__(self, other: object) -> Value:
        return Value(arithmetic("|", other, self))

    def __xor__(self, other: object) -> Value:
        return Value(arithmetic("^", self, other))

    def __rxor__(self, other: object) -> Value:
        return Value(arithmetic("^", other, self))

    def __neg__(self) -> Value:
        return Value(negative(self.expr))

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        if self.expr.dtype == boolean:
            return Value(logical_not(self.expr))
        if not self.expr.dtype.is_integer:
            raise DTypeError("~ takes integers, found {dtype}", dtype=self.expr.dtype)
        return Value(Arith("~", (computable(self.expr),), place=here()))

    def __abs__(self) -> Value:
        value = computable(self.expr)
        if value.dtype == boolean:
            return self
        return Value(Call("abs", (value,), type=value.dtype, place=here()))

    # -- comparison
    def __lt__(self, other: object) -> Value:
        return Value(comparison("<", self, other))

    def __le__(self, other: object) -> Value:
        return Value(comparison("<=", self, other))

    def __gt__(self, other: object) -> Value:
        return Value(comparison(">", self, other))

    def __ge__(self, other: object) -> Value:
        return Value(comparison(">=", self, other))

    def __eq__(self, other: object) -> Any:
        return Value(comparison("==", self, other))

    def __ne__(self, other: object) -> Any:
        return Value(comparison("!=", self, other))

    # -- what only a number could answer
    def __bool__(self) -> NoReturn:
        refuse(
            "the value of this expression is known only when the kernel runs, so Python cannot decide on it",
            "in a helper use T.if_then_else(condition, a, b); `if` and `and` work in the kernel's own body",
        )

    def __index__(self) -> NoReturn:
        refuse(
            "a number known at compile time is needed here, this value is known only when the kernel runs",
            "indices of lists, extents and shapes are Python integers",
        )

    def __int__(self) -> NoReturn:
        refuse("int() cannot convert a value of a running kernel", "use T.cast(x, T.int32)")

    def __float__(self) -> NoReturn:
        refuse(
            "this function takes numbers; the value is known only when the kernel runs",
            "use T.cast(x, T.float32), and T.exp, T.log2, ... in place of the functions of `math`",
        )

    def __iter__(self) -> NoReturn:
        refuse("a single value cannot be looped over", "loop over T.serial(...) or a Python list")


class Pending(Value):
    """The name that `x = T.int32()` makes: a value once `T.let(x, value)` has given it one."""

    __slots__ = ("_frame", "_word", "name")

    def __init__(self, dtype: DTypeWord) -> None:
        builder = running()
        self.name = (builder.target if builder is not None else "") or "value"
        self._word = dtype
        # Outside of a kernel it is a name and no more.
        self._expr: Any = None if builder is not None else Var(self.name, type=ALL[dtype.name])
        self._frame: Any = None

    @property
    def dtype(self) -> DTypeWord:
        return self._word

    @property
    def expr(self) -> Expr:
        """The name. Raises `LanguageError` where it has no value."""
        builder = running()
        if self._expr is None:
            raise LanguageError(
                "{name} has no value yet", name=self.name, hint="T.let({name}, value) gives it one, once"
            )
        if builder is not None and self._frame not in (None, *builder.frames):
            raise LanguageError(
                "{name} has its value inside a loop or branch that has ended", name=self.name,
                hint="T.let({name}, value) in front of it, or {name} = T.alloc_var(...)",
            )  # fmt: skip
        return self._expr

    def give(self, value: object) -> None:
        """What `T.let` does: `LanguageError` for a second value, `DTypeError` for a float in an integer."""
        builder = in_trace("T.let")
        if self._expr is not None:
            raise LanguageError(
                "{name} has its value already", name=self.name,
                hint="{name} = T.alloc_var(dtype, init=...) can be assigned again",
            )  # fmt: skip
        dtype = ALL[self._word.name]
        given = expr_of(value, dtype if number_of(value) is not None else None)
        if given.dtype.is_float and not dtype.is_float:
            raise DTypeError(
                "{name} is an {dtype}, and this a {given}", name=self.name, dtype=dtype, given=given.dtype,
                hint="T.cast(x, T.{dtype}) cuts off the fraction",
            )  # fmt: skip
        var = Var(builder.unique(self.name), type=dtype, place=here())
        builder.emit(Let(var, convert(given, dtype), place=here()))
        self._expr, self._frame = var, builder.frames[-1]

    def __repr__(self) -> str:
        return self.name


def cast_value(value: object, dtype: object) -> Value:
    """`T.cast`: the value in another dtype."""
    return Value(cast_expr(value, dtype))
