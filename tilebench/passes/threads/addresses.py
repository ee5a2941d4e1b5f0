"""Addresses of one thread: shared offsets with swizzle and version, registers, arrays of a thread's own."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ...ir import Arith, Buffer, Call, Cast, Const, Expr, Let, Load, Region, Stmt, Store, Var
from ...ir.arith import Linear, linear
from ...ir.expr_walks import replaced, seen
from ...ir.rewrite import folded
from ...layout import offset_expr, swizzle_expr
from .emitter import Emitter
from .registers import check_version, register_of
from .tiles import NOWHERE, Coordinates


def shared_offset(
    emitter: Emitter, name: str, index: tuple[Expr, ...], version: Expr | None, before: list[Stmt]
) -> Expr:
    """The element offset in the flat shared buffer; lets for swizzled ones are added to `before`."""
    tile = emitter.shared[name]
    facts, swizzle = emitter.facts, tile.layout.swizzle
    total = offset_expr(tile.layout, index, facts)
    if swizzle is not None and swizzle.bits and isinstance(total, Const):
        total = swizzle_expr(swizzle, total)
    elif swizzle is not None and swizzle.bits:
        # What is whole patterns away is added behind the swizzle: for repeats of a loop a constant.
        total, far = _split(total, emitter, swizzle.period)
        plain = Var(emitter.name(f"{name}_at"))
        before.append(emitter.let(plain, total))
        # Its range, as `variable` gives it, is known better than from its value.
        folded = emitter.variable(f"{name}_at", tile.layout.cosize)
        before.append(Let(folded, swizzle_expr(swizzle, plain)))
        total = folded + far
    if version is not None:
        check_version(emitter, name, version, tile.flat.size // tile.layout.cosize)
        total = total + version * tile.layout.cosize
    return total


def version_start(emitter: Emitter, region: Region, before: list[Stmt]) -> Expr:
    """The element of the flat shared buffer where the version of a region begins."""
    if region.version is None:
        return Const(0)
    tile = emitter.shared[region.buffer.name]
    version = lower_expr(emitter, region.version, NOWHERE, before)
    check_version(emitter, region.buffer.name, version, tile.flat.size // tile.layout.cosize)
    return version * tile.layout.cosize


def _split(offset: Expr, emitter: Emitter, period: int) -> tuple[Expr, Expr]:
    """An offset as a part within patterns of `period` elements, and one that is whole patterns."""
    form = linear(replaced(offset, emitter.facts.lets))
    far = Linear(
        tuple((term, factor) for term, factor in form.terms if factor % period == 0),
        form.constant - form.constant % period,
    )
    return (offset, Const(0)) if not (far.terms or far.constant) else (form.plus(far, -1).expr(), far.expr())


def flat_local(buffer: Buffer) -> Buffer:
    """A thread's own array with its dimensions made one, row-major."""
    return buffer if buffer.rank == 1 else Buffer(buffer.name, (buffer.size,), buffer.dtype, buffer.scope)


def flat_index(buffer: Buffer, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index of an element in `flat_local`."""
    total: Expr = Const(0)
    for part, stride in zip(index, buffer.element_strides, strict=True):
        total = total + part * stride
    return (total,)


def lower_access(
    emitter: Emitter,
    access: Load | Store,
    element: Coordinates,
    before: list[Stmt],
    lower: Callable[[Expr], Expr],
) -> tuple[Buffer, tuple[Expr, ...]]:
    """The buffer and index that an access of a tile buffer has in one thread; `lower` lowers indices."""
    buffer = access.buffer
    version = None if access.version is None else lower(access.version)
    if buffer.name in emitter.fragments:
        shifted = element.shift is not None and not all(
            isinstance(part, (Var, Const)) for part in access.index
        )
        index = tuple(lower(part) for part in access.index) if shifted else access.index
        number = register_of(emitter, buffer, index, version, element, access)
        return emitter.fragments[buffer.name].local, (number,)
    index = tuple(lower(part) for part in access.index)
    if buffer.name in emitter.shared:
        offset = shared_offset(emitter, buffer.name, index, version, before)
        return emitter.shared[buffer.name].flat, (offset,)
    if buffer.scope == "local" and buffer.rank != 1:
        return flat_local(buffer), flat_index(buffer, index)
    return buffer, index


def lower_expr(emitter: Emitter, expr: Expr, element: Coordinates, before: list[Stmt]) -> Expr:
    """The expression with shared loads made flat and fragment loads made registers."""
    if isinstance(expr, (Const, Var)) and element.shift is None:
        return expr

    def lower(part: Expr) -> Expr:
        if type(part) is Const:
            return part
        if type(part) is Var:
            moved = element.shift is not None and part.name == element.shift[0]
            return part + element.shift[1] if moved and element.shift is not None else part
        if isinstance(part, Load):
            buffer, index = lower_access(emitter, part, element, before, lower)
            return Load(buffer, index, place=part.place)
        if isinstance(part, (Arith, Call)):
            known = seen(part)
            if not known.loads and (element.shift is None or element.shift[0] not in known.names):
                return part
            args = tuple([lower(arg) for arg in part.args])
            if all(map(operator.is_, args, part.args)):
                return part
            return folded(part, args) if isinstance(part, Arith) else part.but(args=args)
        if isinstance(part, Cast):
            value = lower(part.value)
            return part if value is part.value else part.but(value=value)
        return part

    return lower(expr)
