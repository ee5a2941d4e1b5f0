"""Loops over vectors with a masked tail, and reductions across lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .llvm import Function, Index, Value, const, element_of, lanes_of

# index, mask (None where all lanes are inside), carried -> next carried
Body = Callable[[Value, Value | None, Sequence[Value]], Sequence[Value]]


def vector_loop(
    f: Function,
    begin: Index,
    end: Index,
    lanes: int,
    body: Body,
    carried: Sequence[Value] = (),
    *,
    unroll: int = 1,
) -> list[Value]:
    """`for i in range(begin, end, lanes)`: full vectors, then one masked turn for what is left.

    `body(index, mask, carried)` emits one vector and returns the next carried values. With
    `unroll` > 1 the main loop holds that many copies one after the other (a chain: give separate
    accumulators as separate carried values to break it). Returns the final carried values; in a
    masked turn it is the body that must keep dead lanes out of them (`keep`).
    """
    begin, end = f.value(begin), f.value(end)
    values, start = list(carried), begin
    length = f.sub(end, begin)
    for times in dict.fromkeys((unroll, 1)):
        step = lanes * times
        stop = f.sub(end, step - 1)
        with f.loop(start, stop, step, values) as loop:
            inside = list(loop.carried)
            for at in range(times):
                inside = list(body(f.add(loop.index, at * lanes), None, inside))
            loop.next = inside
        values = loop.results
        start = f.add(begin, whole_steps(f, length, step))
    if length.integer is not None and length.integer % lanes == 0:
        return values
    with f.loop(start, end, lanes, values) as loop:  # at most one turn
        loop.next = list(body(loop.index, f.lane_mask(f.sub(end, loop.index), lanes), loop.carried))
    return loop.results


def whole_steps(f: Function, length: Value, step: int) -> Value:
    """The largest multiple of `step` that is at most `length` (0 for a negative length)."""
    if length.integer is not None:
        return Value(str(max(0, length.integer) // step * step), "i64")
    length = f.imax(length, 0)
    if step & (step - 1) == 0:
        return f.binary("and", length, -step)
    return f.mul(f.binary("udiv", length, step), step)


def keep(f: Function, mask: Value | None, new: Value, old: Value) -> Value:
    """`new` in the lanes of the mask, `old` elsewhere; `new` when there is no mask."""
    return new if mask is None else f.select(mask, new, old)


def maximum(f: Function, a: Value, b: Value) -> Value:
    """The greater; a NaN on either side wins, as in NumPy's `maximum`. Signed for integers."""
    return _extreme(f, a, b, "gt")


def minimum(f: Function, a: Value, b: Value) -> Value:
    """The lesser; a NaN on either side wins, as in NumPy's `minimum`. Signed for integers."""
    return _extreme(f, a, b, "lt")


def _extreme(f: Function, a: Value, b: Value, how: str, unsigned: bool = False) -> Value:
    if element_of(a.type)[0] == "i":
        return f.select(f.compare(("u" if unsigned else "s") + how, a, b), a, b)
    # x86's max gives its second operand when either is NaN: only a NaN in `a` needs the second select.
    bare = f.select(f.compare("o" + how, a, b), a, b)
    return f.select(f.compare("uno", a, a), a, bare)


def combine(f: Function, op: str, a: Value, b: Value, *, unsigned: bool = False) -> Value:
    """One step of a reduction: `sum`, `prod`, `max`, `min`, `and`, `or`, `xor`."""
    floating = element_of(a.type) in ("float", "double")
    if op in ("max", "min"):
        return _extreme(f, a, b, "gt" if op == "max" else "lt", unsigned)
    name = {"sum": "add", "prod": "mul"}.get(op, op)
    return f.binary("f" + name if floating else name, a, b)


def neutral(op: str, type_: str, *, unsigned: bool = False) -> Value:
    """The value that changes nothing in the reduction `op`."""
    element = element_of(type_)
    if op in ("max", "min"):
        if element in ("float", "double"):
            return const(float("-inf") if op == "max" else float("inf"), type_)
        bits = int(element[1:])
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return const(low if op == "max" else high, type_)
    return const({"prod": 1, "and": -1}.get(op, 0), type_)


def reduce_lanes(f: Function, value: Value, op: str, *, unsigned: bool = False) -> Value:
    """All lanes of a vector combined into a scalar, by halves (pairwise for sums)."""
    lanes = lanes_of(value.type)
    while lanes > 1:
        half = lanes // 2
        low = f.shuffle(value, None, range(half))
        joined = combine(f, op, low, f.shuffle(value, None, range(half, half * 2)), unsigned=unsigned)
        if lanes % 2:
            first, rest = f.extract(joined, 0), f.extract(value, lanes - 1)
            first = combine(f, op, first, rest, unsigned=unsigned)
            joined = f.insert(joined, first, 0) if half > 1 else first
        value, lanes = joined, half
    return value
