"""Reading values, regions and expressions of a stage's text: the lower half of the parser."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import IRError, Place, TileError, nearest
from .arith import linear
from .dtypes import ALL, DType, boolean
from .expr import FALSE, TRUE, Arith, Buffer, Call, Cast, Const, Expr, Load, Region, Reinterpret, Var
from .extern import Extern
from .registry import Registry

OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.USub: "-", ast.Not: "not", ast.Invert: "~", ast.And: "and", ast.Or: "or",
}  # fmt: skip
CHAINED = ("+", "*", "&", "|", "^")


class ValueParser:
    """What is common to a whole text: its names, its places, and its expressions."""

    def __init__(self, registry: Registry, file: str) -> None:
        self.registry = registry
        self.file = file
        self.names: dict[str, Var | Buffer] = {}
        # Values that are defined at the text's head.
        self.values: dict[str, Any] = {}

    # -- places and errors
    def place(self, syntax: Any) -> Place:
        start, end = (syntax.lineno, syntax.col_offset), (syntax.end_lineno or 0, syntax.end_col_offset or 0)
        return Place(self.file, *start, *end)

    def fail(self, syntax: Any, what: str, hint: str = "", **values: Any) -> NoReturn:
        raise IRError(what, at=self.place(syntax), hint=hint, **values)

    def word_of(self, syntax: ast.expr) -> str | None:
        """`name` when the expression is `T.name`."""
        match syntax:
            case ast.Attribute(value=ast.Name(id="T"), attr=word):
                return word
            case _:
                return None

    # -- values of attributes
    def value(self, syntax: ast.expr) -> Any:
        match syntax:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Tuple(elts=parts):
                return tuple(self.value(each) for each in parts)
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.Attribute() if (word := self.word_of(syntax)) in ALL:
                return ALL[word]
            case ast.Call() if (word := self.word_of(syntax.func)) is not None:
                if word == "float" and len(syntax.args) == 1:
                    return float(self.value(syntax.args[0]))
                cls = self.registry.values.get(word)
                if cls is not None:
                    return self.construct(syntax, cls)
            case _:
                pass
        return self.operand(syntax)

    def construct(self, syntax: ast.Call, cls: Callable[..., Any]) -> Any:
        args = [self.value(each) for each in syntax.args]
        keys = {each.arg or "": self.value(each.value) for each in syntax.keywords}
        try:
            return cls(*args, **keys)
        except TypeError as error:
            return self.fail(syntax, "this value cannot be made: {why}", why=error)
        except TileError as error:
            error.place = error.place or self.place(syntax)
            raise

    # -- expressions
    def operand(self, syntax: ast.expr) -> Any:
        """A region where slices or a bare buffer stand, a tuple, or an expression."""
        match syntax:
            case ast.Constant(value=None):
                return None
            case ast.Tuple(elts=parts):
                return tuple(self.operand(each) for each in parts)
            case ast.Name(id=name) if isinstance(self.names.get(name), Buffer):
                whole: Any = self.names[name]
                if whole.rank:
                    return self.region(syntax, whole, [], None)
            case ast.Call(func=ast.Attribute(attr="version", value=ast.Name()), args=[_]):
                buffer, version = self.target(syntax)
                return self.region(syntax, buffer, [], version)
            case ast.Subscript():
                buffer, version = self.target(syntax.value)
                parts = syntax.slice.elts if isinstance(syntax.slice, ast.Tuple) else [syntax.slice]
                if any(isinstance(each, ast.Slice) for each in parts):
                    return self.region(syntax, buffer, parts, version)
            case _:
                pass
        return self.expr(syntax)

    def target(self, syntax: ast.expr) -> tuple[Buffer, Expr | None]:
        """The buffer, and the version, that stand before brackets."""
        match syntax:
            case ast.Call(func=ast.Attribute(attr="version", value=inner), args=[version]):
                return self.target(inner)[0], self.expr(version)
            case ast.Name(id=name) if isinstance(self.names.get(name), Buffer):
                buffer: Any = self.names[name]
                return buffer, None
            case _:
                return self.fail(syntax, "a buffer is expected here")

    def region(self, syntax: ast.expr, buffer: Buffer, parts: list[ast.expr], version: Expr | None) -> Region:
        start: list[Expr] = []
        extent: list[int] = []
        if not parts:
            start, extent = [Const(0)] * buffer.rank, list(buffer.extents)
        elif len(parts) != buffer.rank:
            self.fail(syntax, "{name} has rank {rank}", name=buffer.name, rank=buffer.rank)
        for part, size in zip(parts, buffer.shape, strict=False):
            first, count = self.side(part, size)
            start.append(first)
            extent.append(count)
        return Region(buffer, tuple(start), extent=tuple(extent), version=version, place=self.place(syntax))

    def side(self, part: ast.expr, size: Any) -> tuple[Expr, int]:
        """Where a box starts in one dimension, and its extent there: `i`, `:` or `i : i + 8`."""
        match part:
            case ast.Slice(lower=None, upper=None, step=None) if isinstance(size, int):
                return Const(0), size
            case ast.Slice(lower=ast.expr() as low, upper=ast.expr() as high, step=None):
                lower, upper = self.expr(low), self.expr(high)
                return lower, self.extent(part, lower, upper)
            case ast.Slice():
                return self.fail(part, "a box is written `start : start + extent`, or `:` for all of it")
            case _:
                return self.expr(part), 1

    def extent(self, syntax: ast.expr, lower: Expr, upper: Expr) -> int:
        if isinstance(lower, Const) and isinstance(upper, Const):
            return upper.value - lower.value
        low = lower.args if isinstance(lower, Arith) and lower.op == "+" else (lower,)
        high = upper.args if isinstance(upper, Arith) and upper.op == "+" else (upper,)
        shift = 0
        if isinstance(low[-1], Const):
            shift, low = low[-1].value, low[:-1]
        reach = 0
        if isinstance(high[-1], Const):
            reach, high = high[-1].value, high[:-1]
        if low == high:
            return reach - shift
        # A person who edits a stage writes sums in any order.
        below, above = linear(lower), linear(upper)
        if dict(below.terms) != dict(above.terms):
            self.fail(syntax, "a box is written `start : start + extent` with a constant extent")
        return above.constant - below.constant

    def expr(self, syntax: ast.expr) -> Expr:
        return self._expr(syntax).at(self.place(syntax))

    def _expr(self, syntax: ast.expr) -> Any:
        match syntax:
            case ast.Constant(value=bool() as value):
                return TRUE if value else FALSE
            case ast.Constant(value=int() as value):
                return Const(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return Const(-value)
            case ast.Name(id=name):
                return self.name(syntax, name)
            case ast.Subscript():
                buffer, version = self.target(syntax.value)
                parts = syntax.slice.elts if isinstance(syntax.slice, ast.Tuple) else [syntax.slice]
                return Load(buffer, tuple(self.expr(each) for each in parts), version=version)
            case ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.UnaryOp():
                return self.arith(syntax)
            case ast.Call():
                return self.call(syntax)
            case _:
                return self.fail(syntax, "a stage has no such expression")

    def name(self, syntax: ast.expr, name: str) -> Expr:
        if name in self.values:
            kind = type(self.values[name]).__name__
            self.fail(syntax, "{name} is a T.{kind}; a number is expected here", name=name, kind=kind)
        bound = self.names.get(name)
        if bound is None:
            close = nearest(name, [*self.names, *self.values])
            self.fail(
                syntax,
                "the name {name} is not bound",
                hint=f"did you mean {close[0]}?" if close else "",
                name=name,
            )
        if isinstance(bound, Buffer):
            if bound.rank:
                self.fail(syntax, "{name} is a buffer; an element is expected", name=name)
            return Load(bound, ())
        return bound

    def arith(self, syntax: Any) -> Expr:
        match syntax:
            case ast.UnaryOp():
                return Arith(OPERATORS[type(syntax.op)], (self.expr(syntax.operand),))
            case ast.BoolOp():
                return Arith(OPERATORS[type(syntax.op)], tuple(self.expr(each) for each in syntax.values))
            case ast.Compare(ops=[op], comparators=[right]):
                return Arith(self.operator(syntax, op), (self.expr(syntax.left), self.expr(right)))
            case ast.BinOp():
                return self.binary(syntax)
            case _:
                return self.fail(syntax, "a stage has no such expression")

    def operator(self, syntax: ast.expr, op: Any) -> str:
        found = OPERATORS.get(op.__class__)
        return found if found is not None else self.fail(syntax, "a stage has no such operator")

    def binary(self, syntax: ast.BinOp) -> Expr:
        """A flat chain for n-ary operators, gathered without recursion down its left side."""
        op = self.operator(syntax, syntax.op)
        rights: list[ast.expr] = [syntax.right]
        left: ast.expr = syntax.left
        # Parentheses are not in the tree, so a parenthesised left side of the same operator is told
        # by its columns: a bare chain starts where its first operand starts.
        while op in CHAINED and isinstance(left, ast.BinOp) and type(left.op) is type(syntax.op):
            if left.col_offset != syntax.col_offset or left.lineno != syntax.lineno:
                break
            rights.append(left.right)
            left = left.left
        parts = [self.expr(left), *(self.expr(each) for each in reversed(rights))]
        return Arith(op, tuple(parts))

    def call(self, syntax: ast.Call) -> Expr:
        word = self.word_of(syntax.func)
        if word is None:
            self.fail(syntax, "only words of the language (T.name) can be called")
        if word in ALL and len(syntax.args) == 1:
            return self.literal(syntax, ALL[word])
        if word in ("cast", "reinterpret") and len(syntax.args) == 2:
            dtype = self.value(syntax.args[1])
            return (Cast if word == "cast" else Reinterpret)(self.expr(syntax.args[0]), type=dtype)
        if word == "chain" and len(syntax.args) > 2:
            return Arith(str(self.value(syntax.args[0])), tuple(self.expr(a) for a in syntax.args[1:]))
        if word == "call_extern" and len(syntax.args) > 1:
            dtype, name = (self.value(part) for part in syntax.args[:2])
            if not isinstance(dtype, DType) or not isinstance(name, str):
                self.fail(
                    syntax, "a function of the kernel's own is called as T.call_extern(dtype, name, ...)"
                )
            return Extern(word, tuple(self.expr(part) for part in syntax.args[2:]), type=dtype, name=name)
        function = self.registry.functions.get(word)
        if function is None:
            close = nearest(word, list(self.registry.functions))
            self.fail(
                syntax,
                "there is no function T.{name}",
                hint=f"did you mean T.{close[0]}?" if close else "",
                name=word,
            )
        args = tuple(self.expr(each) for each in syntax.args)
        if len(args) != function.arity or syntax.keywords:
            self.fail(syntax, "T.{name} takes {n} arguments", name=word, n=function.arity)
        return Call(word, args, type=function.result(tuple(a.dtype for a in args)))

    def literal(self, syntax: ast.Call, dtype: DType) -> Const:
        value = self.value(syntax.args[0])
        if dtype == boolean:
            return Const(bool(value), type=dtype)
        if not isinstance(value, (int, float, str)):
            self.fail(syntax, "a literal is written T.{name}(number)", name=dtype.name)
        number = float(value)
        if dtype.is_float:
            return Const(number, type=dtype)
        if not math.isfinite(number):
            self.fail(syntax, "{name} has no infinity", name=dtype.name)
        return Const(int(value), type=dtype)
