"""The CUDA C text in front of each kernel: small inline functions, no includes.

Only the parts that a kernel uses are written, in a fixed order. `parts_of` finds them from the
names in the kernel's text, so a renderer need not keep count.

Meanings that a renderer relies on:
- `tb_half` and `tb_bf16` are 16 bits of storage. Arithmetic on them computes in f32 and rounds once,
  to nearest even. That equals the correctly rounded result for + - * / and sqrt, because the 24
  bits of f32 are at least 2p + 2 for p = 11 and p = 8. Conversions between types are explicit.
- `tb_max` and `tb_min` on floats are `fmaxf` and `fminf`: a NaN loses against a number. `tb_max_nan`
  and `tb_min_nan` give NaN when either is, as NumPy's maximum and minimum do.
- Math functions are CUDA's accurate ones (exp2f 2 ulp, expf 1 ulp, division and sqrt rounded right).
- `tb_floordiv` and `tb_floormod` round towards minus infinity, as Python's do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import InternalError

_HEAD = """\
#define TB static __device__ __forceinline__
#define TB_MEMBER __device__ __forceinline__"""

# A 16-bit float type, for the struct's name, and then the two functions that convert its bits.
_SIXTEEN = """\
struct __align__(2) {type} {{
  unsigned short bits;
  {type}() = default;
  template <class T> explicit TB_MEMBER {type}(T value) : bits({narrow}((float)value)) {{}}
  explicit TB_MEMBER {type}(double value) : bits({narrow_f64}(value)) {{}}
  explicit TB_MEMBER operator float() const {{ return {widen}(bits); }}
  explicit TB_MEMBER operator double() const {{ return {widen}(bits); }}
  explicit TB_MEMBER operator bool() const {{ return {widen}(bits) != 0.0f; }}
{integers}
}};
TB {type} {type}_from_bits(unsigned short bits) {{ {type} r; r.bits = bits; return r; }}
TB {type} operator-({type} a) {{ return {type}_from_bits(a.bits ^ 0x8000); }}
{operators}"""
_INTEGERS = ("signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long long",
             "unsigned long long")  # fmt: skip
_TO_INTEGER = "  explicit TB_MEMBER operator {to}() const {{ return ({to}){widen}(bits); }}"
_ARITHMETIC = """\
TB {type} operator{op}({type} a, {type} b) {{ return {type}((float)a {op} (float)b); }}
TB {type}& operator{op}=({type}& a, {type} b) {{ a = a {op} b; return a; }}"""
_COMPARISON = "TB bool operator{op}({type} a, {type} b) {{ return (float)a {op} (float)b; }}"


def _sixteen(type: str, narrow: str, narrow_f64: str, widen: str) -> str:
    operators = [_ARITHMETIC.format(type=type, op=op) for op in ("+", "-", "*", "/")]
    operators += [_COMPARISON.format(type=type, op=op) for op in ("==", "!=", "<", "<=", ">", ">=")]
    return _SIXTEEN.format(
        type=type,
        narrow=narrow,
        narrow_f64=narrow_f64,
        widen=widen,
        integers="\n".join(_TO_INTEGER.format(to=each, widen=widen) for each in _INTEGERS),
        operators="\n".join(operators),
    )


_FLOAT16 = """\
TB unsigned short tb_half_bits(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
TB unsigned short tb_half_bits_f64(double value) {
  unsigned short bits;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
  return bits;
}
TB float tb_half_value(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
""" + _sixteen("tb_half", "tb_half_bits", "tb_half_bits_f64", "tb_half_value")

# Before sm_80 there is no conversion instruction: add half of the last place, ties to even, in
# integers; a NaN becomes 0x7fff, as it does with the instruction.
_BFLOAT16 = """\
TB unsigned short tb_bf16_bits(float value) {
#if __CUDA_ARCH__ >= 800
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  unsigned raw = __float_as_uint(value);
  unsigned rounded = (raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16;
  return (unsigned short)((raw & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
#endif
}
TB unsigned short tb_bf16_bits_f64(double value) { return tb_bf16_bits((float)value); }
TB float tb_bf16_value(unsigned short bits) {
  return __uint_as_float((unsigned)bits << 16);
}
""" + _sixteen("tb_bf16", "tb_bf16_bits", "tb_bf16_bits_f64", "tb_bf16_value")

_MEMORY_TYPES = {16: "uint4", 8: "uint2", 4: "unsigned", 2: "unsigned short", 1: "unsigned char"}


def _memory() -> str:
    """Moves of 16 to 1 bytes between registers and memory. The compiler sees the address space through
    the inlined pointer (it makes LDG and LDS of the full width), so no assembly hides them from it."""
    lines: list[str] = []
    for space in ("global", "shared"):
        for width, type in _MEMORY_TYPES.items():
            move = f"*({type}*)to = *(const {type}*)from;"
            lines.append(f"TB void tb_ld_{space}_{width}(void* to, const void* from) {{ {move} }}")
            lines.append(f"TB void tb_st_{space}_{width}(void* to, const void* from) {{ {move} }}")
    return "\n".join(lines)


_SHUFFLE = """\
template <class T> TB T tb_shfl_xor(T value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}
template <class T> TB T tb_shfl(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}"""
# The narrow integers are promoted to int by the built-in overloads; the 16-bit floats are structs.
_SHUFFLE_SIXTEEN = """\
TB {type} tb_shfl_xor({type} value, int lanes) {{
  return {type}_from_bits((unsigned short)__shfl_xor_sync(0xffffffffu, (unsigned)value.bits, lanes));
}}
TB {type} tb_shfl({type} value, int lane) {{
  return {type}_from_bits((unsigned short)__shfl_sync(0xffffffffu, (unsigned)value.bits, lane));
}}"""

_MINMAX = """\
template <class T> TB T tb_max(T a, T b) { return a > b ? a : b; }
template <class T> TB T tb_min(T a, T b) { return a < b ? a : b; }
TB float tb_max(float a, float b) { return fmaxf(a, b); }
TB float tb_min(float a, float b) { return fminf(a, b); }
TB double tb_max(double a, double b) { return fmax(a, b); }
TB double tb_min(double a, double b) { return fmin(a, b); }
template <class T> TB T tb_max_nan(T a, T b) { return a != a || a > b ? a : b; }
template <class T> TB T tb_min_nan(T a, T b) { return a != a || a < b ? a : b; }"""
_MINMAX_SIXTEEN = """\
TB {type} tb_max({type} a, {type} b) {{ return {type}(fmaxf((float)a, (float)b)); }}
TB {type} tb_min({type} a, {type} b) {{ return {type}(fminf((float)a, (float)b)); }}"""

_FUNCTIONS = (
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "sin", "cos",
    "tan", "atan", "sinh", "cosh", "asin", "acos", "erf", "floor", "ceil", "trunc", "rint", "round",
)  # fmt: skip
_MATH = """\
TB float tb_{name}(float x) {{ return {name}f(x); }}
TB double tb_{name}(double x) {{ return {name}(x); }}"""
_MATH_SIXTEEN = "TB {type} tb_{name}({type} x) {{ return {type}({name}f((float)x)); }}"
_ABS = """\
template <class T> TB T tb_abs(T x) { return x < T(0) ? T(-x) : x; }
TB float tb_abs(float x) { return fabsf(x); }
TB double tb_abs(double x) { return fabs(x); }"""
_ABS_SIXTEEN = "TB {type} tb_abs({type} x) {{ return {type}_from_bits(x.bits & 0x7fff); }}"
_POW = """\
TB float tb_pow(float x, float y) { return powf(x, y); }
TB double tb_pow(double x, double y) { return pow(x, y); }"""

_INTEGER = """\
template <class T> TB T tb_floordiv(T a, T b) {
  T q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
template <class T> TB T tb_floormod(T a, T b) {
  T r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}"""

_INFINITY = """\
TB float tb_inf_f32() { return __int_as_float(0x7f800000); }
TB double tb_inf_f64() { return __longlong_as_double(0x7ff0000000000000ll); }
TB float tb_nan_f32() { return __int_as_float(0x7fc00000); }
TB double tb_nan_f64() { return __longlong_as_double(0x7ff8000000000000ll); }"""
_INFINITY_SIXTEEN = {
    "tb_half": """\
TB tb_half tb_inf_f16() { return tb_half_from_bits(0x7c00); }
TB tb_half tb_nan_f16() { return tb_half_from_bits(0x7e00); }""",
    "tb_bf16": """\
TB tb_bf16 tb_inf_bf16() { return tb_bf16_from_bits(0x7f80); }
TB tb_bf16 tb_nan_bf16() { return tb_bf16_from_bits(0x7fc0); }""",
}

PARTS = ("float16", "bfloat16", "memory", "shuffle", "minmax", "math", "integer", "infinity")
_USES = {
    "float16": r"tb_half\w*|tb_\w+_f16",
    "bfloat16": r"tb_bf16\w*|tb_\w+_bf16",
    "memory": r"tb_(?:ld|st)_(?:global|shared)_\d+",
    "shuffle": r"tb_shfl\w*",
    "minmax": r"tb_(?:max|min)(?:_nan)?",
    "math": r"tb_(?:abs|pow|" + "|".join(_FUNCTIONS) + ")",
    "integer": r"tb_floor(?:div|mod)",
    "infinity": r"tb_(?:inf|nan)_\w+",
}
_NAMES = {part: re.compile(rf"\b(?:{pattern})\b") for part, pattern in _USES.items()}
_WORD = re.compile(r"\btb_\w+")


def parts_of(text: str) -> frozenset[str]:
    """The parts of the prelude whose functions or types `text` names."""
    words = set(_WORD.findall(text))
    joined = " ".join(words)
    return frozenset(part for part, name in _NAMES.items() if name.search(joined))


def prelude_for(features: Iterable[str], text: str | None = None) -> str:
    """The prelude for these parts of `PARTS`, ending in a newline; empty for none.

    With the kernel's `text`, the part "math" holds only the functions that the text names.
    Raises `InternalError` for a part that there is not.
    """
    wanted = frozenset(features)
    if wanted - set(PARTS):
        raise InternalError("the prelude has no part {names}", names=", ".join(sorted(wanted - set(PARTS))))
    sixteen = [type for part, type in (("float16", "tb_half"), ("bfloat16", "tb_bf16")) if part in wanted]
    out: list[str] = [_HEAD] if wanted else []
    if "float16" in wanted:
        out.append(_FLOAT16)
    if "bfloat16" in wanted:
        out.append(_BFLOAT16)
    if "memory" in wanted:
        out.append(_memory())
    if "shuffle" in wanted:
        out += [_SHUFFLE, *(_SHUFFLE_SIXTEEN.format(type=each) for each in sixteen)]
    if "minmax" in wanted:
        out += [_MINMAX, *(_MINMAX_SIXTEEN.format(type=each) for each in sixteen)]
    if "math" in wanted:
        out += _math(sixteen, text)
    if "integer" in wanted:
        out.append(_INTEGER)
    if "infinity" in wanted:
        out += [_INFINITY, *(_INFINITY_SIXTEEN[each] for each in sixteen)]
    return "\n".join(out) + "\n" if out else ""


def _math(sixteen: list[str], text: str | None) -> list[str]:
    named = set(_WORD.findall(text)) if text is not None else None
    out: list[str] = []
    for name in _FUNCTIONS:
        if named is None or f"tb_{name}" in named:
            out.append(_MATH.format(name=name))
            out += [_MATH_SIXTEEN.format(type=each, name=name) for each in sixteen]
    if named is None or "tb_abs" in named:
        out += [_ABS, *(_ABS_SIXTEEN.format(type=each) for each in sixteen)]
    if named is None or "tb_pow" in named:
        out.append(_POW)
    return out


def with_prelude(body: str) -> tuple[str, int]:
    """`body` behind the prelude that it needs, and the number of lines in front of it."""
    prelude = prelude_for(parts_of(body), body)
    return prelude + body, prelude.count("\n")
