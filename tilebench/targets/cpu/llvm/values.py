"""Values, types and constants of LLVM text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64, "ptr": 64}


class Value(NamedTuple):
    """An SSA value or constant: `name` as LLVM prints it, `type` an LLVM type."""

    name: str
    type: str

    @property
    def integer(self) -> int | None:
        """The number, when this is a scalar integer constant."""
        if self.name[0] in "%z@" or self.type[0] != "i":
            return None
        return int(self.name)


def vector(element: str, lanes: int) -> str:
    """The type of `lanes` elements; the element itself for 1 lane."""
    return f"<{lanes} x {element}>" if lanes > 1 else element


def lanes_of(type_: str) -> int:
    """How many lanes a type has (1 for a scalar)."""
    return int(type_[1 : type_.index(" ")]) if type_[0] == "<" else 1


def element_of(type_: str) -> str:
    """The element type of a vector, or the scalar type itself."""
    return type_[type_.index("x") + 2 : -1] if type_[0] == "<" else type_


def bytes_of(type_: str) -> int:
    """Bytes a value of the type takes in memory."""
    return max(1, BITS[element_of(type_)] // 8) * lanes_of(type_)


def float_text(number: float, element: str) -> str:
    """A constant as LLVM reads it: always the bits, so that nothing is rounded twice."""
    if element == "half":
        return "0xH" + struct.pack(">e", number).hex().upper()
    if element == "float":
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return "0x" + struct.pack(">d", number).hex().upper()


def const(number: float, type_: str) -> Value:
    """A constant of a scalar or vector type (every lane the same)."""
    element = element_of(type_)
    text = float_text(float(number), element) if element in ("float", "double", "half") else str(int(number))
    if type_[0] != "<":
        return Value(text, type_)
    if text in ("0", "0x0000000000000000", "0xH0000"):
        return Value("zeroinitializer", type_)
    return Value("<" + ", ".join([f"{element} {text}"] * lanes_of(type_)) + ">", type_)


def const_lanes(numbers: Sequence[float], element: str) -> Value:
    """A constant vector with these lanes."""
    isfloat = element in ("float", "double", "half")
    texts = [float_text(float(each), element) if isfloat else str(int(each)) for each in numbers]
    return Value("<" + ", ".join(f"{element} {each}" for each in texts) + ">", vector(element, len(texts)))


def i64(number: int) -> Value:
    return Value(str(number), "i64")


def i32(number: int) -> Value:
    return Value(str(number), "i32")


Index = Value | int


def mangle(type_: str) -> str:
    """A type as it stands in an intrinsic's name: `<16 x float>` is `v16f32`."""
    element = element_of(type_)
    short = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(element, element)
    lanes = lanes_of(type_)
    return f"v{lanes}{short}" if lanes > 1 else short
