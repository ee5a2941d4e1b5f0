"""Walks over expressions that passes do thousands of times, spelled out by node class.

The generic `walk` and `substitute` read the marks of each node; on expressions these take a third
of the time (a GEMM to `threaded`: 14 ms with the generic ones, 5 ms with these).
"""

from __future__ import annotations

from collections.abc import Mapping

from .expr import Arith, Call, Cast, Const, Expr, Load, Var
from .rewrite import refold


def mentions(expr: Expr, name: str) -> bool:
    """Whether a variable of that name stands anywhere in the expression."""
    kind = type(expr)
    if kind is Var:
        return expr.name == name  # type: ignore[attr-defined]
    if kind is Const:
        return False
    return any(mentions(each, name) for each in parts_of(expr))


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly below."""
    match expr:
        case Arith() | Call():
            return expr.args
        case Load():
            return expr.index if expr.version is None else (*expr.index, expr.version)
        case Cast():
            return (expr.value,)
        case _:
            return ()


def replaced(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with variables replaced by name; integer arithmetic is folded again."""
    kind = type(expr)
    if kind is Var:
        return values.get(expr.name, expr)  # type: ignore[attr-defined]
    if kind is Const:
        return expr
    if isinstance(expr, (Arith, Call)):
        args = tuple([replaced(each, values) for each in expr.args])
        if all(map(_same, args, expr.args)):
            return expr
        if isinstance(expr, Arith):
            return refold(Arith(expr.op, args, place=expr.place))
        return Call(expr.word, args, type=expr.type, place=expr.place)
    if isinstance(expr, Load):
        index = tuple([replaced(each, values) for each in expr.index])
        version = None if expr.version is None else replaced(expr.version, values)
        if all(map(_same, index, expr.index)) and version is expr.version:
            return expr
        return Load(expr.buffer, index, version=version, place=expr.place)
    if isinstance(expr, Cast):
        value = replaced(expr.value, values)
        return expr if value is expr.value else expr.but(value=value)
    return expr


def _same(a: object, b: object) -> bool:
    return a is b
