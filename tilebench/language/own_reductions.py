"""Reductions of arrays that each thread has to itself, and into a scalar: loops of one thread."""

from __future__ import annotations

from ..ir import Arith, Buffer, Call, Cast, Const, Expr, Load, Stmt, Store, Var
from .accumulation import reduction_dtype
from .memory import AllocVar
from .structure import Serial
from .tracing.builder import Builder

_BITS = {"sum": "+", "bitand": "&", "bitor": "|", "bitxor": "^"}


def combined(kind: str, a: Expr, b: Expr) -> Expr:
    """Two partial results of one dtype made one."""
    if kind in _BITS:
        return Arith(_BITS[kind], (a, b))
    if kind.endswith("_nan"):
        wins = Arith(">=" if kind == "max_nan" else "<=", (a, b))
        return Call("if_then_else", (Arith("or", (Arith("!=", (a, a)), wins)), a, b), type=a.dtype)
    return Call(kind, (a, b), type=a.dtype)


def _start(kind: str, buffer: Buffer) -> Const:
    dtype = buffer.dtype
    if kind in ("sum", "bitor", "bitxor"):
        value: float = 0
    elif kind == "bitand":
        value = dtype.most if dtype.kind == "uint" else -1
    else:
        value = dtype.least if kind.startswith("max") else dtype.most
    return Const(float(value) if dtype.is_float else value, type=dtype)


def _cast(value: Expr, buffer: Buffer) -> Expr:
    return value if value.dtype == buffer.dtype else Cast(value, type=buffer.dtype, place=value.place)


def reduce_own(builder: Builder, kind: str, src: Buffer, dst: Buffer, axis: int, clear: bool) -> None:
    """The statements of `T.reduce_*` of one thread's array: each result in a scalar of the wider dtype."""
    place = builder.place
    formed = reduction_dtype(kind, src.dtype, dst.dtype)
    total = Buffer(builder.unique(f"{dst.name}_part"), (), formed, "var")
    names = [Var(builder.unique("ijklmn"[dim % 6])) for dim in range(src.rank)]
    kept = [name for dim, name in enumerate(names) if dim != axis]
    index: tuple[Expr, ...] = tuple(kept)
    if dst.rank > len(kept):
        index = (*kept[:axis], Const(0), *kept[axis:])
    element = Load(src, tuple(names), place=place)
    turn = Store(total, (), combined(kind, Load(total, ()), _cast(element, total)), place=place)
    result: Expr = Load(total, ())
    if not clear:
        result = combined(kind, _cast(Load(dst, index, place=place), total), result)
    body: tuple[Stmt, ...] = (
        AllocVar(total, init=_start(kind, total), place=place),
        Serial(Const(src.extents[axis]), (names[axis],), (turn,), place=place),
        Store(dst, index, _cast(result, dst), place=place),
    )
    for dim in reversed([dim for dim in range(src.rank) if dim != axis]):
        body = (Serial(Const(src.extents[dim]), (names[dim],), body, place=place),)
    for statement in body:
        builder.emit(statement)


__all__ = ["combined", "reduce_own"]
