"""From `bounded` to `loops`: tile statements become loops over vectors and micro-kernels.

`T.copy(A[m : m + 128, k : k + 64], A_s, src_within=(1000, None))` ->
`for i in T.serial(T.min(1000 - m, 128)): for j in T.vectors(64, lanes=16): A_s[i, j] = A[m + i, k + j]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....ir import (
    AllocStmt,
    Call,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    walk,
)
from ....ir.arith import Range, bounds, linear
from ....language.copy import Copy, Fill
from ....language.gemm import Gemm
from ....language.memory import AllocVar
from ....language.reduce import Reduce
from ....language.structure import KernelLaunch, Parallel, Pipelined, Serial, Unroll, Vectorized
from ....passes.context import Context
from ..machine import isa_of
from .clear_first import clear_first
from .plan_buffers import BufferPlan, reads_var, swap_buffers, value_bytes
from .words import AllocScratch, ColumnPanels, PaddedRows, Prefetch, Vectors

NAME = "to_loops"
# Bytes of an output from which its stores go past the caches: there they had 1.5 times the bandwidth.
STREAMED = 16 << 20
# How far ahead a stream's operands are asked for: adding float16 arrays went from 0.70 to 0.87 of a
# copy's bandwidth on one core, from 1.18 to 1.46 on two; float32 from 0.93 to 0.98 and 1.60 to 1.74.
AHEAD_BYTES = 4096


def to_loops(function: Function, context: Context) -> Function:
    """The function in the words of the `loops` stage."""
    function = clear_first(function)
    work = Lowering(function, context)
    made = function.but(body=work.body(function.body))
    context.remark(
        NAME,
        "note",
        f"{len(work.plan.tiles)} tiles in {work.plan.size} bytes of scratch memory a worker",
        function,
        tiles=len(work.plan.tiles),
        bytes=work.plan.size,
    )
    return made


class Lowering:
    """The state on the way through one function: the plan, ranges of variables, names taken."""

    def __init__(self, function: Function, context: Context) -> None:
        self.isa = isa_of(context.machine)
        self.context = context
        self.plan = BufferPlan(function, self.isa)
        self.ranges: dict[str, Range] = {}
        self.names = {each.name for each in function.params}
        for each in walk(function):
            if isinstance(each, (KernelLaunch, LoopStmt)):
                self.names |= {v.name for v in each.vars}
            elif isinstance(each, Let):
                self.names.add(each.var.name)
            elif isinstance(each, AllocStmt):
                self.names.add(each.buffer.name)
        # The copies that stand before what is being lowered, by the tile they fill.
        self.sources: dict[str, Copy] = {}

    def fresh(self, name: str) -> Var:
        """A loop variable with a name of its own: i, j, ..., then `i__2` and so on."""
        made, count = name, 1
        while made in self.names:
            count += 1
            made = f"{name}__{count}"
        self.names.add(made)
        return Var(made)

    # -- statements
    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for each in body:
            out.extend(self.statement(each))
        return tuple(out)

    def statement(self, at: Stmt) -> list[Stmt]:
        from ..lowerings import copy, gemm, parallel

        match at:
            case KernelLaunch():
                for var, size in zip(at.vars, at.grid, strict=True):
                    self.ranges[var.name] = (0, max(size - 1, 0))
                return [KernelLaunch(at.grid, at.vars, self.body(at.body), threads=1, place=at.place)]
            case AllocVar():
                return [at if at.init is None else at.but(init=self.swapped(at.init))]
            case AllocStmt():
                tile = self.plan.tiles[at.buffer.name]
                return [AllocScratch(tile.buffer, layout=tile.layout, offset=tile.offset, place=at.place)]
            case Copy():
                self.sources[at.dst.buffer.name] = at
                return copy.lower_copy(self, at)
            case Fill():
                return copy.lower_fill(self, at)
            case Parallel() | Vectorized():
                return parallel.lower_parallel(self, at)
            case Gemm():
                return gemm.lower_gemm(self, at)
            case Reduce():
                return parallel.lower_reduce(self, at)
            case _:
                return [self.plain(at)]

    def plain(self, at: Stmt) -> Stmt:
        """Scalar statements and loops that keep their form."""
        match at:
            case Serial() | Unroll():
                self.ranges[at.vars[0].name] = self.loop_range(at)
                head = self.swapped(at.but(body=()))
                return head.but(body=self.body(at.body))
            case Pipelined():
                self.ranges[at.vars[0].name] = self.loop_range(at)
                body = self.body(at.body)
                return Serial(
                    self.swapped(at.stop), at.vars, body, start=self.swapped(at.start), place=at.place
                )
            case If():
                then, orelse = self.body(at.then), self.body(at.orelse)
                return at.but(condition=self.swapped(at.condition), then=then, orelse=orelse)
            case Let():
                self.ranges[at.var.name] = bounds(at.value, self.ranges)
                return self.swapped(at)
            case _:
                return self.swapped(at)

    def loop_range(self, at: Serial | Unroll | Pipelined) -> Range:
        start, stop = bounds(at.start, self.ranges), bounds(at.stop, self.ranges)
        step = 1 if isinstance(at, Pipelined) else const_of(at.step)
        if step is None or step < 0:
            return min(start[0], stop[0]), max(start[1], stop[1])
        return start[0], max(start[0], stop[1] - 1)

    def swapped(self, at: Any) -> Any:
        return swap_buffers(at, self.plan.tiles)

    # -- pieces the lowerings share
    def valid(self, start: Expr, extent: int, limit: int) -> Expr:
        """How many of `extent` elements from `start` (not negative) lie under `limit`; may be below zero."""
        low, high = bounds(start, self.ranges)
        if high + extent <= limit:
            return Const(extent)
        room = Const(limit) - start
        return room if limit - low <= extent else Call("min", (room, Const(extent)), type=room.dtype)

    def not_negative(self, count: Expr) -> Expr:
        low, _ = bounds(count, self.ranges)
        return count if low >= 0 else Call("max", (count, Const(0, type=count.dtype)), type=count.dtype)

    def vector_loop(
        self, var: Var, stop: Expr, body: tuple[Stmt, ...], panel: int = 0, **more: Any
    ) -> Vectors:
        """A loop over vectors as wide as the elements it computes with, and a `panel`, allow."""
        lanes = self.isa.vector_bytes // (copied_bytes(body) or value_bytes(body))
        streaming = self.may_stream(var, body)
        if streaming and isinstance(body[0], Store) and not reads_scratch(body[0].value):
            # Whole lines: a streaming store of half a line leaves the other half to be merged.
            lanes = body[0].buffer.dtype.elements_in(self.isa.vector_bytes)
        most = stop.args[1] if isinstance(stop, Call) and stop.word == "min" else stop
        trips = const_of(most)
        # A row that is one vector and a bit, or less, gains nothing from several at once.
        # Nor does a stream: memory sets its pace, and several a turn leave more of a row to masked stores,
        # which are not past the caches (softmax over 2048 columns: 12.7 against 15.1 GB/s).
        unroll = 1 if streaming or trips is None or trips % (lanes * 4) or trips < lanes * 8 else 4
        if panel:
            lanes = min(lanes, panel)
            unroll = panel // lanes
        overrun = self.may_overrun(var, stop, body)
        more = {"unroll": unroll, "overrun": overrun, "streaming": streaming, **more}
        if streaming:
            body = (*asked_ahead(var, body), *body)
        return Vectors(stop, (var,), body, lanes=lanes, place=body[0].place, **more)

    def may_stream(self, var: Var, body: tuple[Stmt, ...]) -> bool:
        """Whether the stores are one stream into an array too large for caches that nothing here reads."""
        stores = [each for each in body if isinstance(each, Store) and each.buffer.scope == "global"]
        if len(stores) != 1 or len(stores) != len(body) or stores[0].buffer.bytes < STREAMED:
            return False
        store = stores[0]
        form = linear(store.index[-1])
        contiguous = form.coefficient(var) == 1 and store.buffer.element_strides[-1] == 1
        uses = self.plan.uses[store.buffer.name]
        inside = any(reads_var(each, {var.name}) for each in store.index[:-1])
        return contiguous and not inside and not uses.copied_out and not self.plan.loaded[store.buffer.name]

    def may_overrun(self, var: Var, stop: Expr, body: tuple[Stmt, ...]) -> bool:
        """Whether lanes past the end touch only padding of scratch rows."""
        for each in body:
            if not isinstance(each, Store):
                return False
            for node in (each, *walk(each.value)):
                buffer = getattr(node, "buffer", None)
                if buffer is None or not reads_var(node, {var.name}):
                    continue
                layout = self.plan.tiles[buffer.name].layout if buffer.scope == "scratch" else None
                index = node.index  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
                inside = any(reads_var(i, {var.name}) for i in index[:-1])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if (
                    not isinstance(layout, PaddedRows)
                    or index[-1] != var
                    or inside
                    or const_of(stop) != buffer.shape[-1]
                ):
                    return False
        return True


def asked_ahead(var: Var, body: tuple[Stmt, ...]) -> Iterator[Prefetch]:
    """Requests for the lines that a stream will read from arrays a page later, one for each array."""
    seen: set[str] = set()
    for load in (each for top in body for each in walk(top) if isinstance(each, Load)):
        buffer = load.buffer
        if buffer.scope != "global" or buffer.name in seen or not buffer.rank:
            continue
        moves = linear(load.index[-1]).coefficient(var) == 1 and buffer.element_strides[-1] == 1
        if moves and not any(isinstance(n, Load) for i in load.index for n in walk(i)):
            seen.add(buffer.name)
            index = (*load.index[:-1], load.index[-1] + buffer.dtype.elements_in(AHEAD_BYTES))
            yield Prefetch(Region(buffer, index, place=load.place), place=load.place)


def reads_scratch(expr: Expr) -> bool:
    """Whether a tile is read: such a loop may be joined with the one that computes the tile."""
    return any(isinstance(each, Load) and each.buffer.scope == "scratch" for each in walk(expr))


def copied_bytes(body: Sequence[Stmt]) -> int:
    """The element size where the statements only move elements; 0 where they compute."""
    sizes: set[int] = set()
    for each in body:
        if not isinstance(each, Store) or not isinstance(each.value, Load):
            return 0
        sizes.add(each.buffer.dtype.bytes_of(1))
    return max(sizes, default=0)


def nest(vars_: Sequence[Var], stops: Sequence[Expr], inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Serial loops around statements, the first variable outermost."""
    for var, stop in zip(reversed(vars_), reversed(stops), strict=True):
        inner = (Serial(stop, (var,), inner, place=inner[0].place),)
    return inner


def is_transposed(layout: object) -> bool:
    return isinstance(layout, ColumnPanels) and layout.transposed
