"""Expressions of one thread in C, with C's precedence and types never promoted by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import InternalError, TargetError
from ...ir import ZERO, Arith, Buffer, Call, Cast, Const, DType, Expr, Extern, Load, Var, const_of, lift
from ...ir.arith import INFINITE
from ...ir.dtypes import int32
from ...ir.expr import add
from .conversions import cast, narrow_int
from .dialect import ATOM, LEVEL, UNARY, Dialect, Spelled
from .literals import literal
from .rough_bounds import RoughBounds

OPERATORS = {"or": "||", "and": "&&"}
# What can leave the range of a type of integers.
MAY_OVERFLOW = frozenset({"+", "-", "*", "<<"})
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# From this many elements on an offset does not fit 32 bits.
LARGE = 2**31


@dataclass
class Expressions:
    """Turns expressions into C. `names` are C names, `rough` what is known of their values.

    `target` is the machine's name, for what is refused.
    """

    dialect: Dialect
    names: Mapping[str, str]
    target: str
    rough: RoughBounds = field(default_factory=RoughBounds)
    wide: bool = False

    def text(self, expr: Expr) -> str:
        """The expression's text. Raises `TargetError` for what the language has no code for."""
        return self.spelled(expr)[0]

    def at_least(self, expr: Expr, level: int) -> str:
        """The text, in parentheses unless it binds at least as strongly as `level`."""
        if type(expr) is Var:
            return self.names[expr.name]
        text, strength = self.spelled(expr)
        return text if strength >= level else f"({text})"

    def type_of(self, dtype: DType) -> str:
        return self.dialect.type_of(dtype)

    def spelled(self, expr: Expr) -> Spelled:
        # These three are most of what is spelled.
        if type(expr) is Var:
            return self.names[expr.name], ATOM
        if type(expr) is Arith:
            return self._operator(expr)
        if type(expr) is Const and expr.type is int32 and expr.value >= 0:
            return f"{expr.value}{self.dialect.suffixes.get('int32', '')}", ATOM
        match expr:
            case Var():
                return self.names[expr.name], ATOM
            case Const():
                text = literal(expr.value, expr.type, self.dialect)
                return text, UNARY if text.startswith("-") else ATOM
            case Load():
                return self.element(expr.buffer, expr.index), ATOM
            case Arith():
                return self._operator(expr)
            case Cast():
                same = expr.value.dtype == expr.type
                return self.spelled(expr.value) if same else cast(self, expr)
            case Call():
                return self._call(expr)
            case _:
                raise InternalError(
                    "an expression {kind} has no code", at=expr.place, kind=type(expr).__name__
                )

    # -- memory
    def element(self, buffer: Buffer, index: tuple[Expr, ...]) -> str:
        """An element as C reads it, and assigns it where it shares no byte; a scalar of the thread's own
        by its name."""
        name = self.names[buffer.name]
        packed = self.dialect.packed_in(buffer)
        if packed is not None:
            return packed.load.format(name=name, offset=self.offset(buffer, index))
        return f"{name}[{self.offset(buffer, index)}]" if index else name

    def address(self, buffer: Buffer, index: tuple[Expr, ...]) -> str:
        """A pointer to an element."""
        name, offset = self.names[buffer.name], self.offset(buffer, index)
        if offset == "0":
            return name
        if buffer.dtype.per_byte > 1 and buffer.scope in ("global", "shared"):
            # Elements that share a byte: a pointer counts bytes. In registers each has one of its own.
            return f"{name} + ({offset}) / {buffer.dtype.per_byte}"
        grouped = " ? " in offset or " ^ " in offset or " & " in offset
        return f"{name} + ({offset})" if grouped else f"{name} + {offset}"

    def offset(self, buffer: Buffer, index: tuple[Expr, ...]) -> str:
        """The flat offset in elements: 32-bit arithmetic, 64-bit for buffers of 2^31 elements or more.

        Of sizes that are known only at a launch, which checks it, `wide` says which.
        """
        strides, span = buffer.element_strides, buffer.span
        if isinstance(span, Expr):
            return self._checked_offset(index, strides)
        if span >= LARGE:
            return self._checked_offset(index, strides, wide=True)
        terms: list[Expr] = []
        for coordinate, stride in zip(index, strides, strict=True):
            number = coordinate if coordinate.dtype == int32 else Cast(coordinate, type=int32)
            terms.append(number * lift(stride))
        return self.text(add(ZERO, *terms) if terms else ZERO)

    def _checked_offset(
        self, index: tuple[Expr, ...], strides: tuple[int | Expr, ...], wide: bool | None = None
    ) -> str:
        """An offset that fits its type because the launch has checked it: no sum or product wraps."""
        wide = self.wide if wide is None else wide
        cast = f"({self.dialect.types['int64']})" if wide else ""
        terms: list[str] = []
        for coordinate, stride in zip(index, strides, strict=True):
            if const_of(coordinate) == 0:
                continue
            if coordinate.dtype != int32 and not wide:
                coordinate = Cast(coordinate, type=int32)
            if stride == 1:
                terms.append(self.at_least(coordinate, LEVEL["+"]))
                continue
            factors = stride.args if isinstance(stride, Arith) and stride.op == "*" else (lift(stride),)
            number = self.at_least(coordinate, UNARY if wide else LEVEL["*"])
            terms.append(" * ".join([cast + number, *(self.at_least(factor, UNARY) for factor in factors)]))
        return " + ".join(terms) or "0"

    # -- operators
    def _operator(self, expr: Arith) -> Spelled:
        op, args = expr.op, expr.args
        dtype = args[0].dtype
        if len(args) == 1:
            return self._unary(expr, dtype)
        if op in ("//", "%"):
            return self._division(expr, dtype)
        if op in MAY_OVERFLOW and dtype.is_integer:
            if self._overflows(expr, dtype):
                return self._wrapping(expr, dtype)
            return self._cut(self._sum(expr) if op == "+" else self._chain(expr), dtype)
        return self._chain(expr)

    def _chain(self, expr: Arith) -> Spelled:
        """The operator between its arguments: comparisons do not chain in C, others group from the left."""
        op, level = expr.op, LEVEL[expr.op]
        parts = [self.at_least(expr.args[0], level + 1 if op in COMPARISONS else level)]
        parts += [self.at_least(arg, level + 1) for arg in expr.args[1:]]
        return f" {OPERATORS.get(op, op)} ".join(parts), level

    def _overflows(self, expr: Arith, dtype: DType) -> bool:
        """Whether C would compute this in a signed type that it may overflow, which C leaves undefined.

        8- and 16-bit values are computed in int, where only products and shifts can leave its range.
        """
        if dtype.bits < 32:
            return expr.op in ("*", "<<") and len(expr.args) > 1
        if dtype.kind != "int":
            return False
        return not self.rough.fits(expr) and self.rough.facts.bounds(expr) == INFINITE

    def _wrapping(self, expr: Arith, dtype: DType) -> Spelled:
        """The operator in the unsigned type of the same width, where it wraps."""
        wide = self.dialect.types["uint64"] if dtype.bits == 64 else "unsigned int"
        first = f"({wide}){self.at_least(expr.args[0], UNARY)}"
        if len(expr.args) == 1:
            return f"({self.type_of(dtype)})(0u - {first})", UNARY
        level = LEVEL[expr.op]
        rest = [self.at_least(arg, level + 1) for arg in expr.args[1:]]
        return f"({self.type_of(dtype)})({f' {expr.op} '.join([first, *rest])})", UNARY

    def _sum(self, expr: Arith) -> Spelled:
        """A sum of integers, with negative constants spelled as differences."""
        level = LEVEL["+"]
        out = self.at_least(expr.args[0], level)
        for term in expr.args[1:]:
            value = const_of(term)
            if value is not None and value < 0:
                out += f" - {literal(-value, term.dtype, self.dialect)}"
            else:
                out += f" + {self.at_least(term, level + 1)}"
        return out, level

    def _cut(self, spelled: Spelled, dtype: DType) -> Spelled:
        """What C computed in int, cut back to a narrower type."""
        return (f"({self.type_of(dtype)})({spelled[0]})", UNARY) if narrow_int(dtype) else spelled

    def _unary(self, expr: Arith, dtype: DType) -> Spelled:
        if expr.op in MAY_OVERFLOW and dtype.is_integer and self._overflows(expr, dtype):
            return self._wrapping(expr, dtype)
        inner = self.at_least(expr.args[0], UNARY)
        if expr.op == "not":
            return f"!{inner}", UNARY
        space = " " if inner.startswith("-") else ""
        return self._cut((f"{expr.op}{space}{inner}", UNARY), dtype)

    def _division(self, expr: Arith, dtype: DType) -> Spelled:
        """Floor division and its remainder; C's own where both sides are proved not to be negative."""
        a, b = expr.args
        if dtype.is_float:
            return self._float_division(expr, dtype)
        natural = dtype.kind == "uint" or self.rough.is_natural(a)
        if natural and self.rough.facts.bounds(b)[0] > 0:
            op = "/" if expr.op == "//" else "%"
            return self._cut(
                (f"{self.at_least(a, LEVEL[op])} {op} {self.at_least(b, UNARY)}", LEVEL[op]), dtype
            )
        word = "floordiv" if expr.op == "//" else "floormod"
        quotient = self.dialect.floor_division.format(
            word=word, type=self.type_of(dtype), dtype=dtype, a=self.text(a), b=self.text(b)
        )
        return self._cut((quotient, ATOM), dtype)

    def _float_division(self, expr: Arith, dtype: DType) -> Spelled:
        if expr.op == "%":
            raise TargetError(
                "% of {dtype} has no code for {target}", at=expr.place, dtype=dtype, target=self.target
            )
        quotient = Arith("/", expr.args, place=expr.place)
        return self._call(Call("floor", (quotient,), type=dtype, place=expr.place))

    # -- functions
    def _call(self, expr: Call) -> Spelled:
        if isinstance(expr, Extern):
            return f"{expr.name}({', '.join([self.text(arg) for arg in expr.args])})", ATOM
        rows = self.dialect.functions
        row = rows.get(expr.word)
        if row is None:
            raise TargetError(
                "T.{word} has no code for {target}", at=expr.place, word=expr.word, target=self.target,
                known=", ".join(sorted(rows)), hint="it has {known}",
            )  # fmt: skip
        if not row.takes(expr.type):
            raise TargetError(
                "T.{word} has no code for {target} that gives {dtype}", at=expr.place, word=expr.word,
                target=self.target, dtype=expr.type, known=", ".join(sorted(row.dtypes or ())),
                expected="one of {known}",
            )  # fmt: skip
        return row.text(self, expr)
