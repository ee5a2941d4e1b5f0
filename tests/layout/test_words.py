"""Layouts in words: read back as a person would, they say where every element is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilebench.layout import Fragment, SharedLayout, Swizzle, atom_layout
from tilebench.layout.fragment import REPLICATED
from tilebench.layout.words import fragment_in_words, shared_in_words

AXES = {
    "elements": 0,
    "rows": 0,
    "columns": 1,
    "along dimension 0": 0,
    "along dimension 1": 1,
    "along dimension 2": 2,
}
MMA = Fragment(
    (64, 64), thread=((4, 1, 2), (8, 0, 1), (2, 1, 32), (2, 0, 32)),
    value=((2, 1, 1), (2, 0, 8), (4, 1, 8), (2, 0, 16)),
)  # fmt: skip
FRAGMENTS = {
    "mma": MMA,
    "rows": Fragment((32, 64), thread=((16, 1, 4), (8, 0, 1)), value=((4, 1, 1), (4, 0, 8))),
    "ghosts": Fragment((2, 500), thread=((64, 1, 4), (2, 0, 1)), value=((4, 1, 1), (2, 1, 256))),
    "replicated": Fragment((64,), thread=((4, REPLICATED, 0), (8, 0, 1), (4, 0, 16)), value=((2, 0, 8),)),
    "odd threads": Fragment((700,), thread=((96, 0, 1),), value=((8, 0, 96),)),
    "three": Fragment((2, 4, 16), thread=((16, 2, 1), (2, 1, 2)), value=((2, 0, 1), (2, 1, 1))),
}


def modes(sentence: str) -> tuple[tuple[int, int, int], ...]:
    """The steps of a sentence, as its words say them."""
    out: list[tuple[int, int, int]] = []
    for step in sentence.split(": ", 1)[1].split(", then "):
        if step == "one":
            continue
        if found := re.fullmatch(r"(\d+) with the same", step):
            out.append((int(found[1]), REPLICATED, 0))
            continue
        found = re.fullmatch(r"(\d+) (.+?) (?:side by side|(\d+) apart)", step)
        assert found is not None, step
        out.append((int(found[1]), AXES[found[2]], int(found[3] or 1)))
    return tuple(out)


@pytest.mark.parametrize("name", list(FRAGMENTS))
def test_a_fragment_is_where_its_words_say(name: str) -> None:
    fragment = FRAGMENTS[name]
    lines = fragment_in_words(fragment, 32)
    said = {line.split(": ")[0]: modes(line) for line in lines[1:]}
    thread = said.get("the 32 threads of a warp", ()) + said.get("warps", ()) + said.get("threads", ())
    again = Fragment(fragment.extents, thread, said.get("a thread", ()))
    assert again.threads == fragment.threads
    for ours, theirs in zip(again.all_coordinates, fragment.all_coordinates, strict=True):
        assert np.array_equal(ours, theirs)
    first = re.match(r"([\dx ]+) elements on (\d+) threads, (\d+) a thread", lines[0])
    assert first is not None
    assert tuple(int(part) for part in first[1].split(" x ")) == fragment.extents
    assert (int(first[2]), int(first[3])) == (fragment.threads, fragment.values)
    assert ("padded to 2 x 512" in lines[0]) == (name == "ghosts")
    assert ("4 threads hold each" in lines[0]) == (name == "replicated")


def test_what_a_warp_has_is_told_where_threads_are_whole_warps() -> None:
    assert fragment_in_words(FRAGMENTS["rows"], 32)[2:] == (
        "the 32 threads of a warp: 16 columns 4 apart, then 2 rows side by side",
        "warps: 4 rows 2 apart",
    )
    assert fragment_in_words(FRAGMENTS["odd threads"], 32)[2:] == (
        "the 32 threads of a warp: 32 elements side by side",
        "warps: 3 elements 32 apart",
    )
    assert fragment_in_words(FRAGMENTS["odd threads"], 64)[2:] == ("threads: 96 elements side by side",)


LAYOUTS = {
    "swizzled": (SharedLayout((64, 32), (32, 1), Swizzle(2, 3, 3)), 16),
    "panels": (atom_layout((128, 128), 16), 16),
    "padded": (SharedLayout((32, 33), (36, 1)), 32),
    "columns": (SharedLayout((64, 32), (1, 64), Swizzle(2, 2, 4)), 32),
    "line": (SharedLayout((100,), (1,)), 8),
}


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_a_shared_tile_lies_where_its_words_say(name: str) -> None:
    layout, bits = LAYOUTS[name]
    lines = shared_in_words(layout, bits)
    size = re.fullmatch(
        r"([\dx ]+) elements in (\d+) bytes of shared memory(?:, (\d+) of them unused)?", lines[0]
    )
    assert size is not None
    assert int(size[2]) == (int(layout.all_offsets().max()) + 1) * bits // 8
    assert int(size[3] or 0) == int(size[2]) - layout.size * bits // 8
    place = np.zeros(layout.extents, np.int64)
    for part in lines[1].split(", "):
        axis, first, *groups = re.split(r" (?=side by side|\d+ bytes apart|in groups of)", part)
        index = np.indices(layout.extents)[AXES[axis]]
        count = int(groups[0].split()[3]) if groups else index.max() + 1
        place += index % count * _elements(first, bits)
        if groups:
            place += index // count * _elements(groups[1] if len(groups) > 1 else groups[0], bits)
    if layout.swizzle is not None:
        formula = lines[-1].rsplit(" lies at ", 1)[1]
        assert re.fullmatch(r"[n ^&>()\d]+", formula)
        place = eval(formula, {"n": place})  # noqa: S307 - numbers, n and signs
    assert np.array_equal(place, layout.all_offsets())


def _elements(said: str, bits: int) -> int:
    found = re.search(r"(\d+) bytes apart", said)
    return 1 if found is None else int(found[1]) * 8 // bits
