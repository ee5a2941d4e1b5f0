"""What index arithmetic of one thread's code gives all threads of a block, for many turns of loops at once.

A value is a number that all lanes share, or an array whose last axis are the threads of the block and whose
axes in front are turns of loops, the outermost nearest. None stands for what only data or a launch can say.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from ..ir import Arith, Call, Cast, Const, Expr, Load, Var

Value: TypeAlias = Any
Mask: TypeAlias = Any  # bools that broadcast with values; True: every lane

_python: Any = operator
_where: Any = np.where
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": _python.add, "-": _python.sub, "*": _python.mul, "//": _python.floordiv, "%": _python.mod,
    "^": _python.xor, "&": _python.and_, "|": _python.or_, "<<": _python.lshift, ">>": _python.rshift,
    "<": _python.lt, "<=": _python.le, ">": _python.gt, ">=": _python.ge, "==": _python.eq,
    "!=": _python.ne, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip


class LaneValues:
    """Names of values, and scalars of a thread that code assigns to (`T.alloc_var`)."""

    def __init__(self, threads: int, known: Mapping[str, Value]) -> None:
        self.thread = np.arange(threads, dtype=np.int64)
        self.names: dict[str, Value] = dict(known)
        self.scalars: dict[str, Value] = {}

    def value(self, expr: Expr) -> Value:
        """The value of an expression, None where it is not known."""
        match expr:
            case Const():
                return expr.value
            case Var():
                return self.names.get(expr.name)
            case Load():
                return self.scalars.get(expr.buffer.name) if expr.buffer.scope == "var" else None
            case Arith():
                return self._arith(expr)
            case Cast():
                return self.value(expr.value) if expr.type.is_integer else None
            case Call():
                return self._call(expr)
            case _:
                return None

    def _arith(self, expr: Arith) -> Value:
        parts = [self.value(part) for part in expr.args]
        if any(part is None for part in parts):
            return None
        if len(parts) == 1:
            unary: Mapping[str, Callable[[Any], Any]] = {
                "-": _python.neg, "~": _python.invert, "not": np.logical_not,
            }  # fmt: skip
            return unary[expr.op](parts[0]) if expr.op in unary else None
        apply = _OPERATORS.get(expr.op)
        return reduce(apply, parts) if apply is not None else None

    def _call(self, expr: Call) -> Value:
        if expr.word == "thread_id":
            return self.thread
        parts = [self.value(part) for part in expr.args]
        if expr.word == "if_then_else":
            if parts[0] is None:
                return None
            if not np.ndim(parts[0]):
                return parts[1 if parts[0] else 2]
            return None if parts[1] is None or parts[2] is None else _where(*parts)
        if expr.word in ("min", "max") and not any(part is None for part in parts):
            return reduce(np.minimum if expr.word == "min" else np.maximum, parts)
        return None

    def assign(self, name: str, value: Value, mask: Mask) -> None:
        """A scalar gets a value in the lanes of a mask."""
        if mask is True or value is None:
            self.scalars[name] = value
            return
        before = self.scalars.get(name)
        self.scalars[name] = None if before is None else _where(mask, value, before)
