"""Votes and matches of a warp: loops over its threads' elements, a warp after the other."""

from __future__ import annotations

from ....ir import Arith, Buffer, Const, Expr, If, Load, Stmt, Store, Var
from ....ir.dtypes import uint32
from ....ir.expr import Cast
from ....language.memory import AllocVar
from ....language.structure import Serial
from ....language.votes import WARP, WarpVote
from ..loops.lowering import Lowering
from ..loops.work import Work


def vote(work: Work, old: WarpVote) -> list[Stmt]:
    """The loops of a vote; a ballot is counted once for a warp, a match for each of its threads."""
    src, dst, place = work.swapped(old.src).buffer, work.swapped(old.dst).buffer, old.place
    warp, mine, other = work.fresh("w"), work.fresh("i"), work.fresh("j")
    bits = Buffer(work.names.fresh("bits"), (), uint32, "var")
    here, there = (_element(src, warp * WARP + lane) for lane in (mine, other))
    zero = Const(0.0 if src.dtype.is_float else 0, type=src.dtype)
    equal = Arith("==", (here, there)) if old.kind == "match" else Arith("!=", (there, zero))
    bit = Arith("<<", (Const(1, type=uint32), Cast(other, type=uint32)))
    more = Store(bits, (), Arith("|", (Load(bits, ()), bit)), place=place)
    gather: tuple[Stmt, ...] = (
        AllocVar(bits, init=Const(0, type=uint32), place=place),
        Serial(Const(WARP), (other,), (If(equal, (more,), (), place=place),), place=place),
    )
    index = _element(dst, warp * WARP + mine).index
    tell = Store(dst, index, Load(bits, ()), place=place)
    inside: tuple[Stmt, ...] = (*gather, Serial(Const(WARP), (mine,), (tell,), place=place))
    if old.kind == "match":
        inside = (Serial(Const(WARP), (mine,), (*gather, tell), place=place),)
    return [Serial(Const(src.size // WARP), (warp,), inside, place=place)]


def _element(buffer: Buffer, number: Expr | Var) -> Load:
    """The element of a thread, by its number in the block."""
    index: list[Expr] = []
    for extent in buffer.extents[:0:-1]:
        index.append(number % extent)
        number = number // extent
    return Load(buffer, (number, *reversed(index)))


LOWERINGS = (Lowering(WarpVote, vote),)
