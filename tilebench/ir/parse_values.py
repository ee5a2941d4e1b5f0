"""Reading values, regions and expressions of a stage's text: the lower half of the parser."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import IRError, Place, TileError, nearest
from .arith import linear
from .dtypes import ALL, DType, boolean
from .expr import FALSE, TRUE, Arith, Buffer, Call, Cast, Const, Expr, Load, Region, Var
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
        # Values that the text names: those bound at its head, and what allocations say of their buffers.
        self.values: dict[str, Any] = {}
        self.decided: dict[str, Any] = {}

    # -- places and errors
    def place(self, at: Any) -> Place:
        return Place(self.file, at.lineno, at.col_offset, at.end_lineno or 0, at.end_col_offset or 0)

    def fail(self, at: Any, what: str, hint: str = "", **values: Any) -> NoReturn:
        raise IRError(what, at=self.place(at), hint=hint, **values)

    def word_of(self, at: ast.expr) -> str | None:
        """`name` when the expression is `T.name`."""
        if isinstance(at, ast.Attribute) and isinstance(at.value, ast.Name) and at.value.id == "T":
            return at.attr
        return None

    # -- values of attributes
    def value(self, at: ast.expr) -> Any:
        match at:
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
            case ast.Attribute() if (word := self.word_of(at)) in ALL:
                return ALL[word]
            case ast.Attribute(value=ast.Name(id=name), attr=field) if name in self.names:
                return self.value_of_buffer(at, name, field)
            case ast.Call() if (word := self.word_of(at.func)) is not None:
                if word == "float" and len(at.args) == 1:
                    return float(self.value(at.args[0]))
                cls = self.registry.values.get(word)
                if cls is not None:
                    return self.construct(at, cls)
            case _:
                pass
        return self.operand(at)

    def value_of_buffer(self, at: ast.Attribute, name: str, field: str) -> Any:
        """What the allocation of a buffer says: `C_l.layout`."""
        value = self.decided.get(f"{name}.{field}")
        if value is None:
            own = {key: value for key, value in self.decided.items() if key.startswith(f"{name}.")}
            known = [key for key, value in own.items() if value is not None]
            self.fail(
                at,
                "{name} says no {field}",
                hint="it says " + ", ".join(known) if known else "write the value out",
                name=name,
                field=field,
            )
        return value

    def construct(self, at: ast.Call, cls: Callable[..., Any]) -> Any:
        args = [self.value(each) for each in at.args]
        keys = {each.arg or "": self.value(each.value) for each in at.keywords}
        try:
            return cls(*args, **keys)
        except TypeError as error:
            return self.fail(at, "this value cannot be made: {why}", why=error)
        except TileError as error:
            error.place = error.place or self.place(at)
            raise

    # -- expressions
    def operand(self, at: ast.expr) -> Any:
        """A region where slices or a bare buffer stand, a tuple, or an expression."""
        match at:
            case ast.Constant(value=None):
                return None
            case ast.Tuple(elts=parts):
                return tuple(self.operand(each) for each in parts)
            case ast.Name(id=name) if isinstance(self.names.get(name), Buffer):
                whole: Any = self.names[name]
                if whole.rank:
                    return self.region(at, whole, [], None)
            case ast.Call(func=ast.Attribute(attr="version", value=ast.Name()), args=[_]):
                buffer, version = self.target(at)
                return self.region(at, buffer, [], version)
            case ast.Subscript():
                buffer, version = self.target(at.value)
                parts = at.slice.elts if isinstance(at.slice, ast.Tuple) else [at.slice]
                if any(isinstance(each, ast.Slice) for each in parts):
                    return self.region(at, buffer, parts, version)
            case _:
                pass
        return self.expr(at)

    def target(self, at: ast.expr) -> tuple[Buffer, Expr | None]:
        """The buffer, and the version, that stand before brackets."""
        match at:
            case ast.Call(func=ast.Attribute(attr="version", value=inner), args=[version]):
                return self.target(inner)[0], self.expr(version)
            case ast.Name(id=name) if isinstance(self.names.get(name), Buffer):
                buffer: Any = self.names[name]
                return buffer, None
            case _:
                return self.fail(at, "a buffer is expected here")

    def region(self, at: ast.expr, buffer: Buffer, parts: list[ast.expr], version: Expr | None) -> Region:
        start: list[Expr] = []
        extent: list[int] = []
        if not parts:
            start, extent = [Const(0)] * buffer.rank, list(buffer.extents)
        elif len(parts) != buffer.rank:
            self.fail(at, "{name} has rank {rank}", name=buffer.name, rank=buffer.rank)
        for each in parts:
            if not isinstance(each, ast.Slice) or each.lower is None or each.upper is None:
                self.fail(each, "a box is written `start : start + extent` in every dimension")
            lower, upper = self.expr(each.lower), self.expr(each.upper)
            start.append(lower)
            extent.append(self.extent(each, lower, upper))
        return Region(buffer, tuple(start), extent=tuple(extent), version=version, place=self.place(at))

    def extent(self, at: ast.expr, lower: Expr, upper: Expr) -> int:
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
            self.fail(at, "a box is written `start : start + extent` with a constant extent")
        return above.constant - below.constant

    def expr(self, at: ast.expr) -> Expr:
        return self._expr(at).at(self.place(at))

    def _expr(self, at: ast.expr) -> Any:
        match at:
            case ast.Constant(value=bool() as value):
                return TRUE if value else FALSE
            case ast.Constant(value=int() as value):
                return Const(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return Const(-value)
            case ast.Name(id=name):
                return self.name(at, name)
            case ast.Subscript():
                buffer, version = self.target(at.value)
                parts = at.slice.elts if isinstance(at.slice, ast.Tuple) else [at.slice]
                return Load(buffer, tuple(self.expr(each) for each in parts), version=version)
            case ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.UnaryOp():
                return self.arith(at)
            case ast.Call():
                return self.call(at)
            case _:
                return self.fail(at, "a stage has no such expression")

    def name(self, at: ast.expr, name: str) -> Expr:
        if name in self.values:
            kind = type(self.values[name]).__name__
            self.fail(at, "{name} is a T.{kind}; a number is expected here", name=name, kind=kind)
        bound = self.names.get(name)
        if bound is None:
            close = nearest(name, [*self.names, *self.values])
            self.fail(
                at,
                "the name {name} is not bound",
                hint=f"did you mean {close[0]}?" if close else "",
                name=name,
            )
        if isinstance(bound, Buffer):
            if bound.rank:
                self.fail(at, "{name} is a buffer; an element is expected", name=name)
            return Load(bound, ())
        return bound

    def arith(self, at: Any) -> Expr:
        match at:
            case ast.UnaryOp():
                return Arith(OPERATORS[type(at.op)], (self.expr(at.operand),))
            case ast.BoolOp():
                return Arith(OPERATORS[type(at.op)], tuple(self.expr(each) for each in at.values))
            case ast.Compare(ops=[op], comparators=[right]):
                return Arith(self.operator(at, op), (self.expr(at.left), self.expr(right)))
            case ast.BinOp():
                return self.binary(at)
            case _:
                return self.fail(at, "a stage has no such expression")

    def operator(self, at: ast.expr, op: Any) -> str:
        found = OPERATORS.get(op.__class__)
        return found if found is not None else self.fail(at, "a stage has no such operator")

    def binary(self, at: ast.BinOp) -> Expr:
        """A flat chain for n-ary operators, gathered without recursion down its left side."""
        op = self.operator(at, at.op)
        rights: list[ast.expr] = [at.right]
        left: ast.expr = at.left
        # Parentheses are not in the tree, so a parenthesised left side of the same operator is told
        # by its columns: a bare chain starts where its first operand starts.
        while op in CHAINED and isinstance(left, ast.BinOp) and type(left.op) is type(at.op):
            if left.col_offset != at.col_offset or left.lineno != at.lineno:
                break
            rights.append(left.right)
            left = left.left
        parts = [self.expr(left), *(self.expr(each) for each in reversed(rights))]
        return Arith(op, tuple(parts))

    def call(self, at: ast.Call) -> Expr:
        word = self.word_of(at.func)
        if word is None:
            self.fail(at, "only words of the language (T.name) can be called")
        if word in ALL and len(at.args) == 1:
            return self.literal(at, ALL[word])
        if word == "cast" and len(at.args) == 2:
            dtype = self.value(at.args[1])
            return Cast(self.expr(at.args[0]), type=dtype)
        if word == "chain" and len(at.args) > 2:
            return Arith(str(self.value(at.args[0])), tuple(self.expr(a) for a in at.args[1:]))
        function = self.registry.functions.get(word)
        if function is None:
            close = nearest(word, list(self.registry.functions))
            self.fail(
                at,
                "there is no function T.{name}",
                hint=f"did you mean T.{close[0]}?" if close else "",
                name=word,
            )
        args = tuple(self.expr(each) for each in at.args)
        if len(args) != function.arity or at.keywords:
            self.fail(at, "T.{name} takes {n} arguments", name=word, n=function.arity)
        return Call(word, args, type=function.result(tuple(a.dtype for a in args)))

    def literal(self, at: ast.Call, dtype: DType) -> Const:
        value = self.value(at.args[0])
        if dtype == boolean:
            return Const(bool(value), type=dtype)
        if not isinstance(value, (int, float, str)):
            self.fail(at, "a literal is written T.{name}(number)", name=dtype.name)
        number = float(value)
        if dtype.is_float:
            return Const(number, type=dtype)
        if not math.isfinite(number):
            self.fail(at, "{name} has no infinity", name=dtype.name)
        return Const(int(value), type=dtype)
