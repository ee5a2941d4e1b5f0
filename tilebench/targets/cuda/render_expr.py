"""Expressions of one thread as CUDA C, with C's precedence and types never promoted by chance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import TargetError
from ...ir import Arith, Buffer, Call, Cast, Const, DType, Expr, Load, Var, const_of
from ...ir.arith import INFINITE, Range, bounds
from ...ir.dtypes import int32
from .render_names import c_type

# Binding strength in C. Python binds & ^ | tighter than comparisons, C looser; hence its own table.
LEVEL = {
    "or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
TERNARY, UNARY, ATOM = 0, 11, 20
SPELLED = {"or": "||", "and": "&&", "//": "/"}
# From this many elements on an offset does not fit 32 bits.
LARGE = 2**31
_MATH = (
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "tanh",
    "floor",
    "ceil",
    "erf",
    "sin",
    "cos",
    "abs",
    "pow",
)


def narrow_float(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < 32


def narrow_int(dtype: DType) -> bool:
    """C computes 8- and 16-bit integers in int; a result must be cut back to its type."""
    return dtype.is_integer and dtype.bits < 32


@dataclass
class ExprRenderer:
    """Turns expressions into C. `names` are C names, `ranges` what proofs of signs may use."""

    names: Mapping[str, str]
    ranges: dict[str, Range] = field(default_factory=dict[str, "Range"])
    lets: dict[str, Range] = field(default_factory=dict[str, "Range"])

    def text(self, expr: Expr) -> str:
        return self._expr(expr)[0]

    def at_least(self, expr: Expr, level: int) -> str:
        text, strength = self._expr(expr)
        return text if strength >= level else f"({text})"

    def _expr(self, expr: Expr) -> tuple[str, int]:
        match expr:
            case Var():
                return self.names[expr.name], ATOM
            case Const():
                text = literal(expr.value, expr.type)
                return text, UNARY if text.startswith("-") else ATOM
            case Load():
                return self.element(expr.buffer, expr.index), ATOM
            case Arith():
                return self._arith(expr)
            case Cast():
                return self._cast(expr)
            case Call():
                return self._call(expr)
            case _:
                raise TypeError(f"no expression: {type(expr).__name__}")

    # -- memory
    def element(self, buffer: Buffer, index: tuple[Expr, ...]) -> str:
        name = self.names[buffer.name]
        return name if not index else f"{name}[{self.offset(buffer, index)}]"

    def address(self, buffer: Buffer, index: tuple[Expr, ...]) -> str:
        """A pointer to an element."""
        name = self.names[buffer.name]
        offset = self.offset(buffer, index)
        return name if offset == "0" else f"{name} + {self._grouped(offset)}"

    @staticmethod
    def _grouped(offset: str) -> str:
        return f"({offset})" if " ? " in offset or " ^ " in offset or " & " in offset else offset

    def offset(self, buffer: Buffer, index: tuple[Expr, ...]) -> str:
        """The flat offset in elements: 32-bit arithmetic, 64-bit for buffers of 2^31 elements or more."""
        strides = buffer.element_strides
        span = 1 + sum((extent - 1) * stride for extent, stride in zip(buffer.shape, strides, strict=True))
        if span < LARGE:
            total: Expr = Const(0)
            for each, stride in zip(index, strides, strict=True):
                wide = each if each.dtype == int32 else Cast(each, type=int32)
                total = total + wide * stride
            return self.text(total)
        parts = [
            f"(long long){self.at_least(each, UNARY)} * {stride}"
            if stride != 1
            else self.at_least(each, LEVEL["+"])
            for each, stride in zip(index, strides, strict=True)
            if const_of(each) != 0
        ]
        return " + ".join(parts) or "0"

    # -- operators
    def _arith(self, expr: Arith) -> tuple[str, int]:
        dtype = expr.args[0].dtype
        if len(expr.args) == 1:
            return self._unary(expr, dtype)
        if expr.op in ("//", "%"):
            return self._division(expr, dtype)
        if self._may_wrap(expr, dtype):
            return self._wrapping(expr, dtype)
        if expr.op == "+" and dtype.is_integer:
            return self._wrap(self._sum(expr), dtype)
        level = LEVEL[expr.op]
        # C's && and || take bools as they come; other chains group from the left as Python's do.
        spelled = SPELLED.get(expr.op, expr.op)
        tight = level + 1
        parts = [
            self._operand(expr.args[0], level if expr.op not in ("<", "<=", ">", ">=", "==", "!=") else tight)
        ]
        parts += [self._operand(each, tight) for each in expr.args[1:]]
        made = f" {spelled} ".join(parts), level
        return self._wrap(made, dtype) if expr.dtype == dtype and expr.op in ("*", "-", "<<", "~") else made

    def _may_wrap(self, expr: Arith, dtype: DType) -> bool:
        """Whether C would compute this in a signed type that it may overflow, which C leaves undefined.

        8- and 16-bit values are computed in int, where only products and shifts can leave its range.
        """
        if not dtype.is_integer or expr.op not in ("+", "-", "*", "<<") or expr.dtype != dtype:
            return False
        if narrow_int(dtype):
            return expr.op in ("*", "<<") and len(expr.args) > 1
        if dtype.kind != "int":
            return False
        low, high = self._rough(expr)
        # The exact bounds gather terms, 40 us a sum; rough ones settle nearly all addresses in 2.
        return not (dtype.least <= low and high <= dtype.most) and bounds(expr, self.ranges) == INFINITE

    def _rough(self, expr: Expr) -> Range:
        """Bounds that hold but may be wide: each operator by the bounds of its own operands."""
        if isinstance(expr, Const):
            return expr.value, expr.value
        if isinstance(expr, Var):
            return self.ranges.get(expr.name, INFINITE)
        if not isinstance(expr, Arith):
            return bounds(expr, self.ranges)
        parts = [self._rough(each) for each in expr.args]
        op = expr.op
        if op == "+":
            return sum(low for low, _ in parts), sum(high for _, high in parts)
        if op == "*" and len(parts) == 2:
            (a, b), (c, d) = parts
            ends = (a * c, a * d, b * c, b * d)
            return min(ends), max(ends)
        # What may have wrapped below may be negative here, whatever its rough bounds say.
        inside = parts[0][0] >= 0 and parts[0][1] <= expr.dtype.most
        if op in ("//", "%") and parts[1][0] == parts[1][1] > 0 and inside:
            by = parts[1][0]
            return (parts[0][0] // by, parts[0][1] // by) if op == "//" else (0, min(parts[0][1], by - 1))
        return bounds(expr, self.ranges)

    def _wrapping(self, expr: Arith, dtype: DType) -> tuple[str, int]:
        """The operator in the unsigned type of the same width, where it wraps."""
        wide = "unsigned long long" if dtype.bits == 64 else "unsigned int"
        if len(expr.args) == 1:
            return f"({c_type(dtype)})(0u - ({wide}){self.at_least(expr.args[0], UNARY)})", UNARY
        level = LEVEL[expr.op]
        first = f"({wide}){self.at_least(expr.args[0], UNARY)}"
        rest = [self.at_least(each, level + 1) for each in expr.args[1:]]
        return f"({c_type(dtype)})({f' {expr.op} '.join([first, *rest])})", UNARY

    def _operand(self, expr: Expr, level: int) -> str:
        return self.at_least(expr, level)

    def _sum(self, expr: Arith) -> tuple[str, int]:
        """A sum of integers, with negative constants spelled as differences."""
        out = ""
        for k, each in enumerate(expr.args):
            value = const_of(each)
            if k and value is not None and value < 0:
                out += f" - {literal(-value, each.dtype)}"
            else:
                out += (" + " if k else "") + self.at_least(each, LEVEL["+"] + (1 if k else 0))
        return out, LEVEL["+"]

    def _wrap(self, made: tuple[str, int], dtype: DType) -> tuple[str, int]:
        return (f"({c_type(dtype)})({made[0]})", UNARY) if narrow_int(dtype) else made

    def _unary(self, expr: Arith, dtype: DType) -> tuple[str, int]:
        if self._may_wrap(expr, dtype):
            return self._wrapping(expr, dtype)
        inner = self.at_least(expr.args[0], UNARY)
        if expr.op == "not":
            return f"!{inner}", UNARY
        space = " " if inner.startswith("-") else ""
        return self._wrap((f"{expr.op}{space}{inner}", UNARY), dtype)

    def _division(self, expr: Arith, dtype: DType) -> tuple[str, int]:
        """Floor division and its remainder; C's own where both sides are proved not to be negative."""
        a, b = expr.args
        if dtype.is_float:
            if expr.op == "%":
                raise TargetError("there is no CUDA code for % of {dtype} yet", at=expr.place, dtype=dtype)
            quotient = f"{self.at_least(a, LEVEL['/'])} / {self.at_least(b, UNARY)}"
            return f"tb_floor({quotient})", ATOM
        plain = dtype.kind == "uint" or (
            bounds(a, self.ranges)[0] >= 0 and bounds(b, self.ranges)[0] > 0
        )  # fmt: skip
        if plain:
            made = (
                f"{self.at_least(a, LEVEL['*'])} {'/' if expr.op == '//' else '%'} {self.at_least(b, UNARY)}"
            )
            return self._wrap((made, LEVEL["*"]), dtype)
        word = "tb_floordiv" if expr.op == "//" else "tb_floormod"
        held = c_type(dtype)
        return self._wrap((f"{word}<{held}>({self.text(a)}, {self.text(b)})", ATOM), dtype)

    # -- conversions and functions
    def _cast(self, expr: Cast) -> tuple[str, int]:
        source, target = expr.value.dtype, expr.type
        if source == target:
            return self._expr(expr.value)
        if narrow_float(source) and narrow_float(target):
            return f"{c_type(target)}((float){self.at_least(expr.value, UNARY)})", ATOM
        if narrow_float(target):
            return f"{c_type(target)}({self.text(expr.value)})", ATOM
        if narrow_int(target) and source.is_float:
            # The card's own conversion to int stops at the ends of int32 and gives 0 for NaN.
            whole = f"max((int){self.at_least(expr.value, UNARY)}, {target.least})"
            return f"({c_type(target)})min({whole}, {target.most})", UNARY
        return f"({c_type(target)}){self.at_least(expr.value, UNARY)}", UNARY

    def _call(self, expr: Call) -> tuple[str, int]:
        args = [self.text(each) for each in expr.args]
        match expr.word:
            case "thread_id":
                return "(int)threadIdx.x", UNARY
            case "if_then_else":
                condition, a, b = (self.at_least(each, 1) for each in expr.args)
                return f"{condition} ? {a} : {b}", TERNARY
            case "min" | "max":
                return self._least_or_most(expr, args), ATOM
            case "shfl_xor":
                return f"tb_shfl_xor({', '.join(args)})", ATOM
            case "shfl_down" if expr.type.bits >= 32:
                return f"__shfl_down_sync(0xffffffffu, {', '.join(args)})", ATOM
            case "sigmoid":
                return self._sigmoid(expr), ATOM
            case "abs" if expr.type.is_integer:
                return f"({c_type(expr.type)})tb_abs({args[0]})", UNARY
            case "pow" if narrow_float(expr.type):
                both = ", ".join(f"(float){self.at_least(each, UNARY)}" for each in expr.args)
                return f"{c_type(expr.type)}(tb_pow({both}))", ATOM
            case word if word in _MATH and expr.type.is_float:
                return f"tb_{word}({', '.join(args)})", ATOM
            case word:
                raise TargetError(
                    "there is no CUDA code for T.{word} of {t} yet", at=expr.place, word=word, t=expr.type
                )

    def _least_or_most(self, expr: Call, args: list[str]) -> str:
        if expr.type == int32:
            return f"{expr.word}({', '.join(args)})"
        return (
            f"tb_{expr.word}<{c_type(expr.type)}>({', '.join(args)})"
            if expr.type.is_integer
            else (f"tb_{expr.word}({', '.join(args)})")
        )

    def _sigmoid(self, expr: Call) -> str:
        x = self.at_least(expr.args[0], UNARY)
        if narrow_float(expr.type):
            return f"{c_type(expr.type)}(1.0f / (1.0f + tb_exp(-(float){x})))"
        return f"({literal(1.0, expr.type)} / ({literal(1.0, expr.type)} + tb_exp(-{x})))"


def literal(value: Any, dtype: DType) -> str:
    """A literal of exactly this value and type: floats in hexadecimal where decimals would be long."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.is_integer:
        return _integer(int(value), dtype)
    suffix = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}.get(dtype.name)
    if suffix is None:
        raise TargetError("there is no CUDA code for {dtype} yet", dtype=dtype)
    number = float(dtype.numpy.type(value))
    if math.isnan(number):
        return f"tb_nan_{suffix}()"
    if math.isinf(number):
        return ("-" if number < 0 else "") + f"tb_inf_{suffix}()"
    if dtype.name == "float64":
        return _float(number)
    text = f"{_float(number)}f"
    return text if dtype.name == "float32" else f"{c_type(dtype)}({text})"


def _float(number: float) -> str:
    short = repr(number)
    # Few digits are exact in C too; a long decimal is written in hexadecimal, so nothing is rounded.
    return (
        short if len(short) <= 8 and "e" not in short and number == float(f"{number:.6g}") else number.hex()
    )


def _integer(value: int, dtype: DType) -> str:
    if dtype.name == "int64":
        return f"{value}ll" if value > -(2**63) else "(-9223372036854775807ll - 1)"
    if dtype.name == "uint64":
        return f"{value}ull"
    if dtype.name == "uint32":
        return f"{value}u"
    if dtype.name == "int32" and value == -(2**31):
        return "(-2147483647 - 1)"
    return str(value)
