"""Loops over elements: `T.Parallel`, with guards, branches, names, and loops of each element inside."""

from __future__ import annotations

from contextlib import ExitStack

from tests.fuzz.expressions import Site, condition, value
from tests.fuzz.layouts import mapping
from tests.fuzz.writer import Buffer, Number, Writer

AXES = "ijk"


def parallel(w: Writer) -> None:
    """A loop that stores in one buffer or two."""
    target = _target(w)
    axes, index = _axes(w, target)
    order = list(axes)
    if w.chance(0.15):
        w.random.shuffle(order)
    inner = _inner(w, order)
    extents = [str(a.high + 1) for a in order]
    given = "" if w.group else mapping(w, tuple(a.high + 1 for a in order))
    if w.chance(0.06) and not w.group:
        # One that only the running kernel knows, of which no mapping is known.
        extents[0], first, given = w.name("e"), extents[0], ""
        w.say(f"{extents[0]} = T.alloc_var('int32', init={first})")
    head = f"for {', '.join(a.text for a in order)} in T.Parallel({', '.join(extents)}{given}):"
    taken_apart = ""
    if w.chance(0.08) and len(order) > 1 and inner is None:
        head, taken_apart = _flattened(order)
    site = Site(axes=list(axes), stored={target.name: index})
    with ExitStack() as blocks:
        blocks.enter_context(_elements(w))
        blocks.enter_context(w.block(head))
        if taken_apart:
            w.say(taken_apart)
        if inner is not None:
            word = w.pick("T.serial", "T.vectorized", "T.unroll", "range")
            blocks.enter_context(w.block(f"for {inner.text} in {word}({inner.high + 1}):"))
        _body(w, site, target, index)


def _elements(w: Writer) -> ExitStack:
    """Marks that what follows stands in a loop over elements, where no tile is allocated."""
    stack = ExitStack()
    w.elements = True
    stack.callback(setattr, w, "elements", False)
    return stack


def _target(w: Writer) -> Buffer:
    if w.chance(0.35) and not w.group:
        return w.output(w.shape(), w.dtype())
    found = w.some()
    # One thread stores both halves of a byte: most loops would be refused.
    return found if not found.packed or w.chance(0.1) else w.some(dtype=w.dtype_computed("int"))


def _axes(w: Writer, target: Buffer) -> tuple[list[Number], str]:
    """The loop's variables and the index that is stored: each element is stored once."""
    count = w.count
    w.count += 1
    axes: list[Number] = []
    index: list[str] = []
    for axis, extent in enumerate(target.shape):
        slab = target.slab if target.slab and target.slab.axis == axis else None
        room = slab.rows if slab else extent
        size = room if w.chance(0.75) else w.random.randint(1, room)
        letter = f"{AXES[axis]}{count}"
        first = w.upto(room - size)
        step = 2 if not first and 2 * size - 1 <= room and w.chance(0.3) else 1
        text = letter if step == 1 else f"{letter} * 2"
        text = f"{text} + {first}" if first else text
        if room == 1 and w.chance(0.3) and target.slab is None:
            index.append("0")
            continue
        index.append(f"{slab.start} + {text}" if slab else text)
        axes.append(Number(letter, 0, size - 1))
    if not axes:
        axes = [Number(f"i{count}", 0, 0)]
    return axes, ", ".join(index)


def _inner(w: Writer, order: list[Number]) -> Number | None:
    """The last variable as a loop of each element, taken out of the parallel ones."""
    if len(order) > 1 and order[-1].high < 20 and w.chance(0.12):
        return order.pop()
    return None


def _flattened(order: list[Number]) -> tuple[str, str]:
    """The same loop with one variable, and the line that takes it apart."""
    flat, below = f"{order[0].text}_", 1
    count = 1
    for axis in order:
        count *= axis.high + 1
    lines: dict[str, str] = {}
    for axis in reversed(order):
        lines[axis.text] = (
            f"{flat} // {below} % {axis.high + 1}" if below > 1 else f"{flat} % {axis.high + 1}"
        )
        below *= axis.high + 1
    return f"for {flat} in T.Parallel({count}):", f"{', '.join(lines)} = {', '.join(lines.values())}"


def _body(w: Writer, site: Site, target: Buffer, index: str) -> None:
    for _ in range(w.pick(0, 0, 0, 1, 2)):
        kind = w.pick("float", "int", "bool")
        name = w.name("x")
        w.say(f"{name} = {value(w, site, kind, w.pick(1, 2))}")
        site.bound.append((name, kind))
    place = f"{target.name}[{index}]"
    first = w.random.random()
    if first < 0.2:
        with w.block(f"if {condition(w, site, 1)}:"):
            _store(w, site, target, place)
        if w.chance(0.4):
            with w.block("else:"):
                _store(w, site, target, place)
    elif first < 0.3:
        count = w.pick(2, 3)
        number = Number(w.name("r"), 0, count - 1)
        with w.block(f"for {number.text} in {w.pick('T.serial', 'T.unroll', 'range')}({count}):", number):
            if w.chance(0.4):
                w.say(f"if {condition(w, site, 1)}: {w.pick('break', 'continue')}")
            _store(w, site, target, place)
    elif first < 0.36:
        _local(w, site, target, place)
    else:
        _store(w, site, target, place)
    if w.chance(0.15):
        _second(w, site)


def _store(w: Writer, site: Site, target: Buffer, place: str) -> None:
    kind = target.kind
    if w.chance(0.2):
        kind = w.pick("float", "int", "bool")
    text = value(w, site, kind, w.pick(1, 2, 2, 3))
    if w.chance(0.2) and not target.packed and target.kind != "bool":
        w.say(f"{place} {w.pick('+=', '*=', '-=')} {value(w, site, target.kind, 1)}")
    else:
        w.say(f"{place} = {text}")


def _local(w: Writer, site: Site, target: Buffer, place: str) -> None:
    """Through memory of each element's own."""
    kind = "float" if target.kind == "bool" else target.kind
    dtype = w.dtype_computed(kind)
    name = w.name("l")
    if w.chance(0.5):
        w.say(f"{name} = T.alloc_var({dtype!r}, init={w.constant(kind)})")
        number = Number(w.name("r"), 0, 2)
        with w.block(f"for {number.text} in T.serial(3):", number):
            w.say(f"{name} = {name} + {value(w, site, kind, 1)}")
        w.say(f"{place} = {name}")
        return
    w.say(f"{name} = T.alloc_local((3,), {dtype!r})")
    number = Number(w.name("r"), 0, 2)
    with w.block(f"for {number.text} in T.serial(3):", number):
        w.say(f"{name}[{number.text}] = {value(w, site, kind, 1)}")
    w.say(f"{place} = {name}[0] + {name}[1] * {name}[2]")


def _second(w: Writer, site: Site) -> None:
    """A store in another buffer of the same extents."""
    shape = tuple(axis.high + 1 for axis in site.axes)
    buffer = w.some(shape, but=tuple(site.stored))
    if any(buffer.name in line for line in w.lines[-12:]):
        return
    index = ", ".join(axis.text for axis in site.axes)
    site.stored[buffer.name] = index
    _store(w, site, buffer, f"{buffer.name}[{index}]")


def single(w: Writer) -> None:
    """One element, stored by the block: of a shared tile or an output."""
    tiles = w.tiles("shared")
    if not tiles:
        return
    buffer = w.pick(*tiles)
    index = ", ".join(w.start(extent - 1) for extent in buffer.shape)
    w.say(f"{buffer.name}[{index}] = {value(w, Site(), buffer.kind, 1)}")
