"""Layouts that a kernel gives its tiles and arrays, mappings of its loops, and values outside of arrays."""

from __future__ import annotations

import ast
import re

from tests.fuzz.writer import PACKED, Buffer, Writer

_PLAIN = re.compile(r"(\w+): T\.Tensor\((\([^()]*\)), '(\w+)'\)")


def layouts(w: Writer) -> None:
    """What is said of buffers that are there, in front of all that is done with them."""
    said: list[str] = []
    if w.chance(0.12):
        said += [f"T.annotate_layout({{{name}: {_places(w, shape)}}})" for name, shape in _arrays(w)]
    if w.chance(0.15):
        said += [f"T.annotate_layout({{{tile.name}: {_layout(w, tile)}}})" for tile in _tiles(w)]
    if w.chance(0.05):
        for name, _ in _arrays(w):
            kind = "float" if re.search(rf"\b{name}: .*float", " ".join(w.params)) else "int"
            value = "1" if f"{name}: " in " ".join(p for p in w.params if "bool" in p) else w.constant(kind)
            said.append(f"T.annotate_safe_value({{{name}: {value}}})")
    if w.chance(0.03):
        said.append(f"T.annotate_min_blocks_per_sm({w.pick(1, 2, 4)})")
    w.head += said


def mapping(w: Writer, extents: tuple[int, ...]) -> str:
    """`loop_layout=` of a loop, now and then."""
    if not w.chance(0.04):
        return ""
    return f", loop_layout=T.Fragment({extents}, {_fragment(w, extents)})"


def _arrays(w: Writer) -> list[tuple[str, tuple[int, ...]]]:
    """Some arrays of constant extents, row-major, of whole bytes."""
    found = [match for param in w.params if (match := _PLAIN.fullmatch(param))]
    plain = [m for m in found if re.fullmatch(r"[(), 0-9]+", m[2]) and m[3] not in PACKED]
    return [(m[1], ast.literal_eval(m[2])) for m in plain if w.chance(0.5)]


def _tiles(w: Writer) -> list[Buffer]:
    """Some tiles of the whole kernel."""
    head = "\n".join(w.head)
    return [t for t in w.tiles() if f"{t.name} = T.alloc_" in head and w.chance(0.5)]


def _layout(w: Writer, tile: Buffer) -> str:
    if tile.scope == "fragment":
        return _fragment(w, tile.shape)
    if w.chance(0.2):
        steps = [1]
        for extent in reversed(tile.shape[1:]):
            steps.insert(0, steps[0] * extent + w.pick(0, 1, 4, 8))
        names = _names(tile.shape)
        total = " + ".join(f"{name} * {step}" for name, step in zip(names, steps, strict=True))
        return f"lambda {', '.join(names)}: {total}"
    return _places(w, tile.shape)


def _names(shape: tuple[int, ...]) -> list[str]:
    return [f"q{axis}" for axis in range(len(shape))]


def _parts(w: Writer, shape: tuple[int, ...]) -> list[tuple[int, str]]:
    """The indices of an element in any order, some taken apart and some turned by another: a permutation."""
    parts: list[tuple[int, str]] = []
    for name, extent in zip(_names(shape), shape, strict=True):
        divisors = [n for n in (2, 4, 8, 3) if extent % n == 0 and extent > n]
        if divisors and w.chance(0.4):
            by = w.pick(*divisors)
            parts += [(extent // by, f"{name} // {by}"), (by, f"{name} % {by}")]
        else:
            parts.append((extent, name))
    w.random.shuffle(parts)
    extent, text = parts[-1]
    if len(parts) > 1 and extent & (extent - 1) == 0 and w.chance(0.3):
        parts[-1] = extent, f"({text}) ^ ({parts[0][1]}) % {extent}"
    return parts


def _places(w: Writer, shape: tuple[int, ...]) -> str:
    parts = ", ".join(text for _, text in _parts(w, shape))
    return f"lambda {', '.join(_names(shape))}: [{parts}]"


def _fragment(w: Writer, shape: tuple[int, ...]) -> str:
    """A function of threads and their elements, whole numbers of elements dealt out in turn or in runs."""
    number, size = "0", 1
    for extent, text in _parts(w, shape):
        number, size = f"({number}) * {extent} + {text}", size * extent
    threads = w.threads or 128
    fit = [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if threads % n == 0 and size % n == 0]
    count = w.pick(*fit)
    names = ", ".join(_names(shape))
    if w.chance(0.5):
        return f"lambda {names}: (({number}) % {count}, ({number}) // {count})"
    return f"lambda {names}: (({number}) // {size // count}, ({number}) % {size // count})"
