"""No store may write half a byte: elements of 4 bits lie two a byte, and a neighbour would be lost.

A store to shared or global memory covers whole bytes when it runs along the last dimension, from an even
element, over an even count or to the end of the row (rows are whole bytes). Which thread stores
which elements is settled later; there a thread that would store one half alone is refused too.
"""

from __future__ import annotations

from typing import NoReturn

from ...errors import DTypeError
from ...ir import Buffer, Expr, Function, Node, Region, Stmt, Store, const_of, effects_of
from ...ir.arith import divisor, linear
from ...ir.expr_walks import mentions
from ...ir.node import children
from ...language.structure import Parallel
from ..context import Context


def check_packed(function: Function, context: Context) -> Function:
    """The function as it is. Raises `DTypeError` at a store that does not cover whole bytes."""
    _check(function.body, None)
    return function


def _check(body: tuple[Stmt, ...], loop: Parallel | None) -> None:
    for statement in body:
        if isinstance(statement, Store):
            if _is_packed(statement.buffer):
                _check_store(statement, loop)
            continue
        if not any(mark.mark == "body" for mark in statement.marks):
            for effect in effects_of(statement):
                if effect.writes and effect.region is not None and _is_packed(effect.region.buffer):
                    _check_region(effect.region, statement)
            continue
        inner = statement if isinstance(statement, Parallel) else loop
        _check(tuple(child for child in children(statement) if isinstance(child, Stmt)), inner)


def _is_packed(buffer: Buffer) -> bool:
    return buffer.dtype.per_byte > 1 and buffer.scope in ("shared", "global")


def _check_store(store: Store, loop: Parallel | None) -> None:
    """A store of one element: neighbours are those of the last variable of `T.Parallel`."""
    buffer = store.buffer
    if loop is None:
        refuse_half(store, buffer, "a store of one element")
    var, index = loop.vars[-1], store.index[-1]
    form = linear(index)
    rest = form.without(var).expr()
    if (
        form.coefficient(var) != 1
        or mentions(rest, var.name)
        or any(mentions(position, var.name) for position in store.index[:-1])
    ):
        refuse_half(store, buffer, f"neighbours along {var.name} are not stored side by side")
    _check_span(store, buffer, rest, loop.extents[-1])


def _check_region(region: Region, node: Node) -> None:
    extent = region.extent[-1] if region.extent is not None else 1
    _check_span(node, region.buffer, region.start[-1], extent)


def _check_span(node: Node, buffer: Buffer, start: Expr, extent: int) -> None:
    per_byte = buffer.dtype.per_byte
    if divisor(start) % per_byte:
        refuse_half(node, buffer, "the start along the last dimension may be odd")
    ends_the_row = const_of(start) == 0 and extent == buffer.shape[-1]
    if extent % per_byte and not ends_the_row:
        refuse_half(node, buffer, f"{extent} elements along the last dimension")


def refuse_half(node: Node, buffer: Buffer, why: str) -> NoReturn:
    """The error for a store of half a byte."""
    raise DTypeError(
        "this would store half a byte of {name}, and lose what lies in the other half", at=node.place,
        name=buffer.name, dtype=buffer.dtype, why=why,
        expected="{dtype} lies two a byte: both halves are stored together", found="{why}",
        hint="let the last variable of T.Parallel run along the last dimension, from an even element, "
        "over an even count",
    )  # fmt: skip
