"""The 8-bit floats and 4-bit integers of the prelude: conversions, and elements that share a byte.

Conversions to 8 bits stop at the largest value, from infinities too; NaN stays NaN. From sm_89 on the
card has instructions for them; before, the same values come from integer arithmetic.
"""

from __future__ import annotations

from .prelude_floats import stored_float

_ROUND_TO_EIGHT = """\
TB unsigned char {type}_soft_bits(float value) {{
  const unsigned bits = __float_as_uint(value), size = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  if (size > 0x7f800000u) return (unsigned char)(sign | 0x7fu);
  // Adding a number whose ulp is the format's smallest step rounds a subnormal in the adder.
  const float step = __uint_as_float({step}u << 23);
  const unsigned tiny = __float_as_uint(__uint_as_float(size) + step) - __float_as_uint(step);
  const unsigned up = size + ((1u << {shift} - 1) - 1u) + (size >> {shift} & 1u);
  const unsigned code = min((up - ({rebias}u << 23)) >> {shift}, {limit}u);
  return (unsigned char)(sign | (size < {least}u << 23 ? tiny : code));
}}"""
_NARROW = """\
TB unsigned char {type}_bits(float value) {{
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.{format}x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return (unsigned char)pair;
#else
  return {type}_soft_bits(value);
#endif
}}
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


def _eight(type: str, format: str, fraction: int, bias: int, limit: int, widen: str) -> str:
    soft = _ROUND_TO_EIGHT.format(
        type=type, shift=23 - fraction, step=151 - bias - fraction, rebias=127 - bias, least=128 - bias,
        limit=limit,
    )  # fmt: skip
    functions = [soft, _NARROW.format(type=type, format=format), widen]
    return "\n".join([*functions, stored_float(type, 8, f"{type}_bits", f"{type}_bits_f64", f"{type}_value")])


E4M3 = _eight("tb_e4m3", "e4m3", 3, 7, 0x7E, _WIDEN_E4M3)
E5M2 = _eight("tb_e5m2", "e5m2", 2, 15, 0x7B, _WIDEN_E5M2)

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
  for (int i = 0; i < count; i += 2) bytes[i / 2] = (unsigned char)((from[i] & 15) | (from[i + 1] & 15) << 4);
  *(Word*)(to + (first >> 1)) = *(const Word*)bytes;
}"""
