"""Assignments to elements of buffers and to scalars of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import DType, Expr, Store
from .builder import inside_kernel
from .promote import cast_expr, convert, expr_of, literal, number_of

if TYPE_CHECKING:
    from .values import ElementRef, VarRef


def store_element(target: ElementRef, value: object) -> None:
    """`A[i, j] = value`: the value is converted to the buffer's dtype."""
    view = target.view
    view.check_element("write")
    builder = inside_kernel(f"a store to {view.name}")
    new = stored(value, view.buffer.dtype)
    builder.emit(Store(view.buffer, target.index, new, place=builder.place))


def stored(value: object, dtype: DType) -> Expr:
    """A value as memory of a dtype takes it: a number is rounded to it once, others are converted."""
    number = number_of(value)
    if number is None:
        return convert(expr_of(value), dtype)
    cuts = isinstance(number, float) and dtype.is_integer
    return cast_expr(number, dtype) if cuts else literal(number, dtype)


def assign_var(var: VarRef, value: object) -> None:
    """`x = value` for a scalar of `T.alloc_var`."""
    var.view.check_scope()
    builder = inside_kernel(f"a store to {var.name}")
    builder.emit(Store(var.view.buffer, (), stored(value, var.view.buffer.dtype), place=builder.place))
