"""Rows of scalar functions that languages like C share, and the means to make more of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir import Call, DType
from .dialect import ATOM, TERNARY, UNARY, ExpressionWriter, ScalarText, Spelled
from .literals import literal

FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})
EVERY_FLOAT = FLOATS | {"float8_e4m3fn", "float8_e5m2"}
INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


def narrow_float(dtype: DType) -> bool:
    """Whether a float has fewer than 32 bits; arithmetic on it is done in f32."""
    return dtype.is_float and dtype.bits < 32


def called(spelling: str, dtypes: Iterable[str] | None = None) -> ScalarText:
    """A row spelled as a call: a template with `args`, and `type` and `dtype` of the result."""

    def text(writer: ExpressionWriter, expr: Call) -> Spelled:
        args = ", ".join([writer.text(arg) for arg in expr.args])
        type = writer.type_of(expr.type)
        return spelling.format(args=args, type=type, dtype=expr.type.name), ATOM

    return ScalarText(text, None if dtypes is None else frozenset(dtypes))


def _thread_number(writer: ExpressionWriter, _: Call) -> Spelled:
    return writer.dialect.thread, UNARY


def _chosen(writer: ExpressionWriter, expr: Call) -> Spelled:
    condition, yes, no = (writer.at_least(arg, TERNARY + 1) for arg in expr.args)
    return f"{condition} ? {yes} : {no}", TERNARY


# What every language of the kind has, whatever its functions are called.
STRUCTURAL = {"thread_id": ScalarText(_thread_number), "if_then_else": ScalarText(_chosen)}


def sigmoid(exponential: str, dtypes: frozenset[str] = FLOATS) -> ScalarText:
    """1 / (1 + e**-x), in f32 for narrower floats; `exponential` is the function's name."""

    def text(writer: ExpressionWriter, expr: Call) -> Spelled:
        value = writer.at_least(expr.args[0], UNARY)
        # `--x` would be another operator.
        value = f"({value})" if value.startswith("-") else value
        if narrow_float(expr.type):
            one = f"1.0f / (1.0f + {exponential}(-(float){value}))"
            return writer.dialect.narrow_float.format(type=writer.type_of(expr.type), value=one), ATOM
        one = literal(1.0, expr.type, writer.dialect)
        return f"({one} / ({one} + {exponential}(-{value})))", ATOM

    return ScalarText(text, dtypes)


def in_single(row: ScalarText, spelling: str, bits: int = 16) -> ScalarText:
    """A row whose floats of at most so many bits go through f32: `spelling` has `args` of type float."""

    def text(writer: ExpressionWriter, expr: Call) -> Spelled:
        if not narrow_float(expr.type) or expr.type.bits > bits:
            return row.text(writer, expr)
        args = ", ".join([f"(float){writer.at_least(arg, UNARY)}" for arg in expr.args])
        value = spelling.format(args=args)
        return writer.dialect.narrow_float.format(type=writer.type_of(expr.type), value=value), ATOM

    return replace(row, text=text)
