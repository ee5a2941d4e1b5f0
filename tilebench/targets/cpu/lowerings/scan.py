"""Running sums, line by line."""

from __future__ import annotations

from ....ir import Arith, Buffer, Cast, Const, Expr, Load, Stmt, Store, Var
from ....ir.dtypes import DType
from ....language.accumulation import reduction_dtype
from ....language.memory import AllocVar
from ....language.reduce import Scan
from ....language.structure import Serial
from ..loops.lowering import Lowering
from ..loops.vectors import nest
from ..loops.work import Work


def scan(work: Work, old: Scan) -> list[Stmt]:
    """Each line by a loop that keeps its sum."""
    src, dst = work.swapped(old.src), work.swapped(old.dst)
    shape = src.buffer.shape
    axis = old.dim % len(shape)
    dtype = reduction_dtype("sum", old.src.buffer.dtype, old.dst.buffer.dtype)
    total = Buffer(work.names.fresh("sum"), (), dtype, "var")
    step = work.fresh("k")
    places = [work.fresh("ijlmn"[d % 5]) for d in range(len(shape))]
    along: Expr = Arith("-", (Const(shape[axis] - 1), step)) if old.reverse else step
    index = tuple(along if d == axis else place for d, place in enumerate(places))
    value = _cast(Load(src.buffer, index), dtype)
    added = Store(total, (), Arith("+", (Load(total, ()), value)), place=old.place)
    kept = Store(dst.buffer, index, _cast(Load(total, ()), dst.buffer.dtype), place=old.place)
    zero = Const(0.0 if dtype.is_float else 0, type=dtype)
    line: tuple[Stmt, ...] = (
        AllocVar(total, init=zero, place=old.place),
        Serial(Const(shape[axis]), (step,), (added, kept), place=old.place),
    )
    outer: list[Var] = [place for d, place in enumerate(places) if d != axis]
    return list(nest(outer, [Const(shape[d]) for d in range(len(shape)) if d != axis], line))


def _cast(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype == dtype else Cast(value, type=dtype)


LOWERINGS = (Lowering(Scan, scan),)
