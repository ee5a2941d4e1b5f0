"""From a seed to a program."""

from __future__ import annotations

import random
import re

from tests.fuzz.layouts import layouts
from tests.fuzz.program import Program
from tests.fuzz.statements import body, results
from tests.fuzz.writer import FLOATS, INTS, THREADS, Number, Writer
from tilebench.targets.cpu.machine import host_isa, named_isa


def draw(seed: int) -> Program:
    """The program of a seed: the same in every process."""
    source = random.Random(seed)
    w = Writer(source)
    w.threads = None if w.chance(0.1) else w.pick(128, *THREADS)
    w.grid = w.pick((1,), (1,), (2,), (3,), (2, 2), (1, 3), (2, 1, 2))
    # What has 4 bits is refused in most places, and would fill the report.
    narrow = w.chance(0.3)
    whole, floats = (INTS, FLOATS) if narrow else (INTS[:-2], FLOATS[:-1])
    w.palette = (
        w.pick("float32", *floats),
        w.pick("float16", *floats, *whole),
        w.pick("int32", *whole, "bool"),
    )
    w.numbers += [
        Number(name, 0, count - 1, True) for name, count in zip(("bx", "by", "bz"), w.grid, strict=False)
    ]
    if w.chance(0.2):
        size = w.pick(3, 16, 33, 64)
        w.dynamic[size] = "m0"
        w.sizes["m0"] = size
        w.numbers.append(Number("m0", size, size, True))
    if len(w.grid) == 2 and w.chance(0.2):
        w.say(f"T.use_swizzle({w.pick(1, 2, 3)}{w.pick('', ', order=' + repr('column'))})")
    body(w, w.pick(1, 2, 3, 3, 4))
    results(w)
    layouts(w)
    _schedule(w)
    named = set(re.findall(r"\w+", " ".join(w.params)))
    for name in sorted(w.sizes.keys() - named):
        # Nothing tells a size that no array has.
        w.params.append(f"{name}: T.int32")
    return w.program(
        seed,
        target=w.pick("cuda:sm_80", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_75"),
        inputs=w.pick("uniform", "uniform", "uniform", "wide", "special", "normal"),
        aligned=w.chance(0.7),
        wide=w.chance(0.1),
        cpu=w.pick("cpu", "cpu", *CPUS),
    )


def _runs_here(level: str) -> bool:
    isa = named_isa(level)
    return isa.triple == host_isa().triple and isa.has <= host_isa().has


# Instruction sets below this machine's own: vectors of other lengths, and functions made of other parts.
CPUS = tuple(f"cpu:{level}" for level in ("x86-64", "x86-64-v3") if _runs_here(level))


def _schedule(w: Writer) -> None:
    """Choices that a schedule makes over the kernel's own."""
    # Code of single threads is written for as many as there are.
    if w.chance(0.05) and not any("tx" in line for line in w.lines):
        w.schedule["threads"] = w.pick(32, 64, 128, 256)
    if w.chance(0.05):
        w.schedule["order"] = w.pick(1, 2, 3)
    shared = [each.name for each in w.tiles("shared")]
    if shared and w.chance(0.1):
        w.schedule["buffer"] = {w.pick(*shared): {"swizzle": w.chance(0.5)}}
