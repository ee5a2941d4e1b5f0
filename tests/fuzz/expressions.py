"""Values of elements, drawn by kind: `float`, `int` and `bool`, each of any dtype of its kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.writer import FLOATS, INTS, Buffer, Number, Writer

FUNCTIONS = ("exp", "exp2", "tanh", "sigmoid", "sin", "cos", "erf", "floor", "ceil", "abs", "sqrt", "rsqrt",
             "log", "log2", "tan", "asin", "acos", "atan", "sinh", "cosh", "exp10", "log10", "log1p", "trunc",
             "round", "nearbyint", "asinh", "acosh", "atanh")  # fmt: skip
SAME_WIDTH = (("int32", "float32"), ("uint32", "float32"), ("int16", "float16"), ("uint16", "bfloat16"))


@dataclass
class Site:
    """Where an expression stands: the loop's variables, what is stored there, and names that are bound."""

    axes: list[Number] = field(default_factory=list[Number])
    stored: dict[str, str] = field(default_factory=dict[str, str])
    bound: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def value(w: Writer, site: Site, kind: str, depth: int) -> str:
    """An expression of a kind, at most `depth` operators deep."""
    if depth <= 0 or w.chance(0.2):
        return leaf(w, site, kind)
    return {"float": _float, "int": _int, "bool": _bool}[kind](w, site, depth - 1)


def _float(w: Writer, site: Site, depth: int) -> str:
    x = value(w, site, "float", depth)
    match w.random.randrange(10):
        case 0 | 1 | 2:
            return f"({x} {w.pick('+', '-', '*')} {value(w, site, 'float', depth)})"
        case 3:
            return f"({x} {w.pick('+', '*', '-')} {w.pick('0.5', '2.0', '0.1', '3', '-1')})"
        case 4:
            below = f"({value(w, site, 'float', depth)} + 4.0)"
            return f"({x} / {w.pick(below, '3.0', '0.7')})"
        case 5:
            return f"T.{w.pick(*FUNCTIONS)}({x})"
        case 6:
            return f"T.{w.pick('max', 'min')}({x}, {value(w, site, 'float', depth)})"
        case 7:
            return choice(w, site, x, value(w, site, "float", depth), depth)
        case 8:
            inner = value(w, site, w.pick("float", "int", "bool"), depth)
            return f"T.cast({inner}, {w.pick(*FLOATS)!r})"
        case _ if w.chance(0.2):
            other = value(w, site, "float", depth)
            return w.pick(
                f"T.{w.pick('hypot', 'copysign', 'atan2')}({x}, {other})", f"T.ldexp({x}, {w.pick(-3, 5)})"
            )
        case _ if w.chance(0.2):
            return f"T.fmod({x}, {w.pick('0.75', '3.0', value(w, site, 'float', depth))})"
        case _ if w.chance(0.1):
            bits, float_ = w.pick(*SAME_WIDTH)
            return f"T.reinterpret(T.cast({value(w, site, 'int', depth)}, {bits!r}), {float_!r})"
        case _:
            return w.pick(f"T.clamp({x}, -1.0, 1.5)", f"(-{x})", f"T.pow(T.abs({x}), 1.5)", f"({x} * {x})")


def _int(w: Writer, site: Site, depth: int) -> str:
    x = value(w, site, "int", depth)
    match w.random.randrange(10):
        case 0 | 1 | 2:
            return f"({x} {w.pick('+', '-', '*')} {value(w, site, 'int', depth)})"
        case 3:
            return f"({x} {w.pick('//', '%')} {w.pick(2, 3, 5, 7, 8, 16)})"
        case 4:
            return f"({x} {w.pick('&', '|', '^')} {value(w, site, 'int', depth)})"
        case 5:
            return w.pick(f"({x} << {w.upto(7)})", f"({x} >> {w.upto(7)})", f"(~{x})", f"(-{x})")
        case 6:
            return f"T.{w.pick('max', 'min')}({x}, {value(w, site, 'int', depth)})"
        case 7:
            return choice(w, site, x, value(w, site, "int", depth), depth)
        case 8:
            inner = value(w, site, w.pick("float", "int", "bool"), depth)
            return f"T.cast({inner}, {w.pick(*INTS[:-2])!r})"
        case 9 if w.chance(0.3):
            return f"T.{w.pick('ceildiv', 'floordiv', 'floormod', 'align_up')}({x}, {w.pick(2, 3, 8)})"
        case _:
            divisor = f"(({value(w, site, 'int', depth)} & 7) + 1)"
            if w.chance(0.15):
                bits, float_ = w.pick(*SAME_WIDTH)
                return f"T.reinterpret(T.cast({value(w, site, 'float', depth)}, {float_!r}), {bits!r})"
            towards_zero = f"T.{w.pick('truncdiv', 'truncmod')}({x}, {divisor})"
            bits = f"T.{w.pick('popcount', 'clz')}({x})"
            return w.pick(f"T.abs({x})", f"({x} {w.pick('//', '%')} {divisor})", bits, towards_zero)


def _bool(w: Writer, site: Site, depth: int) -> str:
    match w.random.randrange(6):
        case 0 | 1 | 2:
            kind = w.pick("float", "int", "int")
            right = w.constant(kind) if w.chance(0.5) else value(w, site, kind, depth)
            return f"({value(w, site, kind, depth)} {w.pick('<', '<=', '>', '>=', '==', '!=')} {right})"
        case 3 | 4:
            parts = value(w, site, "bool", depth), value(w, site, "bool", depth)
            return f"({parts[0]} {w.pick('and', 'or')} {parts[1]})"
        case _ if w.chance(0.3):
            return f"T.{w.pick('isnan', 'isinf', 'isfinite')}({value(w, site, 'float', depth)})"
        case _:
            return f"(not {value(w, site, 'bool', depth)})"


def choice(w: Writer, site: Site, a: str, b: str, depth: int) -> str:
    """One of two values."""
    test = condition(w, site, depth)
    return f"T.if_then_else({test}, {a}, {b})" if w.chance(0.5) else f"({a} if {test} else {b})"


def condition(w: Writer, site: Site, depth: int) -> str:
    """What a guard asks: mostly an index against a number."""
    numbers = [*site.axes, *w.numbers]
    if numbers and w.chance(0.6):
        number = w.pick(*numbers)
        bound = w.random.randint(0, max(number.high, 1))
        if w.chance(0.1):
            return f"{w.upto(1)} {w.pick('<', '<=')} {number.text} {w.pick('<', '<=', '!=')} {bound}"
        return f"{number.text} {w.pick('<', '<=', '>', '>=', '==', '!=')} {bound}"
    return value(w, site, "bool", max(depth, 1))


def leaf(w: Writer, site: Site, kind: str) -> str:
    """A value without operators."""
    first = w.random.random()
    if kind == "float" and w.chance(0.02):
        return w.scalar()
    bound = [name for name, bound_kind in (*site.bound, *w.variables) if bound_kind == kind]
    if bound and first < 0.3:
        return w.pick(*bound)
    if first < 0.4 and kind == "int" and (site.axes or w.numbers):
        return w.pick(*site.axes, *w.numbers).text
    if first < 0.5 and kind != "bool":
        return (
            f"T.cast({w.constant('int')}, {w.dtype_computed(kind)!r})" if w.chance(0.2) else w.constant(kind)
        )
    return load(w, site, kind)


def load(w: Writer, site: Site, kind: str) -> str:
    """An element of a tile or an array."""
    stored = [(b, site.stored[b.name]) for b in w.buffers if b.name in site.stored and b.kind == kind]
    if stored and w.chance(0.3):
        buffer, index = w.pick(*stored)
        return _computed(w, buffer, f"{buffer.name}[{index}]")
    fit = [b for b in w.buffers if b.kind == kind and b.name not in site.stored and b.name[0] != "O"]
    if not site.axes:
        fit = [b for b in fit if b.scope != "fragment"]
    if fit and w.chance(0.75):
        buffer = w.pick(*fit)
    elif site.axes and w.chance(0.6):
        axes = w.random.sample(site.axes, w.random.randint(1, len(site.axes)))
        buffer = w.tile(tuple(axis.high + 1 for axis in axes), w.dtype(kind))
    else:
        shape = tuple(axis.high + 1 for axis in site.axes[:3]) or (w.pick(4, 7, 16),)
        buffer = w.input(shape, w.dtype(kind))
    return _computed(w, buffer, f"{buffer.name}[{', '.join(_indices(w, site, buffer))}]")


def _indices(w: Writer, site: Site, buffer: Buffer) -> list[str]:
    """An index for each dimension; of a tile within its extent, of an array anywhere."""
    free = list(site.axes)
    out: list[str] = []
    for extent in buffer.shape:
        same = [axis for axis in free if axis.high + 1 == extent] or free
        if same and w.chance(0.9):
            axis = w.pick(*same)
            free = [each for each in free if each is not axis]
            plain = buffer.scope == "fragment" and axis.high + 1 <= extent and w.chance(0.9)
            out.append(axis.text if plain else _along(w, axis, extent, buffer.scope == "global"))
        elif buffer.scope == "global":
            out.append(w.anywhere(extent))
        else:
            start = w.start(extent - 1)
            # Counted from the end now and then.
            out.append(str(int(start) - extent) if start.isdigit() and w.chance(0.1) else start)
    return out


def _along(w: Writer, axis: Number, extent: int, anywhere: bool) -> str:
    """An index that follows an axis."""
    i, count = axis.text, axis.high + 1
    if w.chance(0.6) and (anywhere or count <= extent):
        return i
    fitting = [f"{i} % {extent}", f"{i} // {-(-count // extent)}"]
    if count <= extent:
        fitting += [i, f"{i} + {extent - count}", f"{extent - 1} - {i}"]
    if 2 * count - 1 <= extent:
        fitting.append(f"{i} * 2")
    if anywhere:
        fitting += [f"{w.anywhere(extent)} + {i}", f"{i} - 1", f"{i} * 2 + 1"]
    return w.pick(*fitting)


def _computed(w: Writer, buffer: Buffer, text: str) -> str:
    """A loaded value as one that can be computed with."""
    if buffer.packed and w.chance(0.5):
        return f"T.cast({text}, {w.pick('int8', 'int32', 'int16')!r})"
    return text
