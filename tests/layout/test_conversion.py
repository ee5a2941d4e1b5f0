"""Conversions inside warps, carried out on the numbers of a tile's elements: each arrives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tilebench.layout import Fragment, WarpConversion, convert_in_warps, spread
from tilebench.layout.conversion import Gather, Keep, Loop, Move, Step, Swap

WARP = 32


def numbers(fragment: Fragment, box: tuple[int, ...]) -> Any:
    """The number of the element that each thread has in each register."""
    found: Any = np.zeros((fragment.threads, fragment.values), np.int64)
    for coordinate, extent in zip(fragment.all_coordinates, box, strict=True):
        found = found * extent + coordinate
    return found


choose: Any = np.where


def places(loops: tuple[Loop, ...]) -> list[int]:
    found = [0]
    for count, stride in loops:
        found = [place + k * stride for k in range(count) for place in found]
    return found


def pairs(moves: tuple[Move, ...]) -> list[tuple[int, int]]:
    found = [(0, 0)]
    for count, here, there in moves:
        found = [(a + k * here, b + k * there) for k in range(count) for a, b in found]
    return found


def stepped(words: Any, step: Step) -> None:
    """What a step does to the words of all threads (threads, words, packed)."""
    thread: Any = np.arange(len(words))
    for place in places(step.loops):
        low: Any = np.array(words[:, place])
        if isinstance(step, Swap):
            upper = (thread // step.lane % 2 == 1)[:, None]
            high: Any = np.array(words[:, place + step.value])
            other = choose(upper, low, high)[thread ^ step.lane]
            words[:, place] = choose(upper, other, low)
            words[:, place + step.value] = choose(upper, high, other)
        elif isinstance(step, Keep):
            upper = (thread // step.thread % 2 == 1)[:, None]
            words[:, place] = choose(upper, words[:, place + step.value], low)
        elif isinstance(step, Gather):
            upper = (thread // step.lane % 2 == 1)[:, None]
            other = low[thread ^ step.lane]
            words[:, place] = choose(upper, other, low)
            words[:, place + step.value] = choose(upper, low, other)
        else:
            lane = sum(thread // ours % 2 * its for its, ours in step.bits)
            words[:, place] = low[thread // WARP * WARP + lane]


def checked(src: Fragment, dst: Fragment, bits: int) -> WarpConversion | None:
    """The conversion, after every true element of the target was found in its place."""
    plan = convert_in_warps(src, dst, bits, WARP)
    if plan is None:
        return None
    box = tuple(max(a, b) for a, b in zip(src.padded, dst.padded, strict=True))
    held = numbers(src, box)
    words = np.full((src.threads, plan.registers, len(plan.parts)), -1, np.int64)
    for there, here in pairs(plan.takes):
        for k, (part, _) in enumerate(plan.parts):
            words[:, here, k] = held[:, there + part]
    for step in plan.steps:
        stepped(words, step)
    found = np.full((dst.threads, dst.values), -1, np.int64)
    for here, there in pairs(plan.moves):
        for k, (_, part) in enumerate(plan.parts):
            found[:, there + part] = words[:, here, k]
    wanted = numbers(dst, box)
    assert np.array_equal(found[dst.real], wanted[dst.real])
    return plan


def homed(rng: random.Random, extents: list[int], threads: int) -> Fragment:
    """A layout whose bits are homed anywhere; some of the threads may have copies."""
    bits = [(2, dim, 1 << k) for dim, count in enumerate(extents) for k in range(count)]
    rng.shuffle(bits)
    held = min(threads, len(bits))
    held = rng.randint(max(0, held - 2), held)
    modes = bits[:held] + [(2, -1, 0)] * (threads - held)
    rng.shuffle(modes)
    return Fragment(tuple(1 << count for count in extents), tuple(modes), tuple(bits[held:]))


def test_layouts_whose_bits_are_homed_anywhere() -> None:
    rng = random.Random(1)
    kinds: set[str] = set()
    for _ in range(600):
        extents = [rng.randint(0, 5) for _ in range(rng.randint(1, 3))]
        src = homed(rng, extents, rng.choice((5, 6)))
        dst = homed(rng, extents, src.threads.bit_length() - 1)
        if all(dim >= 0 for _, dim, _ in src.thread) and rng.random() < 0.7:
            moved = [*src.thread[:5], *src.value]
            rng.shuffle(moved)
            dst = Fragment(src.extents, (*moved[:5], *src.thread[5:]), tuple(moved[5:]))
        plan = checked(src, dst, rng.choice((8, 16, 32)))
        kinds.update(["none"] if plan is None else [type(step).__name__ for step in plan.steps])
    assert kinds == {"none", "Swap", "Keep", "Gather", "Route"}


def test_spreads_of_odd_extents() -> None:
    rng = random.Random(2)
    found = 0
    for _ in range(300):
        extents = tuple(rng.choice((1, 3, 5, 8, 12, 16, 33, 40, 48, 96)) for _ in range(rng.randint(1, 2)))
        threads = rng.choice((32, 64, 96, 128))
        dims = (None, *range(len(extents)))
        src, dst = (spread(extents, threads, rng.choice((1, 2, 8)), WARP, rng.choice(dims)) for _ in range(2))
        found += checked(src, dst, rng.choice((8, 16, 32))) is not None
    assert found > 150


@pytest.mark.parametrize(("bits", "shuffles"), [(16, 16), (32, 32)])
def test_the_atoms_of_a_product_come_to_vectors_of_a_row(bits: int, shuffles: int) -> None:
    """Two neighbours a lane, four lanes a row: words of 32 bits cross to two neighbours."""
    warps = ((2, 1, 32), (2, 0, 32))
    atoms = Fragment((64, 64), ((4, 1, 2), (8, 0, 1), *warps), ((2, 1, 1), (2, 0, 8), (4, 1, 8), (2, 0, 16)))
    rows = Fragment((64, 64), ((4, 1, 8), (8, 0, 1), *warps), ((8, 1, 1), (2, 0, 8), (2, 0, 16)))
    plan = checked(atoms, rows, bits)
    assert plan is not None
    assert [type(step) for step in plan.steps] == [Swap, Swap]
    assert (len(plan.parts), plan.shuffles, plan.selections) == (32 // bits, shuffles, 3 * shuffles)


def test_what_another_warp_has_cannot_come() -> None:
    a = Fragment((64,), ((64, 0, 1),))
    b = Fragment((64,), ((32, 0, 2), (2, 0, 1)))
    assert checked(a, b, 32) is None


def test_layouts_of_other_tiles_and_threads_have_no_conversion() -> None:
    a = Fragment((64,), ((32, 0, 1),), ((2, 0, 32),))
    assert convert_in_warps(a, Fragment((32,), ((32, 0, 1),)), 32, WARP) is None
    assert convert_in_warps(a, Fragment((64,), ((64, 0, 1),)), 32, WARP) is None
