"""Statements of a block: copies, fills, products, reductions, loops, branches and groups of threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.fuzz.elements import parallel, single
from tests.fuzz.expressions import Site, value
from tests.fuzz.further import FURTHER, WITH_BODY
from tests.fuzz.threads import threads
from tests.fuzz.writer import Buffer, Number, Writer, kind_of

# Dtype of the operands -> of the sum.
GEMMS = {
    "float16": ("float32", "float16"), "bfloat16": ("float32", "bfloat16"), "float32": ("float32",),
    "float64": ("float64",), "float8_e4m3fn": ("float32", "float16"), "float8_e5m2": ("float32",),
    "int8": ("int32",), "uint8": ("int32",), "int16": ("int32",), "int32": ("int32",), "uint32": ("uint32",),
    "int64": ("int64",), "uint64": ("uint64",), "uint16": ("int32",),
    "int4": ("int32",), "uint4": ("int32", "float32"), "float4_e2m1fn": ("float32", "float16"),
}  # fmt: skip


COMMON_GEMMS = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32")


def box(w: Writer, buffer: Buffer, extents: tuple[int, ...]) -> str:
    """A part of a buffer with these extents, the last ones of its dimensions; of an output in its slab."""
    lead = len(buffer.shape) - len(extents)
    parts: list[str] = []
    head = w.chance(0.5)
    for axis, extent in enumerate(buffer.shape):
        count = extents[axis - lead] if axis >= lead else 1
        if buffer.slab and buffer.slab.axis == axis:
            first = w.upto(buffer.slab.rows - count)
            start = f"{buffer.slab.start} + {first}" if first else buffer.slab.start
        else:
            start = w.anywhere(extent) if buffer.scope == "global" else w.start(extent - count)
        spelled = f"{start} : {start} + {count}"
        if start.isdigit():
            spelled = (
                ":"
                if count == extent and start == "0" and w.chance(0.5)
                else f"{start} : {int(start) + count}"
            )
        parts.append(start if axis < lead or head else spelled)
    return f"{buffer.name}[{', '.join(parts)}]"


def copy(w: Writer) -> None:
    """A whole tile or a part of one, to or from an array or another tile."""
    tile = w.some()
    whole = w.chance(0.65)
    extents = tile.shape if whole else tuple(w.random.randint(1, each) for each in tile.shape)
    spelled = tile.name if whole and w.chance(0.8) else _ranges(w, tile, extents)
    width = f", coalesced_width={w.pick(1, 2, 4, 8)}" if w.chance(0.05) else ""
    match w.pick("in", "out", "out", "tile"):
        case "in":
            source = w.input(extents, tile.dtype if w.chance(0.7) else w.dtype())
            w.say(f"T.copy({box(w, source, extents)}, {spelled}{width})")
        case "out":
            if w.group and w.chance(0.5):
                return
            target = w.output(extents, tile.dtype if w.chance(0.6) else w.dtype())
            w.say(f"T.copy({spelled}, {box(w, target, extents)}{width})")
        case "tile" if w.chance(0.15):
            w.say(f"T.copy({_ranges(w, tile, extents)}, {_ranges(w, tile, extents)})")
        case _:
            other = w.some(extents if whole else None, but=(tile.name,))
            ranks = other.name != tile.name and len(other.shape) == len(extents)
            if ranks and all(a >= b for a, b in zip(other.shape, extents, strict=True)):
                w.say(f"T.copy({spelled}, {_ranges(w, other, extents)})")


def _ranges(w: Writer, tile: Buffer, extents: tuple[int, ...]) -> str:
    """A box of a tile, every range written out; the name where it is the whole tile."""
    if extents == tile.shape and w.chance(0.8):
        return tile.name
    parts: list[str] = []
    for extent, count in zip(tile.shape, extents, strict=True):
        start = w.start(extent - count)
        end = str(int(start) + count) if start.isdigit() else f"{start} + {count}"
        parts.append(f"{start} : {end}")
    return f"{tile.name}[{', '.join(parts)}]"


def fill(w: Writer) -> None:
    tile = w.some()
    part = tile.name if w.chance(0.5) else _ranges(w, tile, tuple(w.random.randint(1, e) for e in tile.shape))
    if w.chance(0.3):
        w.say(f"T.clear({part})")
    else:
        text = w.constant(tile.kind) if w.chance(0.6) else value(w, Site(), tile.kind, 1)
        w.say(f"T.fill({part}, {text})")


def reduce(w: Writer) -> None:
    source = w.some(dtype=None if w.chance(0.5) else w.dtype_computed(w.pick("float", "int")))
    if source.packed or (source.kind == "bool" and w.chance(0.8)):
        return None
    dim = w.random.randrange(len(source.shape))
    kept = w.chance(0.4) or len(source.shape) == 1
    shape = tuple(1 if k == dim else e for k, e in enumerate(source.shape) if k != dim or kept)
    dtype = source.dtype if w.chance(0.6) else w.dtype_computed(source.kind)
    target = w.some(shape, dtype, but=(source.name,))
    if w.chance(0.2):
        return cumsum(w, source)
    said = dim if w.chance(0.7) else dim - len(source.shape)
    clear = w.pick("", "", ", clear=False")
    kind = w.pick("sum", "max", "min")
    if source.kind == "int" and w.chance(0.4):
        kind = w.pick("bitand", "bitor", "bitxor")
    elif source.kind in ("int", "float") and w.chance(0.15):
        kind = w.pick("abssum", "absmax")
    nan = ", nan_propagate=True" if kind in ("max", "min") and w.chance(0.3) else ""
    w.say(f"T.reduce_{kind}({source.name}, {target.name}, dim={said}{clear}{nan})")
    return None


def reducer(w: Writer) -> None:
    """What iterations form together: begun with a number, updated in a loop, and left in a tile."""
    source = w.some(dtype=w.dtype_computed(w.pick("float", "int")))
    if len(source.shape) < 2 or w.group:
        return
    bits = ("bitand", "bitor", "bitxor") if source.kind == "int" and w.chance(0.3) else ()
    op, kept = w.pick(*(bits or ("sum", "max", "min"))), w.random.randrange(len(source.shape))
    name = w.name("r")
    w.say(f"{name} = T.alloc_reducer({source.shape[kept]}, {source.dtype!r}, {op!r})")
    w.say(f"T.reducer_init({name}{w.pick('', ', ' + w.constant(source.kind))})")
    axes = [w.name("i") for _ in source.shape]
    with w.block(f"for {', '.join(axes)} in T.Parallel({', '.join(map(str, source.shape))}):"):
        element = f"{source.name}[{', '.join(axes)}]"
        if w.chance(0.3):
            with w.block(f"if {axes[0]} % 2 == 0:"):
                w.say(f"T.reducer_update({name}[{axes[kept]}], {element})")
        else:
            w.say(f"T.reducer_update({name}[{axes[kept]}], {element})")
    target = w.some((source.shape[kept],), source.dtype, but=(source.name,))
    w.say(f"T.finalize_reducer({name}, {target.name})")


def transposed(w: Writer) -> None:
    source = w.some()
    if len(source.shape) == 2 and not source.packed:
        target = w.some(source.shape[::-1], but=(source.name,))
        if not target.packed:
            w.say(f"T.transpose({source.name}, {target.name})")


def cumsum(w: Writer, source: Buffer) -> None:
    dim = w.random.randrange(len(source.shape))
    to = ""
    if w.chance(0.5):
        to = f", {w.some(source.shape, source.dtype, but=(source.name,)).name}"
    kind = w.pick("sum", "max") if source.kind != "bool" else "sum"
    w.say(f"T.cum{kind}({source.name}{to}, dim={dim}{w.pick('', ', reverse=True')})")


def gemm(w: Writer) -> None:
    known = [d for d in w.palette if d in COMMON_GEMMS]
    operand = w.pick(*GEMMS) if w.chance(0.05) else w.pick(*known, "float32", "float16")
    m, n, k = (w.pick(1, 2, 3, 5, 8, 16, 17, 20, 32) for _ in range(3))
    flips = w.chance(0.3), w.chance(0.3)
    own = m * n <= 64 and w.chance(0.15)
    kinds = ("tile", "part", "array") if own else OPERANDS
    a = _operand(w, (k, m) if flips[0] else (m, k), operand, kinds)
    b = _operand(w, (n, k) if flips[1] else (k, n), operand, kinds)
    total = GEMMS[operand][0] if w.chance(0.95) else w.pick(*GEMMS[operand])
    if own:
        _gemm_of_each(w, a[1], b[1], (m, n), total, flips)
        return
    c = w.some((m, n), total, "fragment", but=(a[0], b[0]))
    if (m, n) == (k, n) and operand == total and w.chance(0.2):
        b = (c.name, c.name)
        flips = flips[0], False
    flags = "".join(f", transpose_{x}=True" for x, flip in zip("AB", flips, strict=True) if flip)
    loops = [n for n in w.numbers if not n.lasting]
    if w.chance(0.2):
        flags += f", clear_accum={f'{loops[0].text} == 0' if loops and w.chance(0.7) else True}"
    if w.chance(0.1):
        flags += f", policy={w.pick('square', 'full_row', 'full_col')!r}"
    if operand == "float32" and w.chance(0.3):
        flags += ", allow_tf32=True"
    if operand.startswith("float8") and w.chance(0.3):
        flags += ", fast_accum=True"
    w.say(f"T.gemm({a[1]}, {b[1]}, {c.name}{flags})")


def _gemm_of_each(
    w: Writer, a: str, b: str, shape: tuple[int, int], total: str, flips: tuple[bool, bool]
) -> None:
    """A product into an array of each thread's own, and that into a shared tile."""
    name = w.name("l")
    w.say(f"{name} = T.alloc_local({shape}, {total!r})")
    w.say(f"T.clear({name})" if w.chance(0.5) else f"T.fill({name}, {w.pick(1, 2, 3)})")
    flags = "".join(f", transpose_{x}=True" for x, flip in zip("AB", flips, strict=True) if flip)
    flags += w.pick("", "", ", clear_accum=True")
    w.say(f"T.gemm({a}, {b}, {name}{flags})")
    w.say(f"T.copy({name}, {w.some(shape, total, 'shared').name})")


OPERANDS = ("tile", "tile", "tile", "part", "deep", "array", "fragment")


def _operand(w: Writer, shape: tuple[int, int], dtype: str, kinds: tuple[str, ...]) -> tuple[str, str]:
    """Name and text of an operand: a shared tile or a part of one, a fragment, or a part of an array."""
    match w.pick(*kinds):
        case "tile":
            tile = w.some(shape, dtype, "shared")
            return tile.name, tile.name
        case "fragment":
            tile = w.some(shape, dtype, "fragment")
            return tile.name, tile.name
        case "part":
            larger = (shape[0] + w.pick(0, 1, 4), shape[1] + w.pick(0, 2, shape[1]))
            tile = w.some(larger, dtype, "shared")
            return tile.name, _ranges(w, tile, shape)
        case "deep":
            tile = w.some((w.pick(1, 2), *shape), dtype, "shared")
            return tile.name, f"{tile.name}[{w.start(tile.shape[0] - 1)}, :, :]"
        case _:
            array = w.input(shape, dtype)
            lead = ["0"] * (len(array.shape) - 2)
            starts = [w.anywhere(extent) for extent in array.shape[len(lead) :]]
            ranges = [f"{s} : {s} + {e}" for s, e in zip(starts, shape, strict=True)]
            return array.name, f"{array.name}[{', '.join([*lead, *ranges])}]"


def variable(w: Writer) -> None:
    """A scalar of the block that is assigned again."""
    fit = [each for each in w.variables if not w.group]
    if not fit or w.chance(0.4):
        dtype = w.dtype_computed(w.pick("float", "int", "int"))
        name = w.name("v")
        w.say(f"{name} = T.alloc_var({dtype!r}, init={w.constant(kind_of(dtype))})")
        w.variables.append((name, kind_of(dtype)))
        if w.scopes:
            w.scopes[-1].append(name)
        return
    name, kind = w.pick(*fit)
    w.say(f"{name} = {value(w, Site(), kind, 2)}")


def loop(w: Writer) -> None:
    if len([each for each in w.numbers if not each.lasting]) > 1 + len(w.grid):
        return
    (number, *more), head = _loop_head(w)
    with w.block(head, number, *more):
        if head.split("T.")[-1].startswith("Pipelined") or w.chance(0.2):
            for _ in range(w.pick(1, 1, 2)):
                tile = w.some(scope="shared")
                source = w.input(tile.shape, tile.dtype)
                lead = ["0"] * (len(source.shape) - len(tile.shape))
                starts = [w.pick("0", f"{number.text} * {e}", number.text) for e in tile.shape]
                w.say(f"T.copy({source.name}[{', '.join([*lead, *starts])}], {tile.name})")
        leave(w, number)
        body(w, w.pick(1, 1, 2, 3))
        leave(w, number)


def leave(w: Writer, number: Number) -> None:
    """A turn that ends early now and then, with its loop or alone."""
    if w.chance(0.85):
        return
    test = f"{number.text} {w.pick('<', '>=', '==', '!=')} {w.random.randint(number.low, number.high + 1)}"
    with w.block(f"if {test}:"):
        if w.chance(0.3):
            body(w, 1)
        w.say(w.pick("break", "continue"))


def turning(w: Writer) -> None:
    """A loop that counts its own turns."""
    if w.group or len([each for each in w.numbers if not each.lasting]) > 1 + len(w.grid):
        return
    name, count = w.name("n"), w.pick(1, 2, 3)
    w.say(f"{name} = T.alloc_var('int32', init=0)")
    number = Number(name, 1, count)
    with w.block(f"while {name} < {count}:", number):
        w.say(f"{name} = {name} + 1")
        leave(w, number)
        body(w, w.pick(1, 1, 2))
        leave(w, number)


def _loop_head(w: Writer) -> tuple[tuple[Number, ...], str]:
    name = w.name("k")
    count = w.pick(1, 2, 3, 4)
    counted = str(count)
    fit = [each for each in w.numbers if each.lasting and each.low == each.high and 0 < each.high < 6]
    if fit and w.chance(0.5):
        chosen = w.pick(*fit)
        count, counted = chosen.high, chosen.text
    elif w.chance(0.1) and not w.group:
        # As many turns as the kernel is told, none among them.
        count, counted = 3, w.parameter_start()
    match w.pick("serial", "range", "unroll", "pipelined", "pipelined", "pipelined", "steps", "grid"):
        case "pipelined":
            stages = w.pick(
                "", ", num_stages=2", ", num_stages=3", ", num_stages=1", ", num_stages=4", ", num_stages=0"
            )
            if w.chance(0.3):
                w.schedule.setdefault("loop", {})[name] = {"num_stages": w.pick(0, 1, 2, 3, 5)}
            return (Number(name, 0, count - 1),), f"for {name} in T.Pipelined({counted}{stages}):"
        case "steps":
            step = w.pick(1, 2, 3)
            first = w.pick(0, 1, 2)
            last = first + (count - 1) * step
            return (
                Number(name, first, last),
            ), f"for {name} in {w.pick('T.serial', 'range')}({first}, {last + 1}, {step}):"
        case "unroll":
            return (Number(name, 0, count - 1),), f"for {name} in T.unroll({count}):"
        case "grid":
            both = (Number(name, 0, count - 1), Number(w.name("k"), 0, 1))
            return both, f"for {name}, {both[1].text} in T.grid({count}, 2):"
        case word:
            spelled = "T.serial" if word == "serial" else "range"
            return (Number(name, 0, count - 1),), f"for {name} in {spelled}({counted}):"


def branch(w: Writer) -> None:
    """A branch of the whole block, on whole numbers."""
    if not w.numbers:
        return
    number = w.pick(*w.numbers)
    test = f"{number.text} {w.pick('<', '>=', '==', '!=')} {w.random.randint(number.low, number.high + 1)}"
    if w.chance(0.2):
        test = f"{number.text} % 2 == {w.pick(0, 1)}"
    elif w.chance(0.2) and not w.group:
        test = f"{w.parameter_start()} {w.pick('<', '>', '==')} {w.pick(1, 2)}"
    with w.block(f"if {test}:"):
        body(w, w.pick(1, 1, 2))
    if w.chance(0.4):
        with w.block("else:"):
            body(w, 1)


def group(w: Writer) -> None:
    """Some threads of the block do something, with tiles of their own and shared ones."""
    if w.group or w.elements or not w.threads or w.threads < 64:
        return
    warps = w.threads // 32
    first = w.random.randrange(warps) * 32
    count = w.random.randint(1, warps - first // 32) * 32
    head = (
        f"with T.threads({first}, {count}):"
        if w.chance(0.7)
        else f"if tx >= {first} and tx < {first + count}:"
    )
    if "tx" in head and "tx = T.get_thread_binding()" not in w.head:
        w.head.insert(0, "tx = T.get_thread_binding()")
    hidden = [each for each in w.buffers if each.scope == "fragment"]
    w.buffers = [each for each in w.buffers if each.scope != "fragment"]
    w.group = True
    with w.block(head):
        body(w, w.pick(1, 2))
    w.group = False
    w.buffers += hidden


def macro(w: Writer) -> None:
    """Some statements as a macro, which the kernel calls once or twice."""
    name = w.name("f")
    w.say("@T.macro")
    with w.block(f"def {name}():"):
        body(w, w.pick(1, 2))
    for _ in range(w.pick(1, 1, 2)):
        w.say(f"{name}()")


def drawn(w: Writer) -> None:
    """A tile of random numbers, one or two drawn for each element."""
    tile = w.some()
    if w.group or tile.packed:
        return
    axes = [w.name("i") for _ in tile.shape]
    block = w.pick("0", *[number.text for number in w.numbers[:1]])
    w.say(f"T.rng_init({w.pick(1, 2**31, -3)}, {block}, {w.pick(0, 1, 6)})")
    element = f"{tile.name}[{', '.join(axes)}]"
    float_ = w.pick("T.rng_rand_float()", "T.rng_rand_float(64)")
    number = {"float": float_, "int": "T.rng_rand() % 7", "bool": "T.rng_rand() % 2 == 0"}[tile.kind]
    with w.block(f"for {', '.join(axes)} in T.Parallel({', '.join(map(str, tile.shape))}):"):
        if w.chance(0.3):
            with w.block(f"if {axes[0]} % 2 == 0:"):
                w.say(f"{element} = T.cast({number}, {tile.dtype!r})")
        w.say(f"{element} = T.cast({number}, {tile.dtype!r})")


STATEMENTS: tuple[tuple[Callable[[Writer], None], int], ...] = (
    (reducer, 1), (transposed, 1), (parallel, 8), (copy, 6), (fill, 2), (reduce, 4), (gemm, 4), (loop, 4),
    (branch, 2), (group, 1), (single, 1), (variable, 1), (turning, 1), (threads, 1), (macro, 1), (drawn, 1),
    *FURTHER, *((partial(word, body=lambda w, count: body(w, count)), weight) for word, weight in WITH_BODY),
)  # fmt: skip


def body(w: Writer, count: int) -> None:
    """Some statements in a row."""
    if len(w.lines) > 25 or w.depth > 3:
        return
    words = [each for each, _ in STATEMENTS]
    for word in w.random.choices(words, [weight for _, weight in STATEMENTS], k=count):
        word(w)


def results(w: Writer) -> None:
    """Tiles of the end, copied out so that somebody sees them."""
    for tile in w.tiles()[-4:]:
        w.say(f"T.copy({tile.name}, {box(w, w.output(tile.shape, tile.dtype), tile.shape)})")
