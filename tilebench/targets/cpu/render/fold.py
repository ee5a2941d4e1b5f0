"""`T.fold_sum`, `T.fold_max`, `T.fold_min`: several accumulators side by side, or one a lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....ir import Expr, Load, Var
from ..llvm import Value, i64, vector
from ..llvm.lanes import combine, keep, neutral, reduce_lanes, whole_steps
from ..loops.words import Accumulate, Fold
from ..numbers.convert import COMPUTE, convert, is_unsigned, narrow, widen
from .state import Lanes

if TYPE_CHECKING:
    from .kernel import Renderer

_VAR = Var("<fold>")


def render_fold(work: Renderer, at: Fold) -> None:
    """One fold. In a loop over vectors every lane has its own box; elsewhere the box is taken in vectors."""
    extent = at.src.extent or ()
    axis = max(range(len(extent)), key=lambda d: (extent[d], d))
    index: list[Expr] = [start + _VAR if d == axis else start for d, start in enumerate(at.src.start)]
    source = Load(at.src.buffer, tuple(index), place=at.place)
    lone = work.state.lanes is None
    total = _along(work, at, source, extent[axis]) if lone else _across(work, at, source, extent[axis])
    finish(work, at, total)


def _element(work: Renderer, at: Fold, source: Load) -> Value:
    value = widen(work.f, work.expr.raw(source), source.dtype.name)
    return convert(work.f, work.state.wide(value), source.dtype.name, sum_dtype(at))


def sum_dtype(at: Fold | Accumulate) -> str:
    """Small floats are summed in float32 and rounded once at the end."""
    name = at.dst.buffer.dtype.name
    return "float32" if COMPUTE[name] == "float" else name


def _along(work: Renderer, at: Fold, source: Load, count: int) -> Value:
    f, state, lanes = work.f, work.state, at.lanes
    unsigned = is_unsigned(at.dst.buffer.dtype.name)
    type_ = vector(COMPUTE[sum_dtype(at)], lanes)
    chains = max(1, min(at.chains, count // lanes))
    sums = [neutral(at.kind, type_, unsigned=unsigned)] * chains
    state.counters.add(_VAR.name)
    step = lanes * chains
    whole = whole_steps(f, i64(count), step)
    with f.loop(0, whole, step, sums) as turn:
        turn.next = [
            combine(
                f,
                at.kind,
                turn.carried[k],
                _at(work, at, source, turn.index, k * lanes, None),
                unsigned=unsigned,
            )
            for k in range(chains)
        ]
    sums = turn.results
    if count % step:
        with f.loop(whole, count, lanes, sums[:1]) as turn:
            mask = f.lane_mask(f.sub(count, turn.index), lanes)
            found = _at(work, at, source, turn.index, 0, mask)
            (old,) = turn.carried
            turn.next = [keep(f, mask, combine(f, at.kind, old, found, unsigned=unsigned), old)]
        sums = [turn.results[0], *sums[1:]]
    return reduce_lanes(f, pairs(work, at, sums, unsigned), at.kind, unsigned=unsigned)


def _at(work: Renderer, at: Fold, source: Load, index: Value, ahead: int, mask: Value | None) -> Value:
    state = work.state
    outer = (state.lanes, state.mask, state.lazy)
    state.lanes, state.mask, state.lazy = Lanes(_VAR.name, index, at.lanes, ahead, 1), mask, False
    found = _element(work, at, source)
    state.lanes, state.mask, state.lazy = outer
    return found


def pairs(work: Renderer, at: Fold | Accumulate, sums: Sequence[Value], unsigned: bool) -> Value:
    """The accumulators combined pairwise."""
    held = list(sums)
    while len(held) > 1:
        held = [
            combine(work.f, at.kind, *held[k : k + 2], unsigned=unsigned) if k + 1 < len(held) else held[k]
            for k in range(0, len(held), 2)
        ]
    return held[0]


def _across(work: Renderer, at: Fold, source: Load, count: int) -> Value:
    f, state = work.f, work.state
    unsigned = is_unsigned(at.dst.buffer.dtype.name)
    first = neutral(at.kind, vector(COMPUTE[sum_dtype(at)], state.count), unsigned=unsigned)
    state.counters.add(_VAR.name)
    with f.loop(0, count, 1, [first]) as turn:
        state.values[_VAR.name] = turn.index
        turn.next = [combine(f, at.kind, turn.carried[0], _element(work, at, source), unsigned=unsigned)]
    return turn.results[0]


def finish(work: Renderer, at: Fold | Accumulate, total: Value) -> None:
    f, state, dtype = work.f, work.state, at.dst.buffer.dtype.name
    if not at.clear:
        old = convert(
            f, work.expr.load(Load(at.dst.buffer, at.dst.start, place=at.place)), dtype, sum_dtype(at)
        )
        old, total = state.alike(old, total)
        total = combine(f, at.kind, old, total, unsigned=is_unsigned(dtype))
    made = narrow(f, total, dtype)
    state.stored.clear()
    address = state.address(at.dst.buffer, at.dst.start, work.index, work.expr.value)
    work.expr.put(made, address, dtype)
