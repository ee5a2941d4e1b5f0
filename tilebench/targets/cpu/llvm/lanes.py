"""Loops over vectors with a masked tail, and reductions across lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .module import Function, Index, Value, bytes_of, const, element_of, i64, lanes_of

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
    aligned: tuple[Value, str] | None = None,
) -> list[Value]:
    """`for i in range(begin, end, lanes)`: full vectors, then one masked turn for what is left.

    `body(index, mask, carried)` emits one vector and returns the next carried values. With
    `unroll` > 1 the main loop holds that many copies one after the other (a chain: give separate
    accumulators as separate carried values to break it). Returns the final carried values; in a
    masked turn it is the body that must keep dead lanes out of them (`keep`).

    `aligned` = (pointer, element type) puts a masked turn in front, so that in all turns without a
    mask `pointer[index]` is aligned to a whole vector: what streaming stores want (1.5 times an
    ordinary store's bandwidth on outputs larger than the caches, but only 1.15 when misaligned).
    """
    begin, end = f.value(begin), f.value(end)
    values, start = list(carried), begin
    if aligned is not None:
        begin, values = _head(f, begin, end, lanes, body, values, aligned)
        start = begin
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


def _head(
    f: Function,
    begin: Value,
    end: Value,
    lanes: int,
    body: Body,
    carried: Sequence[Value],
    aligned: tuple[Value, str],
) -> tuple[Value, list[Value]]:
    """The turn before the first aligned index; nothing runs where `begin` is aligned already."""
    pointer, element = aligned
    size = bytes_of(element)
    address = f.cast("ptrtoint", f.at(pointer, begin, element), "i64")
    past = f.binary("udiv", f.binary("and", f.sub(0, address), lanes * size - 1), size)
    stop = f.imin(f.add(begin, past), end)
    with f.loop(begin, stop, lanes, carried) as loop:
        loop.next = list(body(loop.index, f.lane_mask(f.sub(stop, loop.index), lanes), loop.carried))
    return stop, loop.results


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


def store_first(f: Function, a: Value, pointer: Value, count: Value) -> None:
    """Store the first `count` lanes (an i64) by halves, quarters and so on, where vectors have no masks.

    `vmaskmov` to memory is 42 operations on a Zen 3: three of them in a row of 2048 took an eighth of
    softmax's time.
    """
    lanes, element = lanes_of(a.type), element_of(a.type)
    full = f.compare("sge", count, lanes)
    with f.when(full):
        f.store(a, pointer)
    with f.otherwise(full):
        half = lanes // 2
        while half:
            low, high = f.shuffle(a, None, range(half)), f.shuffle(a, None, range(half, 2 * half))
            there = f.compare("ne", f.binary("and", count, half), 0)
            with f.when(there):
                f.store(low, pointer)
            pointer = f.at(pointer, f.select(there, i64(half), i64(0)), element)
            a = f.select(there, high, low)
            half //= 2


def maximum(f: Function, a: Value, b: Value) -> Value:
    """The greater; a NaN loses against a number, as in C's `fmax`. Signed for integers."""
    return _extreme(f, a, b, "gt")


def minimum(f: Function, a: Value, b: Value) -> Value:
    """The lesser; a NaN loses against a number, as in C's `fmin`. Signed for integers."""
    return _extreme(f, a, b, "lt")


def _extreme(f: Function, a: Value, b: Value, how: str, unsigned: bool = False) -> Value:
    if element_of(a.type)[0] == "i":
        return f.select(f.compare(("u" if unsigned else "s") + how, a, b), a, b)
    # x86's max gives its second operand when either is NaN: only a NaN in `b` needs the second select.
    bare = f.select(f.compare("o" + how, a, b), a, b)
    return f.select(f.compare("uno", b, b), a, bare)


def combine(f: Function, op: str, a: Value, b: Value, *, unsigned: bool = False, sure: bool = False) -> Value:
    """One step of a reduction: `sum`, `prod`, `max`, `min`, `bitand`, `bitor`, `bitxor`. `sure`: b is no NaN.

    `max_nan` and `min_nan` are NaN where one side is.
    """
    floating = element_of(a.type) in ("float", "double")
    if sure and floating and op in ("max", "min"):
        return f.select(f.compare("ogt" if op == "max" else "olt", a, b), a, b)
    if op in ("max", "min"):
        return _extreme(f, a, b, "gt" if op == "max" else "lt", unsigned)
    if op in ("max_nan", "min_nan"):
        # Unordered: a NaN in `a` wins here, one in `b` below.
        taken = f.select(f.compare("ugt" if op == "max_nan" else "ult", a, b), a, b)
        return f.select(f.compare("uno", b, b), b, taken)
    name = {"sum": "add", "prod": "mul"}.get(op, op.removeprefix("bit"))
    return f.binary("f" + name if floating else name, a, b)


def neutral(op: str, type_: str, *, unsigned: bool = False) -> Value:
    """The value that changes nothing in the reduction `op`."""
    element, op = element_of(type_), op.removesuffix("_nan")
    if op in ("max", "min"):
        if element in ("float", "double"):
            return const(float("-inf") if op == "max" else float("inf"), type_)
        bits = int(element[1:])
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return const(low if op == "max" else high, type_)
    return const({"prod": 1, "bitand": -1}.get(op, 0), type_)


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


def running_lanes(f: Function, value: Value, nothing: Value, op: str, *, unsigned: bool = False) -> Value:
    """In each lane all lanes up to it combined, in as many steps as the number of lanes has bits.

    `nothing` has the neutral value in each lane, best from memory: of a constant 0 LLVM makes expansions
    under masks: a running sum then took 8.7 ns a vector instead of 4.8.
    """
    lanes, distance = lanes_of(value.type), 1
    while distance < lanes:
        moved = f.shuffle(nothing, value, range(lanes - distance, 2 * lanes - distance))
        value = combine(f, op, moved, value, unsigned=unsigned)
        distance *= 2
    return value
