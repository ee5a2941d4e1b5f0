"""From values to text: expressions, regions and attribute values as Python in the words of the language."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from .dtypes import DType, boolean, int32
from .expr import Arith, Buffer, Call, Cast, Const, Expr, Load, Region, Reinterpret, Var
from .extern import Extern

# Binding strength of Python's operators; a weaker operand is put in parentheses.
LEVEL = {
    "or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
UNARY, ATOM = 11, 20
# A flat sum longer than this is printed as T.sum_of(...): CPython's parser recurses on operators.
LONGEST_CHAIN = 64


def show(value: Any) -> str:
    """An expression, region or attribute value as Python text."""
    return _expr(value)[0] if isinstance(value, (Expr, Region)) else show_value(value)


def show_value(value: Any) -> str:
    """An attribute value: number, text, dtype, tuple, expression or value class."""
    if value.__class__ in _SHOWN:
        return _expr(value)[0]
    if isinstance(value, DType):  # before str: the language's dtypes are both
        return f"T.{value.name}"
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'T.float("{value}")'
    if isinstance(value, Buffer):
        return value.name
    if isinstance(value, tuple):
        inner = ", ".join(show_value(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
        return f"({inner},)" if len(value) == 1 else f"({inner})"  # pyright: ignore[reportUnknownArgumentType]
    if dataclasses.is_dataclass(value):
        return _show_dataclass(value)
    raise TypeError(f"an attribute cannot hold {type(value).__name__}")


def _quoted(text: str) -> str:
    """A string literal in double quotes, as kernels are written, unless it holds one."""
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in text else shown


@cache
def _shown_fields(cls: type) -> tuple[tuple[str, bool, Any], ...]:
    """The fields of a value class that are printed: name, whether by position, default."""
    missing = dataclasses.MISSING
    fields: Any = dataclasses.fields(cls)
    return tuple(
        (mark.name, mark.default is missing and not mark.kw_only, mark.default)
        for mark in fields
        if mark.init and mark.compare
    )


def _show_dataclass(value: Any) -> str:
    parts: list[str] = []
    for name, positional, default in _shown_fields(value.__class__):
        field = getattr(value, name)
        if positional:
            parts.append(show_value(field))
        elif field != default:
            parts.append(f"{name}={show_value(field)}")
    return f"T.{type(value).__name__}({', '.join(parts)})"


def _literal(value: Any, dtype: DType) -> str:
    if dtype == int32:
        return str(value)
    if dtype == boolean:
        return "True" if value else "False"
    if dtype.is_float:
        number = float(value)
        if not math.isfinite(number):
            return f'T.{dtype.name}("{number}")'
        text = repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
        # -0.0 must keep its sign through a round trip.
        return f"T.{dtype.name}({'-0.0' if number == 0 and math.copysign(1, number) < 0 else text})"
    return f"T.{dtype.name}({value})"


def _at_least(expr: Expr, level: int) -> str:
    text, strength = _expr(expr)
    return text if strength >= level else f"({text})"


def _expr(expr: Any) -> tuple[str, int]:
    """Text and binding strength. By class in a table: a chain of patterns costs more than the text."""
    try:
        return _SHOWN[expr.__class__](expr)
    except KeyError:
        raise TypeError(f"no expression: {type(expr).__name__}") from None


def _const(expr: Const) -> tuple[str, int]:
    text = _literal(expr.value, expr.type)
    return text, UNARY if text.startswith("-") else ATOM


def _extern(expr: Extern) -> tuple[str, int]:
    parts = [f"T.{expr.type.name}", f'"{expr.name}"', *[_expr(arg)[0] for arg in expr.args]]
    return f"T.{expr.word}({', '.join(parts)})", ATOM


_SHOWN: dict[type, Callable[[Any], tuple[str, int]]] = {
    Var: lambda expr: (expr.name, ATOM),
    Const: _const,
    Load: lambda expr: (show_access(expr.buffer, expr.index, expr.version), ATOM),
    Arith: lambda expr: _arith(expr),
    Cast: lambda expr: (f"T.cast({_expr(expr.value)[0]}, T.{expr.type.name})", ATOM),
    Reinterpret: lambda expr: (f"T.reinterpret({_expr(expr.value)[0]}, T.{expr.type.name})", ATOM),
    Extern: lambda expr: _extern(expr),
    Call: lambda expr: (f"T.{expr.word}({', '.join([_expr(a)[0] for a in expr.args])})", ATOM),
    Region: lambda expr: (show_region(expr), ATOM),
}


def _arith(expr: Arith) -> tuple[str, int]:
    if len(expr.args) == 1:
        space = " " if expr.op == "not" else ""
        level = LEVEL["not"] if expr.op == "not" else UNARY
        return f"{expr.op}{space}{_at_least(expr.args[0], level)}", level
    if len(expr.args) > LONGEST_CHAIN:
        inner = ", ".join(_expr(a)[0] for a in expr.args)
        return f'T.chain("{expr.op}", {inner})', ATOM
    level = LEVEL[expr.op]
    # The first operand may be as strong as the operator itself only where that does not change
    # the tree: an n-ary chain printed bare on the left would parse as part of this one.
    first = expr.args[0]
    same = isinstance(first, Arith) and first.op == expr.op and level != LEVEL["<"]
    bare = same and expr.op not in ("+", "*", "and", "or", "&", "|", "^")
    first_level = level if (bare or not same) and level != LEVEL["<"] else level + 1
    parts = [_at_least(first, first_level), *(_at_least(a, level + 1) for a in expr.args[1:])]
    return f" {expr.op} ".join(parts), level


def show_access(buffer: Buffer, index: tuple[Expr, ...], version: Expr | None) -> str:
    name = buffer.name if version is None else f"{buffer.name}.version({_expr(version)[0]})"
    if not index:
        return name
    return f"{name}[{', '.join(_expr(i)[0] for i in index)}]"


def show_region(region: Region) -> str:
    """`A` for a whole buffer, `A[i, j]` for a head address, `A[k, i : i + 8, :]` for a box.

    As people write them: an index alone is one element of its dimension, unless the box is of a single one,
    and `:` is all of a dimension.
    """
    name = region.buffer.name
    if region.version is not None:
        name = f"{name}.version({_expr(region.version)[0]})"
    if region.is_whole:
        return name
    if region.extent is None:
        return f"{name}[{', '.join(_expr(s)[0] for s in region.start)}]"
    parts: list[str] = []
    last = len(region.start) - 1
    single = all(extent == 1 for extent in region.extent)
    for dim, (start, extent) in enumerate(zip(region.start, region.extent, strict=True)):
        first = _expr(start)[0]
        if extent == 1 and not (single and dim == last):
            parts.append(first)
        elif first == "0" and extent == region.buffer.shape[dim]:
            parts.append(":")
        else:
            parts.append(f"{first} : {_expr(start + extent)[0]}")
    return f"{name}[{', '.join(parts)}]"
