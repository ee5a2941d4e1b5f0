"""Sums and extremes on their way: accumulators combined, and the result put into its element."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir import Load
from ....language.accumulation import reduction_dtype
from ..llvm import Value
from ..llvm.lanes import combine
from ..loops.words import Accumulate, Fold, Running
from ..numbers.convert import COMPUTE, convert, is_unsigned, narrow
from .renderer import Renderer


def sum_dtype(fold: Fold | Accumulate | Running) -> str:
    """What a fold is formed in, and rounded from once at the end; small floats are computed in float32."""
    source = fold.src.buffer.dtype if isinstance(fold, Fold) else fold.value.dtype
    name = reduction_dtype(fold.kind, source, fold.dst.buffer.dtype).name
    return "float32" if COMPUTE[name] == "float" else name


def pairs(renderer: Renderer, fold: Fold | Accumulate, sums: Sequence[Value], unsigned: bool) -> Value:
    """The accumulators combined pairwise."""
    left = list(sums)
    while len(left) > 1:
        odd = left[-1:] if len(left) % 2 else []
        couples = zip(left[::2], left[1::2], strict=False)
        left = [combine(renderer.f, fold.kind, a, b, unsigned=unsigned) for a, b in couples] + odd
    return left[0]


def finish(renderer: Renderer, fold: Fold | Accumulate, total: Value) -> None:
    """The total into its element, with what was there unless the fold starts afresh."""
    f, state, dtype = renderer.f, renderer.state, fold.dst.buffer.dtype.name
    if not fold.clear:
        old = renderer.expr.load(Load(fold.dst.buffer, fold.dst.start, place=fold.place))
        old, total = state.alike(convert(f, old, dtype, sum_dtype(fold)), total)
        total = combine(f, fold.kind, old, total, unsigned=is_unsigned(dtype))
    bits = narrow(f, convert(f, total, sum_dtype(fold), dtype), dtype)
    state.stored.clear()
    address = state.address(fold.dst.buffer, fold.dst.start, renderer.expr)
    renderer.expr.put(bits, address, dtype)
