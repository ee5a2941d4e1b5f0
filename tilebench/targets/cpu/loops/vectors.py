"""One loop over vectors: its width, how many vectors a turn, and whether its stores pass the caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....ir import Buffer, Call, Expr, Load, Region, Stmt, Store, Var, const_of, walk
from ....ir.arith import linear
from ....language.structure import Serial
from ..numbers.convert import stored_bytes
from .buffers import loads_memory, reads_var, value_bytes
from .words import LINE, PaddedRows, Prefetch, Vectors
from .work import Work

# Bytes of an output from which its stores go past the caches: there they had 1.5 times the bandwidth.
STREAMED = 16 << 20
# How far ahead a stream's operands are asked for: adding float16 arrays went from 0.70 to 0.87 of a
# copy's bandwidth on one core, from 1.18 to 1.46 on two; float32 from 0.93 to 0.98 and 1.60 to 1.74.
AHEAD_BYTES = 4096


def vector_loop(
    work: Work, var: Var, stop: Expr, body: tuple[Stmt, ...], panel: int = 0, **more: Any
) -> Vectors:
    """A loop over vectors as wide as the elements it computes with, and a `panel`, allow."""
    streaming = may_stream(work, var, body)
    lanes = lanes_for(work, body, streaming)
    most = stop.args[1] if isinstance(stop, Call) and stop.word == "min" else stop
    trips = const_of(most)
    # A row that is one vector and a bit, or less, gains nothing from several at once.
    unroll = 1 if trips is None or trips % (lanes * 4) or trips < lanes * 8 else 4
    if streaming:
        unroll = vectors_of_a_line(body[0], lanes)
    if panel:
        lanes = min(lanes, panel)
        unroll = panel // lanes
    overrun = may_overrun(work, var, stop, body)
    more = {"unroll": unroll, "overrun": overrun, "streaming": streaming, **more}
    if streaming:
        body = (*asked_ahead(var, body), *body)
    return Vectors(stop, (var,), body, lanes=lanes, place=body[0].place, **more)


def lanes_for(work: Work, body: tuple[Stmt, ...], streaming: bool) -> int:
    """Elements of the widest vector, by what is moved or computed with."""
    first = body[0]
    if streaming and isinstance(first, Store) and not reads_scratch(first.value):
        # Whole lines: a streaming store of half a line leaves the other half to be merged.
        return first.buffer.dtype.elements_in(work.isa.vector_bytes)
    return work.isa.vector_bytes // (copied_bytes(body) or value_bytes(body))


def vectors_of_a_line(store: Stmt, lanes: int) -> int:
    """How many vectors a turn of a stream takes: whole lines, and no more.

    Of a line that two turns store the processor merges the halves: softmax with vectors of 32 bytes went
    from 5 to 9 GB/s a core. More of them leave more of a row to masked stores, which are not past the caches
    (softmax over 2048 columns with vectors of 64 bytes: 12.7 against 15.1 GB/s).
    """
    assert isinstance(store, Store)
    return max(1, LINE // stored_bytes(store.buffer.dtype, lanes))


def vectors_of_joined(loops: Sequence[Vectors]) -> int:
    """How many vectors a turn of loops made one takes: those of the stream, where there is one."""
    streams = [loop.unroll for loop in loops if loop.streaming]
    return streams[0] if streams else min(loop.unroll for loop in loops)


def may_stream(work: Work, var: Var, body: tuple[Stmt, ...]) -> bool:
    """Whether the stores are one stream into an array too large for caches that nothing here reads."""
    stores = [stmt for stmt in body if isinstance(stmt, Store) and stmt.buffer.scope == "global"]
    if len(stores) != 1 or len(stores) != len(body) or not _is_large(stores[0].buffer):
        return False
    store = stores[0]
    if store.buffer.dtype.per_byte > 1:
        return False
    form = linear(store.index[-1])
    contiguous = form.coefficient(var) == 1 and store.buffer.element_strides[-1] == 1
    inside = any(reads_var(index, {var.name}) for index in store.index[:-1])
    return contiguous and not inside and not work.plan.uses_of(store.buffer).read


def may_overrun(work: Work, var: Var, stop: Expr, body: tuple[Stmt, ...]) -> bool:
    """Whether lanes past the end touch only padding of scratch rows."""
    for stmt in body:
        if not isinstance(stmt, Store):
            return False
        for node in (stmt, *walk(stmt.value)):
            if isinstance(node, (Load, Store)) and reads_var(node, {var.name}):
                if not _pads(work, var, stop, node):
                    return False
            elif isinstance(node, Region) and reads_var(node, {var.name}):
                return False
    return True


def _pads(work: Work, var: Var, stop: Expr, access: Load | Store) -> bool:
    """Whether an access along the whole last dimension of a tile ends in its row's padding."""
    layout = work.plan.layout_of(access.buffer) if access.buffer.scope == "scratch" else None
    inside = any(reads_var(index, {var.name}) for index in access.index[:-1])
    whole = const_of(stop) == access.buffer.shape[-1] and access.index[-1] == var
    return isinstance(layout, PaddedRows) and whole and not inside


def _is_large(buffer: Buffer) -> bool:
    """Whether an array is known to be too large for caches; of sizes known only at a launch it is not."""
    return isinstance(buffer.span, int) and buffer.bytes >= STREAMED


def asked_ahead(var: Var, body: tuple[Stmt, ...]) -> Iterator[Prefetch]:
    """Requests for the lines that a stream will read from arrays a page later, one for each array."""
    seen: set[str] = set()
    for load in (node for stmt in body for node in walk(stmt) if isinstance(node, Load)):
        buffer = load.buffer
        if buffer.scope != "global" or buffer.name in seen or not buffer.rank:
            continue
        moves = linear(load.index[-1]).coefficient(var) == 1 and buffer.element_strides[-1] == 1
        if moves and not any(loads_memory(index) for index in load.index):
            seen.add(buffer.name)
            index = (*load.index[:-1], load.index[-1] + buffer.dtype.elements_in(AHEAD_BYTES))
            yield Prefetch(Region(buffer, index, place=load.place), place=load.place)


def reads_scratch(expr: Expr) -> bool:
    """Whether a tile is read: such a loop may be joined with the one that computes the tile."""
    return any(isinstance(node, Load) and node.buffer.scope == "scratch" for node in walk(expr))


def copied_bytes(body: Sequence[Stmt]) -> int:
    """The element size where the statements only move elements; 0 where they compute."""
    sizes: set[int] = set()
    for stmt in body:
        if not isinstance(stmt, Store) or not isinstance(stmt.value, Load):
            return 0
        sizes.add(stored_bytes(stmt.buffer.dtype, 1))
    return max(sizes, default=0)


def nest(vars_: Sequence[Var], stops: Sequence[Expr], inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Serial loops around statements, the first variable outermost."""
    for var, stop in zip(reversed(vars_), reversed(stops), strict=True):
        inner = (Serial(stop, (var,), inner, place=inner[0].place),)
    return inner
