"""Loops over rows that follow each other become one, so that a row stays in the nearest cache.

`for i in T.serial(16): X[i, ...] = ...` then `for i__2 in T.serial(16): s[i__2] = ... X[i__2, ...]` ->
one loop with both bodies, when each turn touches, of what either writes, only a row of its own.
Loops over vectors inside are joined the same way, element for element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....ir import (
    AllocStmt,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    Region,
    Stmt,
    Store,
    Var,
    WithStmt,
    children,
    const_of,
    substitute,
    walk,
)
from ....ir.arith import linear
from ....language.structure import Serial
from ....passes.context import Context
from ..loops.words import Accumulate, AllocScratch, Fold, MicroGemm, Prefetch, Vectors

NAME = "fuse_rows"
# Buffer, index (None: all over the buffer), whether it is written.
Access = tuple[str, tuple[Expr, ...] | None, bool]


def fuse_rows(function: Function, context: Context) -> Function:
    """The function with adjacent loops joined where that keeps every result."""
    work = _Fuser()
    made = function.but(body=work.body(function.body))
    if work.joined:
        context.remark(
            NAME, "applied", f"{work.joined} loops joined with the one before", function, joined=work.joined
        )
    return made


class _Fuser:
    def __init__(self) -> None:
        self.joined = 0

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Joined from the outside in: rows first, then what lies in a row."""
        out: list[Stmt] = [each for each in body if isinstance(each, AllocScratch)]
        for each in body:
            if isinstance(each, AllocScratch):
                continue
            made = (_join(out[-1], each) or fold_into(out[-1], each)) if out else None
            if made is None:
                out.append(each)
            else:
                self.joined += 1
                out[-1] = made
        return tuple(self.inside(each) for each in out)

    def inside(self, at: Stmt) -> Stmt:
        if isinstance(at, Serial):
            at = prefetched(at)
        if isinstance(at, (LoopStmt, WithStmt)):
            return at.but(body=self.body(at.body))
        if isinstance(at, If):
            return at.but(then=self.body(at.then), orelse=self.body(at.orelse))
        return at


def prefetched(loop: Serial) -> Serial:
    """A loop whose rows are read from an array, then worked on: the work brings the next row near.

    Without it the reads of each row wait for memory anew, and nothing is read during the work.
    """
    reads = [each for each in loop.body if isinstance(each, Vectors)] + [
        each for top in loop.body if isinstance(top, If) for each in top.then if isinstance(each, Vectors)
    ]
    source = next((found for each in reads if (found := _row_read(each, loop.vars[0])) is not None), None)
    if source is None:
        return loop
    vectors, load = source
    works = [
        each
        for each in loop.body
        if isinstance(each, Vectors) and each is not vectors and each.stop == vectors.stop
    ]
    works = [each for each in works if any(isinstance(n, Call) for n in walk(each))]
    if not works:
        return loop
    row, column = loop.vars[0], vectors.vars[0]
    ahead = substitute(load, {row.name: row + 1, column.name: works[0].vars[0]})
    hint = Prefetch(Region(ahead.buffer, ahead.index, place=load.place), place=works[0].place)
    made = works[0].but(body=(hint, *works[0].body))
    return loop.but(body=tuple(made if each is works[0] else each for each in loop.body))


def _row_read(at: Vectors, row: Var) -> tuple[Vectors, Load] | None:
    """The load of a loop that copies a row of an array into a tile."""
    store = at.body[0] if len(at.body) == 1 else None
    load = store.value if isinstance(store, Store) else None
    while isinstance(load, Cast):
        load = load.value
    if not isinstance(store, Store) or store.buffer.scope == "global" or not isinstance(load, Load):
        return None
    moves = [linear(each).coefficient(row) for each in load.index]
    last = linear(load.index[-1]).coefficient(at.vars[0])
    return (
        (at, load)
        if load.buffer.scope == "global" and any(moves[:-1]) and last == 1 and not moves[-1]
        else None
    )


def _join(first: Stmt, second: Stmt) -> Stmt | None:
    """The two loops as one, None where that is not possible or not known to be right."""
    if isinstance(first, Serial) and isinstance(second, Serial):
        guard = _same_turns(first, second)
        if guard is None or not (_starts_at_zero(first) and _starts_at_zero(second)):
            return None
        body = _renamed(second, first.vars[0])
        if not _independent(first.body, body, first.vars[0], rows=True):
            return None
        limit = guard if isinstance(guard, tuple) else (None, None)
        head = _guarded(first.body, limit[0], first.vars[0])
        return first.but(
            stop=_longer(first.stop, second.stop), body=(*head, *_guarded(body, limit[1], first.vars[0]))
        )
    if isinstance(first, Vectors) and isinstance(second, Vectors):
        same = (first.stop, first.start, first.lanes) == (second.stop, second.start, second.lanes)
        body = _renamed(second, first.vars[0])
        if not same or not _independent(first.body, body, first.vars[0], rows=False):
            return None
        return first.but(
            body=(*first.body, *body), unroll=min(first.unroll, second.unroll),
            overrun=first.overrun and second.overrun, streaming=first.streaming or second.streaming,
        )  # fmt: skip
    return None


def fold_into(first: Stmt, second: Stmt) -> Vectors | None:
    """The loop that fills a row, doing the fold that follows it in passing; None where it is not that."""
    if not isinstance(first, Vectors) or not isinstance(second, Fold) or first.streaming:
        return None
    count, box, var = const_of(first.stop), second.src, first.vars[0]
    extent = box.extent or (0,)
    whole = count == extent[-1] and all(each == 1 for each in extent[:-1]) and const_of(box.start[-1]) == 0
    if not whole or count is None or const_of(first.start) != 0 or first.lanes != second.lanes:
        return None
    index = (*box.start[:-1], var)
    stores = [each for top in first.body for each in walk(top) if isinstance(each, Store)]
    filled = any(
        each.buffer == box.buffer and each.index == index for each in first.body if isinstance(each, Store)
    )
    clean = all(each.buffer != box.buffer or each.index == index for each in stores)
    touched = {name for name, _, _ in _accesses(first.body)}
    if not filled or not clean or second.dst.buffer.name in touched:
        return None
    value = Load(box.buffer, index, place=second.place)
    made = Accumulate(second.kind, second.dst, value, clear=second.clear, place=second.place)
    return first.but(body=(*first.body, made), overrun=first.overrun and count % first.lanes == 0)


def _starts_at_zero(at: Serial) -> bool:
    return const_of(at.start) == 0 and const_of(at.step) == 1


def _same_turns(first: Serial, second: Serial) -> bool | tuple[Expr | None, Expr | None] | None:
    """True for equal ends; the tests that cut either body where one ends at the tile, one at the array."""
    if first.stop == second.stop:
        return True
    for a, b, order in ((first.stop, second.stop, 1), (second.stop, first.stop, 0)):
        size = const_of(a)
        if size is not None and isinstance(b, Call) and b.word == "min" and b.args[1] == Const(size):
            return (None, b.args[0]) if order else (b.args[0], None)
    return None


def _longer(a: Expr, b: Expr) -> Expr:
    return a if const_of(a) is not None else b


def _guarded(body: tuple[Stmt, ...], limit: Expr | None, var: Var) -> tuple[Stmt, ...]:
    if limit is None:
        return body
    return (If(var.compare("<", limit), body, (), place=body[0].place),)


def _renamed(loop: Any, var: Var) -> tuple[Stmt, ...]:
    return tuple(substitute(each, {loop.vars[0].name: var}) for each in loop.body)


def _independent(first: tuple[Stmt, ...], second: tuple[Stmt, ...], var: Var, *, rows: bool) -> bool:
    """Whether every buffer that one writes and the other touches is touched only at the turn's own row
    (or, for vectors, at one and the same element)."""
    one, two = list(_accesses(first)), list(_accesses(second))
    bound = set(_bound(first)) | set(_bound(second))
    written = {name for name, _, write in one + two if write}
    shared = written & {name for name, _, _ in one} & {name for name, _, _ in two}
    for name in shared:
        found = {
            index if index is None or not rows else index[:1] for held, index, _ in one + two if held == name
        }
        if len(found) != 1:
            return False
        index = found.pop()
        if not index or not any(_own(each, var, bound) for each in index):
            return False
        if not rows and any(_mentions(each, bound) for each in index):
            return False
    return not (_unknown(first) or _unknown(second))


def _own(expr: Expr, var: Var, bound: set[str]) -> bool:
    """Whether another turn has another value of the index."""
    form = linear(expr)
    return form.coefficient(var) != 0 and not any(
        _mentions(term, bound | {var.name}) for term, _ in form.without(var).terms
    )


def _mentions(expr: Node, names: set[str]) -> bool:
    return any(isinstance(each, Var) and each.name in names for each in walk(expr))


def _unknown(body: tuple[Stmt, ...]) -> bool:
    """Statements that no turn of which may be moved."""
    return any(isinstance(each, (MicroGemm, AllocStmt)) for top in body for each in walk(top))


def _bound(body: tuple[Stmt, ...]) -> Iterator[str]:
    for top in body:
        for each in walk(top):
            if isinstance(each, LoopStmt):
                yield from (v.name for v in each.vars)
            elif isinstance(each, Let):
                yield each.var.name


def _accesses(body: tuple[Stmt, ...]) -> Iterator[Access]:
    stack: list[Node] = list(body)
    while stack:
        at = stack.pop()
        match at:
            case Store():
                yield at.buffer.name, at.index, True
            case Load():
                yield at.buffer.name, at.index, False
            case Fold():
                yield at.dst.buffer.name, at.dst.start, True
                yield _read(at.src)
                stack.extend((*at.dst.start, *at.src.start))
                continue
            case Accumulate():
                yield at.dst.buffer.name, at.dst.start, True
                stack.extend((*at.dst.start, at.value))
                continue
            case Prefetch():
                continue  # changes nothing, and may be of any element
            case Region():
                yield at.buffer.name, None, True
            case _:
                pass
        stack.extend(children(at))


def _read(box: Region) -> Access:
    """A box counts as its row when it is one row high."""
    one_row = box.extent is not None and box.extent[0] == 1
    return box.buffer.name, box.start if one_row else None, False
