"""`T.fold_*`: accumulators side by side, or one a lane; `T.accumulate_*`, `T.running_*`: one more vector."""

from __future__ import annotations

from .....ir import Expr, Load, Var
from ...llvm import Value, i64, vector
from ...llvm.lanes import combine, keep, neutral, reduce_lanes, running_lanes, whole_steps
from ...loops.words import Accumulate, Fold, Running
from ...numbers.convert import COMPUTE, STORAGE, convert, is_unsigned, narrow, widen
from ..renderer import Renderer, Rendering
from ..state import Lanes
from ..sums import finish, pairs, sum_dtype

_VAR = Var("<fold>")


def fold(renderer: Renderer, statement: Fold) -> None:
    """One fold. In a loop over vectors every lane has its own box; elsewhere the box is taken in vectors."""
    extent = statement.src.extent or ()
    axis = max(range(len(extent)), key=lambda d: (extent[d], d))
    start = statement.src.start
    index: list[Expr] = [low + _VAR if d == axis else low for d, low in enumerate(start)]
    source = Load(statement.src.buffer, tuple(index), place=statement.place)
    renderer.state.counters.add(_VAR.name)
    work = _Fold(renderer, statement, source, extent[axis])
    finish(renderer, statement, work.along() if renderer.state.lanes is None else work.across())


class _Fold:
    """One box of `count` elements on its way into one element a lane."""

    def __init__(self, renderer: Renderer, statement: Fold, source: Load, count: int) -> None:
        self.renderer, self.f = renderer, renderer.f
        self.statement, self.source, self.count = statement, source, count
        self.unsigned = is_unsigned(statement.dst.buffer.dtype.name)

    def combined(self, value: Value, total: Value) -> Value:
        """One more value into a total, which is never NaN: it starts from infinity, and a NaN loses."""
        return combine(self.f, self.statement.kind, value, total, unsigned=self.unsigned, sure=True)

    def neutral(self, lanes: int) -> Value:
        type_ = vector(COMPUTE[sum_dtype(self.statement)], lanes)
        return neutral(self.statement.kind, type_, unsigned=self.unsigned)

    def along(self) -> Value:
        """The box in vectors, `chains` of them side by side."""
        f, count, lanes = self.f, self.count, self.statement.lanes
        chains = max(1, min(self.statement.chains, count // lanes))
        step = lanes * chains
        whole = whole_steps(f, i64(count), step)
        with f.loop(0, whole, step, [self.neutral(lanes)] * chains) as turn:
            turn.next = [
                self.combined(self.vector_at(turn.index, k * lanes, None), total)
                for k, total in enumerate(turn.carried)
            ]
        sums = turn.results
        if count % step:
            with f.loop(whole, count, lanes, sums[:1]) as turn:
                mask = f.lane_mask(f.sub(count, turn.index), lanes)
                (total,) = turn.carried
                turn.next = [keep(f, mask, self.combined(self.vector_at(turn.index, 0, mask), total), total)]
            sums = [turn.results[0], *sums[1:]]
        joined = pairs(self.renderer, self.statement, sums, self.unsigned)
        return reduce_lanes(f, joined, self.statement.kind, unsigned=self.unsigned)

    def across(self) -> Value:
        """The boxes of all lanes, one element of each at a time."""
        f, state = self.f, self.renderer.state
        with f.loop(0, self.count, 1, [self.neutral(state.count)]) as turn:
            state.values[_VAR.name] = turn.index
            turn.next = [self.combined(self.element(), turn.carried[0])]
        return turn.results[0]

    def vector_at(self, index: Value, ahead: int, mask: Value | None) -> Value:
        """The vector of the box at `index + ahead`."""
        lanes = Lanes(_VAR.name, index, self.statement.lanes, ahead, 1)
        with self.renderer.state.in_lanes(lanes, mask):
            return self.element()

    def element(self) -> Value:
        """The source's element, or one a lane, in the dtype of the sum."""
        source = self.source.dtype.name
        value = widen(self.f, self.renderer.expr.raw(self.source), source)
        return convert(self.f, self.renderer.state.wide(value), source, sum_dtype(self.statement))


def accumulate(renderer: Renderer, statement: Accumulate) -> None:
    """One more vector into the open loop's sums."""
    f, state = renderer.f, renderer.state
    value = renderer.expr.value(statement.value)
    value = state.wide(convert(f, value, statement.value.dtype.name, sum_dtype(statement)))
    old = renderer.sums[id(statement)]
    unsigned = is_unsigned(statement.dst.buffer.dtype.name)
    # A sum on its way starts from infinity, and a NaN loses: it never becomes one.
    new = combine(f, statement.kind, value, old, unsigned=unsigned, sure=True)
    mask = None if state.mask is None else state.wide(state.mask)
    renderer.sums[id(statement)] = keep(f, mask, new, old)


def running(renderer: Renderer, statement: Running) -> None:
    """The vector's running sums on top of what the turns before left, which all lanes hold."""
    f, state, kind = renderer.f, renderer.state, statement.kind
    dtype, held = statement.dst.buffer.dtype.name, sum_dtype(statement)
    unsigned = is_unsigned(dtype)
    value = renderer.expr.value(statement.value)
    value = state.wide(convert(f, value, statement.value.dtype.name, held))
    if state.mask is not None:
        value = f.select(state.wide(state.mask), value, neutral(kind, value.type, unsigned=unsigned))
    before = renderer.sums[id(statement)]
    sums = running_lanes(f, value, renderer.nothing[id(statement)], kind, unsigned=unsigned)
    total = combine(f, kind, before, sums, unsigned=unsigned)
    # From one turn to the next goes one addition alone: the last lane is taken before it, not after.
    last = f.shuffle(sums, None, [state.count - 1] * state.count)
    renderer.sums[id(statement)] = combine(f, kind, before, last, unsigned=unsigned)
    bits = narrow(f, convert(f, total, held, dtype), dtype)
    where = state.address(statement.dst.buffer, statement.dst.start, renderer.expr)
    state.forget(statement.dst.buffer.name)
    renderer.expr.put(bits, where, dtype)
    if STORAGE[dtype] == COMPUTE[dtype]:
        state.stored[statement.dst.buffer.name, statement.dst.start] = (bits, state.mask)


RENDERINGS = (Rendering(Fold, fold), Rendering(Accumulate, accumulate), Rendering(Running, running))
