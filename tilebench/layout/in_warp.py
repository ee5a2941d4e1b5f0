"""The layout nearest to a given one in which lanes have longer vectors, reached without leaving a warp."""

from __future__ import annotations

from .fragment import REPLICATED, Fragment, FragmentMode


def with_vectors(fragment: Fragment, vector: int, warp: int) -> Fragment | None:
    """The fragment whose lanes each hold `vector` neighbours of a row, of the elements that their warp has.

    The lanes that lay along the last dimension still do, a vector apart, and all others stay where they are.
    `vector` is a power of two. None where the warp has no such vectors, or is no product of bits.
    """
    last = len(fragment.extents) - 1
    split = _split_threads(fragment, warp)
    bits = _bits_along(fragment.value, last)
    if split is None or bits is None or vector & (vector - 1):
        return None
    lanes, warps = split
    slots = [place for place, (_, dim, _) in enumerate(lanes) if dim == last]
    steps = sorted([lanes[place][2] for place in slots] + [step for _, _, step in bits])
    low = vector.bit_length() - 1
    if steps[:low] != [1 << k for k in range(low)] or len(steps) < low + len(slots):
        return None
    for place, step in zip(slots, steps[low:], strict=False):
        lanes[place] = (2, last, step)
    rest = [(2, last, step) for step in steps[low + len(slots) :]]
    others = [mode if mode[1] != last else _odd_part(mode) for mode in fragment.value]
    others = [mode for mode in others if mode[0] > 1]
    value = _joined([(vector, last, 1), *rest]) if vector > 1 else _joined(rest)
    return Fragment(fragment.extents, (*_joined(lanes), *warps), (*value, *others))


def _odd_part(mode: FragmentMode) -> FragmentMode:
    """What is left of a mode beside its bits, which are the steps below: of 24 eights three times 64."""
    count, dim, step = mode
    power = count & -count
    return count // power, dim, step * power


def _split_threads(fragment: Fragment, warp: int) -> tuple[list[FragmentMode], list[FragmentMode]] | None:
    """The bits of the lane's number, and the modes of the warp's."""
    lanes: list[FragmentMode] = []
    warps: list[FragmentMode] = []
    divisor = 1
    for count, dim, step in fragment.thread:
        while count > 1 and divisor < warp:
            if count % 2:
                return None
            lanes.append((2, dim, step))
            count, step, divisor = count // 2, step * 2 if dim != REPLICATED else 0, divisor * 2
        if count > 1:
            warps.append((count, dim, step))
    return lanes, warps


def _bits_along(modes: tuple[FragmentMode, ...], last: int) -> list[FragmentMode] | None:
    """The modes of values along the last dimension in bits; an odd part of one stays out of it."""
    bits: list[FragmentMode] = []
    for count, dim, step in modes:
        power = (count & -count).bit_length() - 1
        if dim != last or not power:
            continue
        if step & (step - 1):
            return None
        bits += [(2, dim, step << k) for k in range(power)]
    return bits


def _joined(modes: list[FragmentMode]) -> list[FragmentMode]:
    joined: list[FragmentMode] = []
    for count, dim, step in modes:
        if joined:
            before, own, first = joined[-1]
            if own == dim and (dim == REPLICATED or step == first * before):
                joined[-1] = (before * count, own, first)
                continue
        joined.append((count, dim, step))
    return joined
