"""The narrow floats of the prelude: structs of storage, whose arithmetic computes in f32.

Sums, differences and products of halves have instructions with the same result, rounded once, of one step
instead of three and a half; `.rn` keeps them from being fused.
"""

from __future__ import annotations

# A narrow float type, for the struct's name, what holds its bits, and the functions that convert them.
_STRUCT = """\
struct __align__({bytes}) {type} {{
  {storage} bits;
  {type}() = default;
  template <class T> explicit TB_MEMBER {type}(T value) : bits({narrow}((float)value)) {{}}
  explicit TB_MEMBER {type}(double value) : bits({narrow_f64}(value)) {{}}
  explicit TB_MEMBER operator float() const {{ return {widen}(bits); }}
  explicit TB_MEMBER operator double() const {{ return {widen}(bits); }}
  explicit TB_MEMBER operator bool() const {{ return {widen}(bits) != 0.0f; }}
{integers}
}};
TB {type} {type}_from_bits({storage} bits) {{ {type} r; r.bits = bits; return r; }}
TB {type} operator-({type} a) {{ return {type}_from_bits(a.bits ^ {sign}); }}
{operators}"""
_INTEGERS = ("signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long long",
             "unsigned long long")  # fmt: skip
_TO_INTEGER = "  explicit TB_MEMBER operator {to}() const {{ return ({to}){widen}(bits); }}"
_ARITHMETIC = """\
TB {type} operator{op}({type} a, {type} b) {{ return {type}((float)a {op} (float)b); }}
TB {type}& operator{op}=({type}& a, {type} b) {{ a = a {op} b; return a; }}"""
_NATIVE = """\
TB {type} operator{op}({type} a, {type} b) {{
  {storage} bits;
  asm("{name}.rn.{native} %0, %1, %2;" : "=h"(bits) : "h"(a.bits), "h"(b.bits));
  return {type}_from_bits(bits);
}}
TB {type}& operator{op}=({type}& a, {type} b) {{ a = a {op} b; return a; }}"""
_NAMES = {"+": "add", "-": "sub", "*": "mul"}
_COMPARISON = "TB bool operator{op}({type} a, {type} b) {{ return (float)a {op} (float)b; }}"


def stored_float(type: str, bits: int, narrow: str, narrow_f64: str, widen: str, native: str = "") -> str:
    """The struct of a float of 16, 8 or 4 bits, with the names of its three conversions.

    `native` is the suffix of its own instructions for sums, differences and products.
    """
    operators = [
        _NATIVE.format(type=type, op=op, name=_NAMES[op], native=native, storage="unsigned short")
        if native and op in _NAMES
        else _ARITHMETIC.format(type=type, op=op)
        for op in ("+", "-", "*", "/")
    ]
    operators += [_COMPARISON.format(type=type, op=op) for op in ("==", "!=", "<", "<=", ">", ">=")]
    return _STRUCT.format(
        type=type,
        bytes=max(1, bits // 8),
        storage="unsigned short" if bits == 16 else "unsigned char",
        sign=hex(1 << (bits - 1)),
        narrow=narrow,
        narrow_f64=narrow_f64,
        widen=widen,
        integers="\n".join(_TO_INTEGER.format(to=each, widen=widen) for each in _INTEGERS),
        operators="\n".join(operators),
    )


FLOAT16 = """\
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
""" + stored_float("tb_half", 16, "tb_half_bits", "tb_half_bits_f64", "tb_half_value", "f16")

# Before sm_80 there is no conversion instruction: add half of the last place, ties to even, in
# integers; a NaN becomes 0x7fff, as it does with the instruction.
BFLOAT16 = """\
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
""" + stored_float("tb_bf16", 16, "tb_bf16_bits", "tb_bf16_bits_f64", "tb_bf16_value")
