"""What a kernel's names stand for while it is traced: values, elements, tiles and their parts."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import DTypeError, LanguageError, Place, ShapeError
from ...ir import Arith, Buffer, Call, Expr, Load, Region, boolean, show
from .arithmetic import arithmetic, comparison, logical_not, negative
from .builder import Frame, here, in_trace
from .dtype_words import DTypeWord, word_for
from .indexing import index_box, index_expr
from .promote import cast_value


def _refuse(what: str, hint: str) -> NoReturn:
    raise LanguageError(what, hint=hint)


class Value:
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
        return Value(Arith("~", (self.expr,), place=here()))

    def __abs__(self) -> Value:
        return Value(Call("abs", (self.expr,), type=self.expr.dtype, place=here()))

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
        _refuse(
            "the value of this expression is known only when the kernel runs, so Python cannot decide on it",
            "in a helper use T.if_then_else(condition, a, b); `if` and `and` work in the kernel's own body",
        )

    def __index__(self) -> NoReturn:
        _refuse(
            "a number known at compile time is needed here, this value is known only when the kernel runs",
            "indices of lists, extents and shapes are Python integers",
        )

    def __int__(self) -> NoReturn:
        _refuse("int() cannot convert a value of a running kernel", "use T.cast(x, T.int32)")

    def __float__(self) -> NoReturn:
        _refuse(
            "this function takes numbers; the value is known only when the kernel runs",
            "use T.cast(x, T.float32), and T.exp, T.log2, ... in place of the functions of `math`",
        )

    def __iter__(self) -> NoReturn:
        _refuse("a single value cannot be looped over", "loop over T.serial(...) or a Python list")


class ElementRef(Value):
    """`A[i, j]`: an element where a value is needed, the head of a tile where a region is."""

    __slots__ = ("index", "place", "view")

    def __init__(self, view: BufferView, index: tuple[Expr, ...]) -> None:
        self.view = view
        self.index = index
        self.place = here()

    @property
    def expr(self) -> Expr:
        self.view.check_element("read")
        return Load(self.view.buffer, self.index, place=self.place)

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def dtype(self) -> DTypeWord:
        return self.view.dtype

    def __repr__(self) -> str:
        return show(Load(self.view.buffer, self.index))


class VarRef(Value):
    """A scalar made by `T.alloc_var`: reads as a value, and assignment stores to it."""

    __slots__ = ("view",)

    def __init__(self, view: BufferView) -> None:
        self.view = view

    @property
    def expr(self) -> Expr:
        self.view.check_scope()
        return Load(self.view.buffer, (), place=here())

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def dtype(self) -> DTypeWord:
        return self.view.dtype

    def __repr__(self) -> str:
        return self.name


class RegionRef:
    """`A[i : i + 8, :]`: a box of a buffer, `extent` elements a dimension."""

    __slots__ = ("region", "view")

    def __init__(self, view: BufferView, region: Region) -> None:
        self.view = view
        self.region = region

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the box."""
        return self.region.extent or ()

    @property
    def dtype(self) -> DTypeWord:
        return self.view.dtype

    def __repr__(self) -> str:
        return show(self.region)


class BufferView:
    """An array of a kernel: a parameter or an allocated tile. `A[...]` is an element or a box."""

    __slots__ = ("buffer", "frame", "place")

    def __init__(self, buffer: Buffer, frame: Frame | None, place: Place | None) -> None:
        self.buffer = buffer
        self.frame = frame
        self.place = place

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
        return self.buffer.shape

    @property
    def ndim(self) -> int:
        return self.buffer.rank

    @property
    def dtype(self) -> DTypeWord:
        """The element type, which is also callable as a conversion."""
        return word_for(self.buffer.dtype)

    @property
    def scope(self) -> str:
        """`global`, `shared`, `fragment` or `local`."""
        return self.buffer.scope

    def __len__(self) -> int:
        return self.buffer.shape[0]

    def __iter__(self) -> NoReturn:
        _refuse("a buffer cannot be looped over", "loop over its indices: for i in T.Parallel(...)")

    def __repr__(self) -> str:
        return f"{self.name}{list(self.shape)}: {self.buffer.dtype} in {self.scope} memory"

    def __getitem__(self, key: object) -> ElementRef | RegionRef:
        """An element (all integers) or a box (any slice). Raises `ShapeError` for a wrong rank or range."""
        self.check_scope()
        parts = self._parts(key)
        if any(isinstance(each, slice) for each in parts):
            start: list[Expr] = []
            extent: list[int] = []
            for axis, each in enumerate(parts):
                lo, n = index_box(self, axis, each)
                start.append(lo)
                extent.append(n)
            return RegionRef(self, Region(self.buffer, tuple(start), extent=tuple(extent), place=here()))
        return ElementRef(self, tuple(index_expr(self, axis, each) for axis, each in enumerate(parts)))

    def __setitem__(self, key: object, value: object) -> None:
        from ..memory import store_element

        target = self[key]
        if not isinstance(target, ElementRef):
            raise LanguageError(
                "a whole region of {name} cannot be assigned", name=self.name, hint="use T.copy"
            )
        store_element(target, value)

    def _parts(self, key: object) -> list[object]:
        parts: list[object] = list(key) if isinstance(key, tuple) else [key]  # pyright: ignore[reportUnknownArgumentType]
        if any(each is Ellipsis for each in parts):
            at = next(k for k, each in enumerate(parts) if each is Ellipsis)
            parts[at : at + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        if len(parts) != self.ndim:
            raise ShapeError(
                "{name} has {rank} dimensions, found indices for {count}",
                name=self.name,
                rank=self.ndim,
                count=len(parts),
                shape=self.shape,
                expected="one index for each dimension of {shape}",
                also=[("{name} is declared here", self.place)],
            )
        return parts

    # -- checks
    def check_scope(self) -> None:
        """Raise `LanguageError` when the body that allocated the buffer has ended."""
        if self.frame is None or self.frame in in_trace(self.name).frames:
            return
        raise LanguageError(
            "{name} is used after the block that allocates it has ended",
            name=self.name,
            also=[("{name} is allocated here", self.place)],
            hint="allocate it before the loop or branch",
        )

    def check_element(self, how: str) -> None:
        """Raise `LanguageError` where an element of this buffer cannot be read or written."""
        self.check_scope()
        builder = in_trace(self.name)
        if len(builder.frames) == 1:
            builder.outside(f"an element of {self.name}")
        if self.scope == "fragment" and builder.within("parallel") is None:
            done = {"read": "read", "write": "written"}[how]
            raise LanguageError(
                "an element of the fragment {name} is {done} outside T.Parallel",
                name=self.name,
                done=done,
                also=[("{name} is allocated here", self.place)],
                hint="it is spread over the threads; a lone element would have to be kept in all of them; "
                "loop with T.Parallel, or keep the tile in shared memory",
            )
