"""A function for given sizes and scalars: names of parameters replaced by numbers, once and for all.

What needs numbers (the reference, the simulator, counts of work) runs on the function for the sizes of
one call; what compiles keeps the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ShapeError
from .expr import Buffer, Const, Expr, Load, Region, Var
from .node import ATTRIBUTE, RESULT, Node, map_children
from .printer import show
from .rewrite import refold, substitute
from .stmt import Function

Number = int | float | bool


def size_value(size: int | Expr, values: Mapping[str, Number]) -> int:
    """A size for these values of its names. `ShapeError` where one has none."""
    if isinstance(size, int):
        return size
    found = substitute(size, {name: Const(value) for name, value in values.items()})
    if not isinstance(found, Const):
        raise ShapeError(
            "the size {size} is not known: {found} has no value", size=show(size), found=show(found)
        )
    return int(found.value)


def for_sizes(function: Function, values: Mapping[str, Number]) -> Function:
    """The function with parameters of these names replaced by numbers; they are no parameters any more.

    Shapes, strides and grids that name them become integers. Raises `ShapeError` for a size that still
    has a name without a value, or that is below zero.
    """
    scalars = {param.name: param for param in function.params if isinstance(param, Var)}
    numbers: dict[str, Expr] = {
        name: Const(values[name], type=var.type) for name, var in scalars.items() if name in values
    }
    if not numbers:
        return function
    sized = _Sized(numbers)
    params = tuple(
        sized.buffer(param) if isinstance(param, Buffer) else param
        for param in function.params
        if param.name not in numbers
    )
    info = tuple((key, value) for key, value in function.info if key != "assume")
    return sized.node(function).but(params=params, info=info)


class _Sized:
    """Replaces names by numbers in expressions, in attributes and in the buffers that nodes hold."""

    def __init__(self, numbers: Mapping[str, Expr]) -> None:
        self.numbers = numbers
        self._buffers: dict[Buffer, Buffer] = {}

    def size(self, size: Any) -> Any:
        if not isinstance(size, Expr):
            return size
        found = substitute(size, self.numbers)
        if not isinstance(found, Const):
            return found
        if found.value < 0:
            raise ShapeError("the size {size} is {value}", size=show(size), value=found.value)
        return int(found.value)

    def buffer(self, buffer: Buffer) -> Buffer:
        if all(isinstance(size, int) for size in (*buffer.shape, *(buffer.strides or ()))):
            return buffer
        found = self._buffers.get(buffer)
        if found is None:
            strides = None if buffer.strides is None else tuple(self.size(size) for size in buffer.strides)
            shape = tuple(self.size(size) for size in buffer.shape)
            found = self._buffers[buffer] = replace(buffer, shape=shape, strides=strides)
        return found

    def attribute(self, value: Any) -> Any:
        if isinstance(value, Buffer):
            return self.buffer(value)
        if isinstance(value, Expr):
            return self.size(value)
        if isinstance(value, tuple) and any(isinstance(part, Expr) for part in value):  # pyright: ignore[reportUnknownVariableType]
            return tuple([self.size(part) for part in value])  # pyright: ignore[reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]

    def node(self, found: Any) -> Any:
        if isinstance(found, Var):
            return self.numbers.get(found.name, found)
        node: Node = map_children(found, self.node)
        changes: dict[str, Any] = {}
        for mark in node.marks:
            if mark.mark in (ATTRIBUTE, RESULT) and not isinstance(node, Function):
                value = getattr(node, mark.name)
                sized = self.attribute(value)
                if sized is not value and sized != value:
                    changes[mark.name] = sized
        if changes:
            node = node.but(**changes)
        return refold(node) if isinstance(node, Expr) and not isinstance(node, (Load, Region)) else node


__all__ = ["Number", "for_sizes", "size_value"]
