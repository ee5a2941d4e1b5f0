"""`T.vectors`: whole vectors, several a turn, then masked ones; sums of all turns; aligned streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....ir import Let, LoopStmt, Store, walk
from ....ir.arith import bounds
from ..llvm import Value, vector
from ..llvm.lanes import neutral, reduce_lanes, whole_steps
from ..loops.buffers import reads_var, sure_loads
from ..loops.words import Accumulate, Fold, Vectors
from ..numbers.convert import COMPUTE, is_unsigned
from .fold import finish, pairs, sum_dtype
from .state import Lanes

if TYPE_CHECKING:
    from .kernel import Renderer

# Sums side by side, for each statement that adds to one.
Sums = list[list[Value]]


def render_vectors(work: Renderer, at: Vectors) -> None:
    """The loop: `unroll` whole vectors a turn; then what is left, one masked vector a turn."""
    f, state = work.f, work.state
    begin, end = work.index(at.start), work.index(at.stop)
    state.ranges[at.vars[0].name] = (bounds(at.start, state.ranges)[0], bounds(at.stop, state.ranges)[1] - 1)
    if at.lanes == 1:
        with f.loop(begin, end) as turn:
            _turn(work, at, Lanes(at.vars[0].name, turn.index, 1), None)
        return
    _before(work, at)
    folds = [each for each in at.body if isinstance(each, Accumulate)]
    _Loop(work, at, folds).run(begin, end)
    state.fixed.clear()


class _Loop:
    """One loop of more than one lane, with the sums that its statements keep."""

    def __init__(self, work: Renderer, at: Vectors, folds: list[Accumulate]) -> None:
        self.work, self.at, self.folds = work, at, folds
        self.sums: Sums = []
        for each in folds:
            type_ = vector(COMPUTE[sum_dtype(each)], at.lanes)
            first = neutral(each.kind, type_, unsigned=is_unsigned(each.dst.buffer.dtype.name))
            self.sums.append([first] * at.unroll)

    def run(self, begin: Value, end: Value) -> None:
        f, at, lanes = self.work.f, self.at, self.at.lanes
        whole = begin.integer == 0
        if at.streaming:
            begin, whole = self.to_a_line(begin, end), False
        length = f.sub(end, begin)
        step = lanes * at.unroll
        if at.overrun and (length.integer or 1) % step:
            step = lanes
        stop = end if at.overrun else f.add(begin, whole_steps(f, length, step))
        self.turns(begin, stop, step, step if whole else 1, None)
        self.work.streamed = None
        if not at.overrun and (length.integer is None or length.integer % step):
            self.turns(
                stop, end, lanes, lanes if whole else 1, lambda index: f.lane_mask(f.sub(end, index), lanes)
            )
        for fold, sums in zip(self.folds, self.sums, strict=True):
            unsigned = is_unsigned(fold.dst.buffer.dtype.name)
            finish(
                self.work,
                fold,
                reduce_lanes(f, pairs(self.work, fold, sums, unsigned), fold.kind, unsigned=unsigned),
            )

    def turns(
        self, begin: Value, stop: Value, step: int, multiple: int, mask: Callable[[Value], Value] | None
    ) -> None:
        """A loop of `step` elements a turn; each of its vectors has a sum of its own."""
        f, at = self.work.f, self.at
        count = len(self.sums[0]) if self.sums else 0
        with f.loop(begin, stop, step, [each for sums in self.sums for each in sums]) as turn:
            held = [turn.carried[k * count : (k + 1) * count] for k in range(len(self.folds))]
            masked = None if mask is None else mask(turn.index)
            for k, ahead in enumerate(range(0, step, at.lanes)):
                self.work.sums = {id(fold): sums[k] for fold, sums in zip(self.folds, held, strict=True)}
                _turn(self.work, at, Lanes(at.vars[0].name, turn.index, at.lanes, ahead, multiple), masked)
                for fold, sums in zip(self.folds, held, strict=True):
                    sums[k] = self.work.sums[id(fold)]
            turn.next = [each for sums in held for each in sums]
        flat = turn.results
        self.sums = [flat[k * count : (k + 1) * count] for k in range(len(self.folds))]

    def to_a_line(self, begin: Value, end: Value) -> Value:
        """One masked turn up to where the stores are aligned; the index from which they are."""
        f, at, state = self.work.f, self.at, self.work.state
        store = streamed(at)
        outer = state.lanes
        state.lanes = Lanes(at.vars[0].name, begin, at.lanes)
        where = state.address(store.buffer, store.index, self.work.index, self.work.expr.value)
        pointer = state.pointer(where, store.buffer.dtype.name)
        state.lanes = outer
        size = store.buffer.dtype.bytes_of(1)
        address = f.cast("ptrtoint", pointer, "i64")
        past = f.binary("udiv", f.binary("and", f.sub(0, address), at.lanes * size - 1), size)
        stop = f.imin(f.add(begin, past), end)
        self.turns(begin, stop, at.lanes, 1, lambda index: f.lane_mask(f.sub(stop, index), at.lanes))
        self.work.streamed = store
        return stop


def streamed(at: Vectors) -> Store:
    """The store of a streaming loop that goes past the caches: the first into an array."""
    return next(each for each in at.body if isinstance(each, Store) and each.buffer.scope == "global")


def _turn(work: Renderer, at: Vectors, lanes: Lanes, mask: Value | None) -> None:
    """The body for one vector."""
    state = work.state
    outer = (state.lanes, state.mask, state.lazy, set(state.varying))
    state.lanes, state.mask, state.lazy = lanes, mask, False
    state.stored.clear()
    work.body(at.body)
    state.stored.clear()
    state.lanes, state.mask, state.lazy, state.varying = outer
    work.f.origin = work.lines.get(id(at), work.f.origin)


def _before(work: Renderer, at: Vectors) -> None:
    """Elements that are the same in all turns are loaded once, in front of the loop."""
    state = work.state
    written = {each.buffer.name for each in walk(at) if isinstance(each, Store)}
    written |= {each.dst.buffer.name for each in walk(at) if isinstance(each, (Fold, Accumulate))}
    inner = {at.vars[0].name} | {v.name for each in walk(at) if isinstance(each, LoopStmt) for v in each.vars}
    inner |= {each.var.name for each in walk(at) if isinstance(each, Let)}
    for each in at.body:
        if not isinstance(each, Store):
            continue
        for load in sure_loads(each.value):
            if load.buffer.scope != "scratch" or load.buffer.name in written or reads_var(load, inner):
                continue
            key = (load.buffer.name, load.index)
            if key not in state.fixed:
                state.fixed[key] = state.f.splat(work.expr.load(load), at.lanes)
