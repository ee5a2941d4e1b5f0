"""Statements that meet the whole kernel: prints, asserts, votes over tiles, atomics, barriers of the grid,
macros with arguments, vectors."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import Site, condition, value
from tests.fuzz.writer import Buffer, Number, Writer

Body = Callable[[Writer, int], None]


def said(w: Writer) -> None:
    """What the kernel says: a value, an element, a tile or a part of one, and what it checks."""
    if w.group or w.elements or sum("T.print" in line for line in w.lines) > 3:
        return
    words = f", {w.name('said')!r}" if w.chance(0.5) else ""
    tiles = [each for each in w.tiles() if not each.packed]
    if w.chance(0.25):
        x = value(w, Site(), "int", 1)
        # True of every integer, also of one that has wrapped, and nothing proves it.
        w.say(f"T.device_assert(({x}) * ({x}) % 4 != 2{words})")
    elif not tiles or w.chance(0.3):
        w.say(f"T.print({value(w, Site(), w.pick('float', 'int', 'bool'), 1)}{words})")
    elif w.chance(0.3):
        _said_by_elements(w, w.pick(*tiles), words)
    else:
        tile = w.pick(*tiles)
        part = "" if w.chance(0.5) else f"[{', '.join(w.start(extent - 1) for extent in tile.shape)}]"
        if part and tile.scope == "fragment":
            return
        w.say(f"T.print({tile.name}{part}{words})")


def _said_by_elements(w: Writer, tile: Buffer, words: str) -> None:
    axes = [Number(w.name("i"), 0, extent - 1) for extent in tile.shape]
    index = ", ".join(axis.text for axis in axes)
    counts = ", ".join(map(str, tile.shape))
    site = Site(axes=axes, stored={tile.name: index})
    w.elements = True
    with w.block(f"for {index} in T.Parallel({counts}):"):
        if w.chance(0.6):
            w.say(f"if {condition(w, site, 1)}: T.print({tile.name}[{index}]{words})")
        else:
            w.say(f"T.print({tile.name}[{index}]{words})")
    w.elements = False


def voted(w: Writer, body: Body) -> None:
    """A branch on some elements of a shared tile together."""
    tiles = [each for each in w.tiles("shared") if not each.packed]
    if w.group or not tiles:
        return
    tile = w.pick(*tiles)
    counts = [w.random.randint(1, min(3, extent)) for extent in tile.shape]
    parts: list[str] = []
    for extent, count in zip(tile.shape, counts, strict=True):
        start = w.start(extent - count)
        parts.append(f"{start} : {int(start) + count}" if start.isdigit() else f"{start} : {start} + {count}")
    turned = w.pick("", "", "not ")
    with w.block(f"if {turned}T.{w.pick('any_of', 'all_of')}({tile.name}[{', '.join(parts)}]):"):
        body(w, 1)


def atomics(w: Writer) -> None:
    """Combined with what is there: whole numbers and extremes by many, and any number by one each."""
    if w.group or w.elements:
        return
    if w.chance(0.5):
        _by_many(w)
    else:
        _by_one_each(w)


ORDERS = ("", "", ", memory_order='relaxed'", ", memory_order='acq_rel'", ", memory_order='seq_cst'")


def _by_many(w: Writer) -> None:
    """Into a few elements that no statement reads: in whichever order, they become the same."""
    count = w.pick(1, 3, 8)
    dtype = w.pick("int32", "int32", "uint32", "int64", "uint64", "float32", "float16", "bfloat16", "float64")
    kind = "float" if "float" in dtype else "int"
    ops = ("max", "min") if kind == "float" else ("add", "add", "max", "min", "or")
    target = w.name("C")
    w.params.append(f"{target}: T.Tensor(({count},), {dtype!r})")
    w.random.shuffle(axes := [Number(w.name("i"), 0, w.pick(0, 3, 16, 40)) for _ in range(w.pick(1, 2))])
    site = Site(axes=axes)
    w.elements = True
    counts = ", ".join(str(axis.high + 1) for axis in axes)
    with w.block(f"for {', '.join(axis.text for axis in axes)} in T.Parallel({counts}):"):
        place = f"{target}[{axes[0].text} % {count}]"
        given = value(w, site, kind, 2)
        guard = f"if {condition(w, site, 1)}: " if w.chance(0.4) else ""
        w.say(f"{guard}T.atomic_{w.pick(*ops)}({place}, {given}{w.pick(*ORDERS)})")
    w.elements = False


def _by_one_each(w: Writer) -> None:
    """Into elements of an output, each by one iteration, which is told what was there."""
    dtype = w.pick("float32", "float16", "bfloat16", "float64", "int32", "uint32", "int64")
    tile = w.some(dtype=dtype, scope=w.pick("shared", "fragment"))
    target = w.output(tile.shape, dtype)
    if target.slab is None:
        return
    axes = [w.name("i") for _ in tile.shape]
    counts = ", ".join(map(str, tile.shape))
    there = ", ".join(
        f"{target.slab.start} + {axis}" if k == target.slab.axis else axis for k, axis in enumerate(axes)
    )
    # What is outside of the array is neither combined nor told.
    inside = " and ".join(
        f"{part} < {extent}" for part, extent in zip(there.split(", "), target.shape, strict=True)
    )
    op = w.pick("add", "add", "max", "min", *(("or",) if "int" in dtype else ()))
    index = ", ".join(axes)
    with w.block(f"for {index} in T.Parallel({counts}):"), w.block(f"if {inside}:"):
        call = f"T.atomic_{op}({target.name}[{there}], {tile.name}[{index}]{w.pick(*ORDERS)}"
        if w.chance(0.6):
            old = w.name("old")
            w.say(f"{old} = {call}, return_prev=True)")
            w.say(f"{tile.name}[{index}] = {old}")
        else:
            w.say(f"{call})")


def grid_barrier(w: Writer) -> None:
    """Every block leaves a tile where all can see it, waits, and reads those of others."""
    if w.scopes or w.group or w.elements or w.done or w.depth:
        return
    tile = w.some()
    if tile.packed or w.random.random() < 0.3:
        return
    blocks = 1
    for count in w.grid:
        blocks *= count
    rows = tile.shape[0]
    made = Buffer(w.name("W"), (blocks * rows, *tile.shape[1:]), tile.dtype, "global")
    w.before.append(f"{made.name} = T.alloc_global({made.shape}, {made.dtype!r})")
    starts = ", ".join([w.slab_start(rows), *("0" for _ in tile.shape[1:])])
    w.say(f"T.copy({tile.name}, {made.name}[{starts}])")
    w.say("T.sync_grid()")
    # Of what a block keeps nothing is left behind it.
    w.done += [*w.head, *w.lines]
    w.head, w.lines = [], []
    w.buffers = [each for each in w.buffers if each.scope == "global" and each.slab is None]
    w.buffers.insert(0, made)
    w.variables = []
    w.numbers = [each for each in w.numbers if each.lasting]


def called(w: Writer, body: Body) -> None:
    """A macro that is given a tile and a value, stores in the one and gives back another value."""
    tile = w.some(dtype=w.dtype_computed(w.pick("float", "int")))
    if w.group or w.elements:
        return
    name, given, x = w.name("f"), w.name("t"), w.name("y")
    axes = [w.name("i") for _ in tile.shape]
    index, counts = ", ".join(axes), ", ".join(map(str, tile.shape))
    w.say("@T.macro")
    with w.block(f"def {name}({given}, {x}):"):
        with w.block(f"for {index} in T.Parallel({counts}):"):
            w.say(f"{given}[{index}] = {given}[{index}] {w.pick('+', '-', '*')} {x}")
        w.say(f"return {x} {w.pick('+', '*')} {w.pick(1, 2)}")
    result = w.name("z")
    w.say(f"{result} = {name}({tile.name}, {value(w, Site(), tile.kind, 1)})")
    if w.chance(0.5):
        w.say(f"{name}({tile.name}, {result})")


def vectors(w: Writer) -> None:
    """Elements side by side, loaded, computed with and stored together."""
    if w.group or w.elements:
        return
    lanes, count = w.pick(2, 2, 4, 8, 16), w.pick(1, 3, 16, 40)
    dtype = w.pick("float32", "float32", "float16", "bfloat16", "float64", "int32", "uint8", "int16")
    source = w.input((lanes * count,), dtype)
    target = w.output((lanes * count,), dtype)
    if target.slab is None or len(source.shape) != 1:
        return
    i, v = w.name("i"), w.name("v")
    ahead = w.pick("", "", " + 1", f" - {lanes}", f" + {lanes}")
    with w.block(f"for {i} in T.Parallel({count}):"):
        w.say(f"{v} = {source.name}[T.Ramp({i} * {lanes}{ahead}, 1, {lanes})]")
        if w.chance(0.3):
            bits = "uint32" if dtype not in ("float64",) and lanes * BITS[dtype] >= 64 else "uint64"
            number = lanes * BITS[dtype] // int(bits.removeprefix("uint"))
            if number in (2, 4, 8, 16):
                w.say(f"{v} = T.reinterpret(T.reinterpret({v}, T.{bits}x{number}), T.{dtype}x{lanes})")
        if w.chance(0.6):
            w.say(f"{v} = {v} {w.pick('+', '*', '-')} {w.pick(f'{v}[0]', v, '2', f'T.{dtype}(3)')}")
        place = f"{target.name}[T.Ramp({target.slab.start} + {i} * {lanes}, 1, {lanes})]"
        w.say(f"{place} = {w.pick(v, v, f'{v}[{lanes - 1}]')}")


BITS = {
    "float32": 32, "float16": 16, "bfloat16": 16, "float64": 64, "int32": 32, "uint8": 8, "int16": 16,
}  # fmt: skip
FURTHER: tuple[tuple[Callable[[Writer], None], int], ...] = (
    (said, 1),
    (atomics, 1),
    (grid_barrier, 1),
    (vectors, 1),
)
WITH_BODY: tuple[tuple[Callable[[Writer, Body], None], int], ...] = ((voted, 1), (called, 1))
