"""Calls of functions that are no words: those of a kernel's own text."""

from __future__ import annotations

from .dtypes import DType, int32
from .expr import Call, Expr
from .node import attribute, node, operand


@node
class Extern(Call):
    """A function of values that the kernel's own text for the target has, by its `name`; `word` says so."""

    word: str = attribute()
    args: tuple[Expr, ...] = operand()
    type: DType = attribute(default=int32)
    name: str = attribute(default="")
