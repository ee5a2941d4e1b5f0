"""The 8-bit floats and what has 4 bits of the prelude: conversions, and elements that share a byte.

Conversions to floats of 8 and 4 bits stop at the largest value, from infinities too; NaN stays NaN, and
of 4 bits becomes the largest. From sm_89 on the card has instructions for 8 bits; before, and for 4 bits,
the same values come from integer arithmetic.
"""

from __future__ import annotations

from .prelude_floats import stored_float

_ROUND = """\
TB unsigned char {type}_{name}(float value) {{
  const unsigned bits = __float_as_uint(value), size = bits & 0x7fffffffu, sign = bits >> {signs} & {sign}u;
  if (size > 0x7f800000u) return (unsigned char)({nan}u);
  // Adding a number whose ulp is the format's smallest step rounds a subnormal in the adder.
  const float step = __uint_as_float({step}u << 23);
  const unsigned tiny = __float_as_uint(__uint_as_float(size) + step) - __float_as_uint(step);
  const unsigned up = size + ((1u << {shift} - 1) - 1u) + (size >> {shift} & 1u);
  const unsigned code = min((up - ({rebias}u << 23)) >> {shift}, {limit}u);
  return (unsigned char)(sign | (size < {least}u << 23 ? tiny : code));
}}"""
_BY_INSTRUCTION = """\
TB unsigned char {type}_bits(float value) {{
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.{format}x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return (unsigned char)pair;
#else
  return {type}_soft_bits(value);
#endif
}}"""
_FROM_DOUBLE = """\
// Towards zero with a sticky last bit, so that the second rounding is right.
TB unsigned char {type}_bits_f64(double value) {{
  const float cut = __double2float_rz(value);
  const bool exact = (double)cut == value || value != value;
  return {type}_bits(exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u));
}}"""
_WIDEN_E5M2 = """\
TB float tb_e5m2_value(unsigned char bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)(bits << 8)));
  return value;
}"""
# The pattern as the top of a float, whose exponent is then 120 too small; subnormals come out right too.
_WIDEN_E4M3 = """\
TB float tb_e4m3_value(unsigned char bits) {
  const float size = __uint_as_float((bits & 0x7fu) << 20) * __uint_as_float(247u << 23);
  const unsigned raw = (bits & 0x7fu) == 0x7fu ? 0x7fc00000u : __float_as_uint(size);
  return __uint_as_float(raw | (bits & 0x80u) << 24);
}"""


# The same of 4 bits, which are numbers all.
_WIDEN_E2M1 = """\
TB float tb_e2m1_value(unsigned char bits) {
  const float size = __uint_as_float((bits & 7u) << 22) * __uint_as_float(253u << 23);
  return __uint_as_float(__float_as_uint(size) | (bits & 8u) << 28);
}"""


def _rounding(type: str, name: str, bits: int, fraction: int, bias: int, limit: int, nan: str) -> str:
    """A function that rounds a float to nearest even in integer arithmetic, and stops at the code `limit`."""
    return _ROUND.format(
        type=type, name=name, shift=23 - fraction, step=151 - bias - fraction, rebias=127 - bias,
        least=128 - bias, limit=limit, nan=nan, signs=32 - bits, sign=hex(1 << (bits - 1)),
    )  # fmt: skip


def _float(type: str, bits: int, *functions: str) -> str:
    names = (f"{type}_bits", f"{type}_bits_f64", f"{type}_value")
    return "\n".join([*functions, _FROM_DOUBLE.format(type=type), stored_float(type, bits, *names)])


def _eight(type: str, format: str, fraction: int, bias: int, limit: int, widen: str) -> str:
    soft = _rounding(type, "soft_bits", 8, fraction, bias, limit, "sign | 0x7f")
    return _float(type, 8, soft, _BY_INSTRUCTION.format(type=type, format=format), widen)


E4M3 = _eight("tb_e4m3", "e4m3", 3, 7, 0x7E, _WIDEN_E4M3)
E5M2 = _eight("tb_e5m2", "e5m2", 2, 15, 0x7B, _WIDEN_E5M2)
E2M1 = _float("tb_e2m1", 4, _rounding("tb_e2m1", "bits", 4, 1, 1, 0x7, "7"), _WIDEN_E2M1)

# In registers an element has a byte of its own; `first` and `i` count elements.
PACKED = """\
template <class T> TB signed char tb_to_int4(T value) {
  return (signed char)((int)((unsigned)value << 28) >> 28);
}
template <class T> TB unsigned char tb_to_uint4(T value) { return (unsigned char)((unsigned)value & 15u); }
template <class I> TB signed char tb_get_int4(const unsigned char* from, I i) {
  return tb_to_int4(from[i >> 1] >> (i & 1) * 4);
}
template <class I> TB unsigned char tb_get_uint4(const unsigned char* from, I i) {
  return tb_to_uint4(from[i >> 1] >> (i & 1) * 4);
}
template <class I> TB void tb_put_half(unsigned char* to, I i, int value) {
  const int shift = (int)(i & 1) * 4;
  to[i >> 1] = (unsigned char)((to[i >> 1] & (0xf0 >> shift)) | (value & 15) << shift);
}
template <int bytes> struct tb_word;
template <> struct tb_word<1> { typedef unsigned char type; };
template <> struct tb_word<2> { typedef unsigned short type; };
template <> struct tb_word<4> { typedef unsigned type; };
template <> struct tb_word<8> { typedef uint2 type; };
template <> struct tb_word<16> { typedef uint4 type; };
TB void tb_unpack(signed char& to, int half) { to = tb_to_int4(half); }
TB void tb_unpack(unsigned char& to, int half) { to = tb_to_uint4(half); }
TB int tb_nibble(int value) { return value & 15; }
template <int count, class T, class I> TB void tb_ld_packed(T* to, const unsigned char* from, I first) {
  typedef typename tb_word<count / 2>::type Word;
  __align__(16) unsigned char bytes[count / 2];
  *(Word*)bytes = *(const Word*)(from + (first >> 1));
  #pragma unroll
  for (int i = 0; i < count; ++i) tb_unpack(to[i], bytes[i / 2] >> i % 2 * 4);
}
template <int count, class T, class I> TB void tb_st_packed(unsigned char* to, I first, const T* from) {
  typedef typename tb_word<count / 2>::type Word;
  __align__(16) unsigned char bytes[count / 2];
  #pragma unroll
  for (int i = 0; i < count; i += 2) {
    bytes[i / 2] = (unsigned char)(tb_nibble(from[i]) | tb_nibble(from[i + 1]) << 4);
  }
  *(Word*)(to + (first >> 1)) = *(const Word*)bytes;
}"""
# The same of floats: what the functions above are for is found by the type.
PACKED_FLOATS = """\
template <class I> TB tb_e2m1 tb_get_e2m1(const unsigned char* from, I i) {
  return tb_e2m1_from_bits(from[i >> 1] >> (i & 1) * 4 & 15);
}
TB void tb_unpack(tb_e2m1& to, int half) { to = tb_e2m1_from_bits(half & 15); }
TB int tb_nibble(tb_e2m1 value) { return value.bits & 15; }"""
