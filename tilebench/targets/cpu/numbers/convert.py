"""Conversions between what memory holds and what registers compute with, as LLVM vectors.

A small float travels through memory as its bits (`i16`, `i8`) and is computed with as `float`.
Nothing here can become a call of `__truncsfbf2`, `__extendhfsf2` or another runtime symbol: the
process may lack them, and then the call crashes without a word. float16 uses the processor's own
instruction where there is one; all else is integer arithmetic, round to nearest even.
"""

from __future__ import annotations

from typing import NamedTuple

from ....ir import DType
from ..llvm import Function, Value, bytes_of, const, element_of, lanes_of, mangle, vector

# What tiles hold, and what a value is computed with. In arrays two elements of 4 bits share a byte.
STORAGE = {
    "float64": "double", "float32": "float", "float16": "i16", "bfloat16": "i16",
    "float8_e4m3fn": "i8", "float8_e5m2": "i8", "float4_e2m1fn": "i8", "bool": "i8",
    "int4": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint4": "i8", "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip
COMPUTE = STORAGE | {
    "float16": "float",
    "bfloat16": "float",
    "float8_e4m3fn": "float",
    "float8_e5m2": "float",
    "float4_e2m1fn": "float",
}


class SmallFloat(NamedTuple):
    """An IEEE-like format: fraction bits, exponent bias, and codes without a sign.

    `top` is the code of the infinity, or of the NaN where there is none; `limit` the code that what is
    too large becomes, `nan` that of a NaN: the largest number, without a sign, where `has_nan` is not.
    """

    fraction: int
    bias: int
    top: int
    limit: int
    nan: int
    has_infinity: bool
    bits: int
    has_nan: bool = True


SMALL = {
    "float16": SmallFloat(10, 15, 0x7C00, 0x7C00, 0x7E00, True, 16),
    # Conversions to 8 bits stop at the largest number, as on the cards.
    "float8_e5m2": SmallFloat(2, 15, 0x7C, 0x7B, 0x7E, True, 8),
    "float8_e4m3fn": SmallFloat(3, 7, 0x7F, 0x7E, 0x7F, False, 8),
    "float4_e2m1fn": SmallFloat(1, 1, 0x8, 0x7, 0x7, False, 4, False),
}


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def is_unsigned(dtype: str) -> bool:
    return dtype.startswith("uint") or dtype == "bool"


def widen(f: Function, raw: Value, dtype: str) -> Value:
    """Bits as loaded to a value to compute with: exact for every dtype and pattern."""
    lanes = lanes_of(raw.type)
    if dtype == "bfloat16":
        wide = f.binary("shl", f.cast("zext", raw, vector("i32", lanes)), 16)
        return f.bits(wide, vector("float", lanes))
    if dtype == "float16" and "f16c" in f.isa.has:
        return f.cast("fpext", f.bits(raw, vector("half", lanes)), vector("float", lanes))
    if dtype in SMALL:
        return _widen_small(f, raw, SMALL[dtype])
    return raw


def _widen_small(f: Function, raw: Value, form: SmallFloat) -> Value:
    lanes = lanes_of(raw.type)
    integer, floating = vector("i32", lanes), vector("float", lanes)
    wide = f.cast("zext", raw, integer)
    sign = f.binary("shl", f.binary("and", wide, 1 << (form.bits - 1)), 32 - form.bits)
    code = f.binary("and", wide, (1 << (form.bits - 1)) - 1)
    rebias = (127 - form.bias) << 23
    moved = f.binary("shl", code, 23 - form.fraction)
    normal = f.binary("add", moved, rebias)
    if form.has_infinity:
        top = f.binary("add", normal, rebias)
        normal = f.select(f.compare("sge", code, form.top), top, normal)
    elif form.has_nan:
        normal = f.select(f.compare("eq", code, form.nan), const(0x7FC00000, integer), normal)
    unit = 2.0 ** (1 - form.bias - form.fraction)
    tiny = f.fmul(f.cast("sitofp", code, floating), const(unit, floating))
    least = f.compare("slt", code, 1 << form.fraction)
    magnitude = f.select(least, f.bits(tiny, integer), normal)
    return f.bits(f.binary("or", magnitude, sign), floating)


# What a value that is one of the format's already is stored by: its infinities stay.
_KEPT = {"float8_e5m2": SMALL["float8_e5m2"]._replace(limit=0x7C)}


def narrow(f: Function, value: Value, dtype: str, *, rounded: bool = False) -> Value:
    """A computed value (float or double for float dtypes) to the bits memory holds, rounded once.

    Too large becomes infinity, of 8 bits the largest number; NaN stays NaN. `rounded` says that the
    value is one of the dtype's.
    """
    if dtype == "float32" and element_of(value.type) == "double":
        return f.cast("fptrunc", value, vector("float", lanes_of(value.type)))
    if dtype not in SMALL and dtype != "bfloat16":
        return value
    if element_of(value.type) == "double":
        value = _double_to_odd_float(f, value)
    lanes = lanes_of(value.type)
    if dtype == "float16" and "f16c" in f.isa.has:
        return f.bits(f.cast("fptrunc", value, vector("half", lanes)), vector("i16", lanes))
    if dtype == "bfloat16":
        return _narrow_bfloat(f, value)
    return _narrow_small(f, value, _KEPT.get(dtype, SMALL[dtype]) if rounded else SMALL[dtype])


def _double_to_odd_float(f: Function, value: Value) -> Value:
    """Round a double towards zero and make the last bit sticky, so that a second rounding is right."""
    lanes = lanes_of(value.type)
    near = f.cast("fptrunc", value, vector("float", lanes))
    back = f.cast("fpext", near, value.type)
    bits = f.bits(near, vector("i32", lanes))
    beyond = f.compare("ogt", magnitude(f, back), magnitude(f, value))
    bits = f.select(beyond, f.binary("sub", bits, 1), bits)
    odd = f.binary("or", bits, 1)
    return f.bits(f.select(f.compare("one", back, value), odd, bits), vector("float", lanes))


def magnitude(f: Function, value: Value) -> Value:
    """The absolute value, by clearing the sign bit."""
    wide = "i64" if element_of(value.type) == "double" else "i32"
    integer = vector(wide, lanes_of(value.type))
    mask = 0x7FFFFFFFFFFFFFFF if wide == "i64" else 0x7FFFFFFF
    return f.bits(f.binary("and", f.bits(value, integer), mask), value.type)


def _narrow_bfloat(f: Function, value: Value) -> Value:
    # Not vcvtneps2bf16: that one takes subnormal inputs as zero.
    lanes = lanes_of(value.type)
    integer = vector("i32", lanes)
    bits = f.bits(value, integer)
    tie = f.binary("and", f.binary("lshr", bits, 16), 1)
    rounded = f.binary("lshr", f.binary("add", f.binary("add", bits, 0x7FFF), tie), 16)
    quiet = f.binary("or", f.binary("lshr", bits, 16), 0x40)
    found = f.select(f.compare("uno", value, value), quiet, rounded)
    return f.cast("trunc", found, vector("i16", lanes))


def _narrow_small(f: Function, value: Value, form: SmallFloat) -> Value:
    lanes = lanes_of(value.type)
    integer, floating = vector("i32", lanes), value.type
    bits = f.bits(value, integer)
    size = f.binary("and", bits, 0x7FFFFFFF)
    sign = f.binary("and", f.binary("lshr", bits, 32 - form.bits), 1 << (form.bits - 1))
    shift = 23 - form.fraction
    tie = f.binary("and", f.binary("lshr", size, shift), 1)
    up = f.binary("add", f.binary("add", size, (1 << (shift - 1)) - 1), tie)
    normal = f.binary("lshr", f.binary("sub", up, (127 - form.bias) << 23), shift)
    normal = f.select(f.compare("sgt", normal, form.limit), const(form.limit, integer), normal)
    # Adding a number whose ulp is the format's smallest step rounds a subnormal in the adder.
    magic = 2.0 ** (1 - form.bias - form.fraction + 23)
    sum_ = f.fadd(f.bits(size, floating), const(magic, floating))
    tiny = f.binary("sub", f.bits(sum_, integer), f.bits(const(magic, floating), integer))
    small = f.compare("slt", size, (127 + 1 - form.bias) << 23)
    code = f.select(small, tiny, normal)
    is_nan = f.compare("sgt", size, 0x7F800000)
    code = f.select(is_nan, const(form.nan, integer), code)
    if not form.has_nan:
        sign = f.select(is_nan, const(0, integer), sign)
    return f.cast("trunc", f.binary("or", code, sign), vector(f"i{max(8, form.bits)}", lanes))


def round_to(f: Function, value: Value, dtype: str) -> Value:
    """The value rounded to what `dtype` can hold, still in its compute type."""
    return widen(f, narrow(f, value, dtype), dtype)


def stored_bytes(dtype: DType, count: int) -> int:
    """Bytes that elements take in a tile, where each of 4 bits has a byte of its own."""
    return bytes_of(STORAGE[dtype.name]) * count


def nibble(f: Function, raw: Value, dtype: str) -> Value:
    """The low four bits of bytes as an element of 4 bits: with a sign, those of an int4."""
    if dtype != "int4":
        return f.binary("and", raw, 15)
    return f.binary("ashr", f.binary("shl", raw, 4), 4)


def _to_nibble(f: Function, value: Value, source: str, target: str) -> Value:
    """Integers keep their low bits; floats stop at the ends."""
    if not is_float(source):
        return nibble(f, convert(f, value, source, "uint8"), target)
    wide = convert(f, value, source, "int32")
    low, high = (-8, 7) if target == "int4" else (0, 15)
    ends = [const(end, wide.type) for end in (low, high)]
    above = f.select(f.compare("slt", wide, ends[0]), ends[0], wide)
    inside = f.select(f.compare("sgt", above, ends[1]), ends[1], above)
    return f.cast("trunc", inside, vector("i8", lanes_of(wide.type)))


def convert(f: Function, value: Value, source: str, target: str) -> Value:
    """A computed value of dtype `source` to a computed value of dtype `target`.

    Float to integer truncates and saturates (NaN gives 0); to bool is `!= 0`; a value headed for a
    small float is rounded to it.
    """
    if source == target:
        return value
    if target in ("int4", "uint4"):
        return _to_nibble(f, value, source, target)
    lanes = lanes_of(value.type)
    goal = vector(COMPUTE[target], lanes)
    if target == "bool":
        how = "une" if is_float(source) else "ne"
        return f.cast("zext", f.compare(how, value, const(0, value.type)), goal)
    if is_float(source) and is_float(target):
        return _between_floats(f, value, target, goal)
    if is_float(source):
        name = "fptoui.sat" if is_unsigned(target) else "fptosi.sat"
        return _saturate(f, name, value, goal)
    if is_float(target):
        op = "uitofp" if is_unsigned(source) else "sitofp"
        if target in ("float32", "float64"):
            return f.cast(op, value, goal)
        # Through double: one rounding for every integer up to 53 bits.
        return round_to(
            f, _between_floats(f, f.cast(op, value, vector("double", lanes)), target, goal), target
        )
    if bytes_of(goal) == bytes_of(value.type):
        return f.bits(value, goal)
    if bytes_of(goal) < bytes_of(value.type):
        return f.cast("trunc", value, goal)
    return f.cast("zext" if is_unsigned(source) else "sext", value, goal)


def _between_floats(f: Function, value: Value, target: str, goal: str) -> Value:
    if target in SMALL or target == "bfloat16":
        return round_to(f, value, target)
    return f.cast("fptrunc" if bytes_of(goal) < bytes_of(value.type) else "fpext", value, goal)


def _saturate(f: Function, name: str, value: Value, goal: str) -> Value:
    symbol = f"llvm.{name}.{mangle(goal)}.{mangle(value.type)}"
    f.module.declare(symbol, goal, [value.type])
    return f.pure(f"call {goal} @{symbol}({value.type} {value.name})", goal)


def load_value(
    f: Function, pointer: Value, dtype: str, lanes: int = 1, mask: Value | None = None, *, align: int = 0
) -> Value:
    """Load `lanes` elements and widen them. With a mask, other lanes read 0 and touch no memory."""
    type_ = vector(STORAGE[dtype], lanes)
    if mask is None:
        return widen(f, f.load(pointer, type_, align=align), dtype)
    return widen(f, f.masked_load(pointer, type_, mask), dtype)


def store_value(
    f: Function,
    value: Value,
    pointer: Value,
    dtype: str,
    mask: Value | None = None,
    *,
    align: int = 0,
    streaming: bool = False,
) -> None:
    """Narrow a computed value of the dtype and store it; with a mask only its lanes.

    A value for 8 bits is one that was converted or loaded: its infinities stay.
    """
    raw = narrow(f, value, dtype, rounded=True)
    if mask is None:
        f.store(raw, pointer, align=align, streaming=streaming)
    else:
        f.masked_store(raw, pointer, mask)
