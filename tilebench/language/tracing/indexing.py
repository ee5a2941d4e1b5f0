"""One index of a buffer: negative numbers, ranges, and boxes whose extent folds to a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from ...errors import DTypeError, LanguageError, ShapeError
from ...ir import Const, Expr, Var, int32, lift
from ...ir.arith import Linear, linear
from ...ir.expr_walks import replaced
from .builder import here, in_trace
from .promote import convert, expr_of, number_of

if TYPE_CHECKING:
    from .values import BufferView


def index_expr(view: BufferView, axis: int, given: object) -> Expr:
    """An index as an int32 expression; a negative number counts from the end.

    Raises `ShapeError` for a number outside the buffer, `DTypeError` for what is no integer.
    """
    extent = view.buffer.shape[axis]
    expr = _integer(view, axis, given)
    if not isinstance(expr, Const):
        return expr
    if not isinstance(extent, int):
        return extent + expr.value if expr.value < 0 else expr
    value = expr.value + extent if expr.value < 0 else expr.value
    if not 0 <= value < extent:
        raise ShapeError(
            "index {value} is outside dimension {axis} of {name}",
            value=expr.value,
            axis=axis,
            name=view.name,
            extent=extent,
            last=extent - 1,
            expected="0 to {last} (the extent is {extent})",
            also=[("{name} is declared here", view.place)],
        )
    return Const(value)


def _integer(view: BufferView, axis: int, given: object) -> Expr:
    number = number_of(given)
    if isinstance(given, (str, type(None))) or (number is None and not hasattr(given, "expr")):
        raise LanguageError(
            "{kind} cannot index {name}",
            kind=type(given).__name__,
            name=view.name,
            hint="an index is an integer",
        )
    expr = expr_of(given)
    if not expr.dtype.is_integer:
        raise DTypeError(
            "index {axis} of {name} is {dtype}, an integer is needed",
            axis=axis,
            name=view.name,
            dtype=expr.dtype,
            hint="use // for integer division, or T.cast(x, T.int32)",
        )
    return convert(expr, int32)


class UnknownExtent(ShapeError):
    """The extent of `start : stop` is a value of the running kernel, `size`."""

    start: Expr
    size: Expr


def index_box(view: BufferView, axis: int, given: object) -> tuple[Expr, int]:
    """Start and extent of an index (extent 1) or of `lo : hi` in one dimension.

    Raises `ShapeError` when the extent is no positive number known now, or, for buffers on chip,
    when a constant range leaves the buffer (of a global one such elements read as zero).
    """
    if not isinstance(given, slice):
        return index_expr(view, axis, given), 1
    given = cast("slice[object, object, object]", given)
    if given.step is not None and number_of(given.step) != 1:
        raise LanguageError("a region has no step", hint="copy the whole range and index it with a factor")
    extent = view.buffer.shape[axis]
    lo = Const(0) if given.start is None else _end(view, axis, given.start)
    hi = lift(extent) if given.stop is None else _end(view, axis, given.stop)
    form = _extent(lo, hi)
    if form.terms:
        _not_constant(view, axis, lo, hi, form.expr())
    # A range without elements is one of an array whose size is zero.
    if form.constant < (0 if extent == 0 else 1):
        raise ShapeError(
            "the range of dimension {axis} of {name} is empty",
            axis=axis,
            name=view.name,
            count=form.constant,
            expected="at least one element",
            found="{count}",
        )
    if (
        isinstance(lo, Const)
        and isinstance(extent, int)
        and view.scope != "global"
        and (lo.value < 0 or lo.value + form.constant > extent)
    ):
        raise ShapeError(
            "the range {lo} : {hi} leaves dimension {axis} of {name}, whose extent is {extent}",
            lo=lo.value,
            hi=lo.value + form.constant,
            axis=axis,
            name=view.name,
            extent=extent,
            also=[("{name} is declared here", view.place)],
        )
    return lo, form.constant


def _extent(lo: Expr, hi: Expr) -> Linear:
    """How many elements lie between two ends, also where they are names for sums: `hi = lo + 4`."""
    form, names = linear(hi - lo), in_trace("a region").values
    while any(isinstance(term, Var) and term.name in names for term, _ in form.terms):
        # Names are taken apart one layer at a time, so that a common one cancels before it is.
        hi = sum((replaced(term, names) * factor for term, factor in form.terms), lift(form.constant))
        form = linear(hi)
    return form


def _end(view: BufferView, axis: int, given: object) -> Expr:
    expr = _integer(view, axis, given)
    if isinstance(expr, Const) and expr.value < 0:
        return lift(view.buffer.shape[axis]) + expr.value
    return expr


def _not_constant(view: BufferView, axis: int, lo: Expr, hi: Expr, size: Expr) -> NoReturn:
    from ...ir import show

    error = UnknownExtent(
        "the extent of dimension {axis} of this region of {name} is not a number known at compile time",
        axis=axis,
        name=view.name,
        lo=show(lo),
        hi=show(hi),
        found="{lo} : {hi}",
        hint="write it as `start : start + number`",
        at=here(),
    )
    error.start, error.size = lo, size
    raise error
