"""Assignments to elements of buffers and to scalars of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Expr, Store
from .builder import inside_kernel
from .promote import cast_expr, convert, expr_of, literal, number_of

if TYPE_CHECKING:
    from .values import BufferView, ElementRef, VarRef


def store_element(target: ElementRef, value: object) -> None:
    """`A[i, j] = value`: the value is converted to the buffer's dtype."""
    view = target.view
    view.check_element("write")
    builder = inside_kernel(f"a store to {view.name}")
    builder.emit(Store(view.buffer, target.index, stored(value, view), place=builder.place))


def stored(value: object, view: BufferView) -> Expr:
    """A value as it is stored in a buffer: numbers take its dtype, others are converted."""
    number = number_of(value)
    if number is None:
        return convert(expr_of(value), view.buffer.dtype)
    cuts = isinstance(number, float) and view.buffer.dtype.is_integer
    return cast_expr(number, view.buffer.dtype) if cuts else literal(number, view.buffer.dtype)


def assign_var(var: VarRef, value: object) -> None:
    """`x = value` for a scalar of `T.alloc_var`."""
    var.view.check_scope()
    builder = inside_kernel(f"a store to {var.name}")
    builder.emit(Store(var.view.buffer, (), stored(value, var.view), place=builder.place))
