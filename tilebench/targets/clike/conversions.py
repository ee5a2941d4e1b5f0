"""Casts: towards zero from float to integer, to nearest even between floats."""

from __future__ import annotations

from ...errors import TargetError
from ...ir import Cast, DType, Reinterpret
from .dialect import ATOM, UNARY, ExpressionWriter, Spelled
from .functions import narrow_float


def narrow_int(dtype: DType) -> bool:
    """C computes 8- and 16-bit integers in int; a result must be cut back to its type."""
    return dtype.is_integer and dtype.bits < 32


def cast(writer: ExpressionWriter, expr: Cast) -> Spelled:
    """A cast between two different dtypes."""
    source, target = expr.value.dtype, expr.type
    type = writer.type_of(target)
    dialect = writer.dialect
    if isinstance(expr, Reinterpret):
        if not dialect.same_bits:
            raise TargetError("T.reinterpret has no code for this target", at=expr.place)
        return dialect.same_bits.format(type=type, value=writer.text(expr.value)), ATOM
    if narrow_float(target):
        # C++ has no way of its own from one 16-bit float to another.
        value = (
            f"(float){writer.at_least(expr.value, UNARY)}"
            if narrow_float(source)
            else writer.text(expr.value)
        )
        return dialect.narrow_float.format(type=type, value=value), ATOM
    value = writer.at_least(expr.value, UNARY)
    if source.is_float and target.is_integer:
        spelling = dialect.narrow_integer if narrow_int(target) else dialect.to_integer
        if 64 in (source.bits, target.bits):
            value = dialect.without_nan.format(value=value)
        ends = {"least": target.least, "most": target.most}
        return spelling.format(type=type, dtype=target.name, value=value, **ends), UNARY
    packed = dialect.packed.get(target.name)
    if packed is not None:
        return packed.cut.format(value=writer.text(expr.value)), ATOM
    return f"({type}){value}", UNARY
