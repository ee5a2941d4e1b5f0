"""`T.gemm` into an array that each thread has to itself: loops of one thread, written as they are traced."""

from __future__ import annotations

from ..errors import LanguageError
from ..ir import FALSE, TRUE, Arith, Buffer, Call, Cast, Const, Expr, Load, Region, Stmt, Store, Var
from ..ir.dtypes import DType, int32
from .accumulation import gemm_sum_dtype
from .memory import AllocVar
from .structure import Serial
from .tracing.builder import Builder
from .tracing.operands import TileOperand


def check_own(a: TileOperand, b: TileOperand, c: TileOperand) -> None:
    """Raises `LanguageError` where a thread cannot read an operand whole by itself."""
    for part in (a, b):
        if part.view.scope == "fragment":
            raise LanguageError(
                "{c} is each thread's own, and a thread has a part of the fragment {name} only", c=c.name,
                name=part.name, also=[part.declared, c.declared],
                hint="T.copy {name} to T.alloc_shared(...), or accumulate in T.alloc_fragment(...)",
            )  # fmt: skip


def product_of_own(
    builder: Builder, a: Region, b: Region, c: Region, turned: tuple[bool, bool], start: Expr, whole_sum: bool
) -> None:
    """`c += op(a) @ op(b)` by each thread for itself, from zero where `start` holds.

    An element is summed in a scalar, in the dtype that a gemm of tiles sums in, and rounded once; with
    `whole_sum` the product of bytes is summed in int32, and that added to a float32.
    """
    place = builder.place
    m, n = (c.extent or c.buffer.extents)[-2:]
    k = (a.extent or a.buffer.extents)[-2 if turned[0] else -1]
    i, j, step = (Var(builder.unique(letter)) for letter in "ijk")
    formed = int32 if whole_sum else gemm_sum_dtype(c.buffer.dtype)
    total = Buffer(builder.unique(f"{c.buffer.name}_sum"), (), formed, "var")
    x = _element(a, (step, i) if turned[0] else (i, step), formed)
    y = _element(b, (j, step) if turned[1] else (step, j), formed)
    index = _index(c, (i, j))
    old = _started(Load(c.buffer, index, place=place), start)
    first: Expr = Const(0, type=int32) if whole_sum else _cast(old, formed)
    result: Expr = Load(total, ())
    if whole_sum:
        result = Arith("+", (old, Cast(result, type=c.buffer.dtype)), place=place)
    turn = Store(total, (), Arith("+", (Load(total, ()), Arith("*", (x, y)))), place=place)
    body: tuple[Stmt, ...] = (
        AllocVar(total, init=first, place=place),
        Serial(Const(k), (step,), (turn,), place=place),
        Store(c.buffer, index, _cast(result, c.buffer.dtype), place=place),
    )
    columns = Serial(Const(n), (j,), body, place=place)
    builder.emit(Serial(Const(m), (i,), (columns,), place=place))


def _started(old: Expr, start: Expr) -> Expr:
    """The old value, or zero where `start` holds."""
    zero = Const(0.0 if old.dtype.is_float else 0, type=old.dtype)
    if start == FALSE:
        return old
    return zero if start == TRUE else Call("if_then_else", (start, zero, old), type=old.dtype)


def _index(region: Region, moved: tuple[Expr, Expr]) -> tuple[Expr, ...]:
    """The index of an element of the matrix that a region is."""
    rank = len(region.start) - 2
    return (*region.start[:rank], *(first + by for first, by in zip(region.start[rank:], moved, strict=True)))


def _element(region: Region, moved: tuple[Expr, Expr], dtype: DType) -> Expr:
    return _cast(Load(region.buffer, _index(region, moved), place=region.place), dtype)


def _cast(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype == dtype else Cast(value, type=dtype, place=value.place)


__all__ = ["check_own", "product_of_own"]
