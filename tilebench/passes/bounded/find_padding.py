"""Zeros that a copy wrote past the end of an array, and that a maximum or minimum then takes for elements.

A row of -5s in a tile that reaches further has the maximum 0. Which dimensions of a tile are padded goes on
through copies, products and loops over elements; a fill, or a choice with anything but zero, ends it: the
kernel has said what stands there. Remarks alone come of it: the zeros are what the kernel asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...ir import Call, Const, Expr, Function, If, Load, LoopStmt, Region, Stmt, Store, Var, walk
from ...language.copy import Copy, Fill
from ...language.gemm import Gemm
from ...language.reduce import Reduce
from ..context import Context

NAME = "find_padding"
# The dimensions of a tile that may end in zeros, by its name.
Padded = dict[str, frozenset[int]]
_NONE: frozenset[int] = frozenset()


def find_padding(function: Function, context: Context) -> Function:
    """The function as it is, with a remark at each reduction that padding may win."""
    _body(function.body, {}, context)
    return function


def _body(body: Sequence[Stmt], padded: Padded, context: Context, guarded: bool = False) -> None:
    for statement in body:
        match statement:
            case Copy():
                _copy(statement, padded)
            case Fill():
                padded.pop(statement.dst.buffer.name, None)
            case Gemm():
                _gemm(statement, padded)
            case Reduce():
                _reduce(statement, padded, context)
            case Store():
                _store(statement, padded, guarded)
            case If():
                _body(statement.then, padded, context, True)
                _body(statement.orelse, padded, context, True)
            case LoopStmt():
                _body(statement.body, padded, context, guarded)
            case _:
                _body(getattr(statement, "body", ()), padded, context, guarded)


def _copy(copy: Copy, padded: Padded) -> None:
    """A dimension of the target is padded where that of the source, the same among those above 1, is."""
    own = padded.get(copy.src.buffer.name, _NONE)
    ends = {k for k, limit in enumerate(copy.src_within or ()) if limit is not None} | own
    sides = zip(_long(copy.src), _long(copy.dst), strict=False)
    padded[copy.dst.buffer.name] = frozenset(b for a, b in sides if a in ends)


def _long(region: Region) -> list[int]:
    return [k for k, extent in enumerate(region.extent or ()) if extent != 1]


def _gemm(gemm: Gemm, padded: Padded) -> None:
    """Rows of A that are zero make rows of C zero, and columns of B columns."""
    rank = gemm.c.buffer.rank
    found: set[int] = set()
    for side, row, turned in ((gemm.a, 0, gemm.transpose_A), (gemm.b, 1, gemm.transpose_B)):
        axis = side.buffer.rank - 2 + (1 - row if turned else row)
        if axis in padded.get(side.buffer.name, _NONE):
            found.add(rank - 2 + row)
    padded[gemm.c.buffer.name] = frozenset(found)


def _store(store: Store, padded: Padded, guarded: bool) -> None:
    """An element made of others is padded as they are, along the variables of both."""
    name = store.buffer.name
    if guarded or any(_replaces(part) for part in walk(store.value)):
        padded.pop(name, None)
        return
    names: set[str] = set()
    for load in (part for part in walk(store.value) if isinstance(part, Load)):
        for axis in padded.get(load.buffer.name, _NONE):
            names |= _variables(load.index[axis])
    padded[name] = frozenset(axis for axis, index in enumerate(store.index) if names & _variables(index))


def _replaces(part: Any) -> bool:
    """Whether something else may stand there than the zero of a read outside."""
    if not isinstance(part, Call) or part.word not in ("if_then_else", "abs"):
        return False
    # Of absolute values zero is the least: it wins no maximum.
    return part.word == "abs" or not any(
        isinstance(each, Const) and each.value == 0 for each in part.args[1:]
    )


def _variables(expr: Expr) -> set[str]:
    return {part.name for part in walk(expr) if isinstance(part, Var)}


def _reduce(reduction: Reduce, padded: Padded, context: Context) -> None:
    source, axis = reduction.src.buffer, reduction.dim % reduction.src.buffer.rank
    dims: Iterable[int] = padded.get(source.name, _NONE)
    if reduction.kind in ("max", "min") and axis in dims:
        fill = "-T.infinity" if reduction.kind == "max" else "T.infinity"
        if not source.dtype.is_float:
            fill = "T.min_value" if reduction.kind == "max" else "T.max_value"
        context.remark(
            NAME, "missed",
            f"the {reduction.kind}imum along dimension {axis} of {source.name} also takes the zeros that a "
            f"copy writes past the end of its array: choose {fill}({source.dtype.name!r}) for those elements "
            f"first, {source.name}[i, j] = T.if_then_else(inside, {source.name}[i, j], ...)",
            reduction, dimension=axis,
        )  # fmt: skip
    padded.pop(reduction.dst.buffer.name, None)
