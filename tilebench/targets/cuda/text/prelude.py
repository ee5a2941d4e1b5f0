"""The CUDA C text in front of each kernel: small inline functions, no includes.

Meanings that the renderer relies on:
- `tb_half`, `tb_bf16`, `tb_e4m3` and `tb_e5m2` are storage. Arithmetic on them computes in f32 and
  rounds once, to nearest even. That equals the correctly rounded result for + - * / and sqrt, because
  the 24 bits of f32 are at least 2p + 2 for p up to 11; halves add and multiply so by themselves. Conversions
  between types are explicit.
- `tb_max` and `tb_min` on floats are `fmaxf` and `fminf`: a NaN loses against a number. `tb_max_nan`
  and `tb_min_nan` give NaN when either is, as NumPy's maximum and minimum do.
- `tb_clamp` keeps a NaN: it is below or above no limit.
- Math functions are CUDA's accurate ones (expf 1 ulp, division and sqrt rounded right). `tb_exp2` is the
  instruction that exp2f is made of (2 ulp), which gives 0 below the smallest normal number: the three more
  instructions for those cost attention a sixth of what it does besides its products.
- `tb_floordiv` and `tb_floormod` round towards minus infinity, as Python's do; a divisor of 0 gives 0, and
  one of -1 has no remainder, where C leaves both open.
"""

from __future__ import annotations

from collections.abc import Callable

from ....ir import ATOMICS
from ...clike.prelude import Part, Prelude, Wanted
from .mma import MATRIX
from .prelude_atomics import FENCES, SWAP, WIDE_ADDS, atomics
from .prelude_copies import cp_async
from .prelude_floats import BFLOAT16, FLOAT16
from .prelude_mbarriers import mbarriers
from .prelude_narrow import E2M1, E4M3, E5M2, PACKED, PACKED_FLOATS
from .tma import boxes
from .wgmma_functions import WARP_GROUPS

_HEAD = """\
#define TB static __device__ __forceinline__
#define TB_MEMBER __device__ __forceinline__"""

_MEMORY_TYPES = {16: "uint4", 8: "uint2", 4: "unsigned", 2: "unsigned short", 1: "unsigned char"}


def _memory() -> str:
    """Moves of 16 to 1 bytes between registers and memory. The compiler sees the address space through
    the inlined pointer (it makes LDG and LDS of the full width), so no assembly hides them from it. Wide
    stores to global memory are the exception: where it also sees single elements of what is stored, it takes
    the store apart into pairs of them."""
    lines: list[str] = []
    for space in ("global", "shared"):
        for width, type in _MEMORY_TYPES.items():
            move = f"*({type}*)to = *(const {type}*)from;"
            lines.append(f"TB void tb_ld_{space}_{width}(void* to, const void* from) {{ {move} }}")
            if space == "global" and width >= 8:
                move = _wide_store(type, width)
            lines.append(f"TB void tb_st_{space}_{width}(void* to, const void* from) {{ {move} }}")
    return "\n".join(lines)


_MOVE_BITS = """\
template <class W, int count> TB void tb_move_bits(void* to, const void* from) {
  #pragma unroll
  for (int k = 0; k < count; ++k) ((W*)to)[k] = ((const W*)from)[k];
}"""
# The bytes from any address are those of two aligned pieces, moved by words and then by the bytes that are
# left (a funnel shift of two words); `unit` is what the address is a multiple of: floats move by words alone.
# Where the address is aligned the second piece is the first again, and nothing outside is touched.
_UNALIGNED = """\
template <int bytes> struct tb_piece;
template <> struct tb_piece<16> { uint4 value; };
template <> struct tb_piece<8> { uint2 value; };
template <> struct tb_piece<4> { unsigned value; };
template <int bytes, int unit> TB unsigned tb_past(const void* from) {
  return (unsigned)(unsigned long long)from % bytes / unit * unit;
}
template <int bytes, int unit> TB void tb_ld_pieces(void* to, const void* from) {
  const unsigned past = tb_past<bytes, unit>(from);
  const char* const first = (const char*)from - past;
  using Piece = decltype(tb_piece<bytes>::value);
  ((Piece*)to)[0] = *(const Piece*)first;
  ((Piece*)to)[1] = *(const Piece*)(first + (past ? bytes : 0));
}
template <int bytes, int unit> TB void tb_from_pieces(void* to, const void* pieces, const void* from) {
  const unsigned past = tb_past<bytes, unit>(from);
  unsigned words[bytes / 2];
  #pragma unroll
  for (int k = 0; k < bytes / 2; ++k) words[k] = ((const unsigned*)pieces)[k];
  #pragma unroll
  for (int by = bytes / 8; by > 0; by /= 2) {
    #pragma unroll
    for (int k = 0; k + by < bytes / 2; ++k) words[k] = past & by * 4 ? words[k + by] : words[k];
  }
  #pragma unroll
  for (int k = 0; k < bytes / 4; ++k) {
    ((unsigned*)to)[k] = unit % 4 ? __funnelshift_r(words[k], words[k + 1], past % 4 * 8) : words[k];
  }
}"""


def _wide_store(type: str, width: int) -> str:
    parts = "xyzw"[: width // 4]
    words = ", ".join(f"%{k + 1}" for k in range(len(parts)))
    values = ", ".join(f'"r"(v.{part})' for part in parts)
    store = f'"st.global.v{len(parts)}.u32 [%0], {{{words}}};"'
    address = '"l"(__cvta_generic_to_global(to))'
    return f'const {type} v = *(const {type}*)from; asm volatile({store} :: {address}, {values} : "memory");'


_CLOCKS = """\
TB void tb_read_clock64(long long* to) {
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(*to) :: "memory");
}
TB void tb_read_globaltimer(long long* to) {
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(*to) :: "memory");
}
TB void tb_read_smid(long long* to) {
  unsigned unit;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
  *to = unit;
}"""
_SHUFFLE = """\
template <class T> TB T tb_shfl_xor(T value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}
template <class T> TB T tb_shfl(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}"""
# The narrow integers are promoted to int by the built-in overloads; the narrow floats are structs.
_SHUFFLE_NARROW = """\
TB {type} tb_shfl_xor({type} value, int lanes) {{
  return {type}_from_bits((decltype(value.bits))__shfl_xor_sync(0xffffffffu, (unsigned)value.bits, lanes));
}}
TB {type} tb_shfl({type} value, int lane) {{
  return {type}_from_bits((decltype(value.bits))__shfl_sync(0xffffffffu, (unsigned)value.bits, lane));
}}"""

# The instruction compares bits: equal floats have the same, and a NaN none.
_MATCH = """\
template <class T> TB unsigned tb_match_any(T value) {
  if constexpr (sizeof(T) == 8) return __match_any_sync(0xffffffffu, (unsigned long long)value);
  else return __match_any_sync(0xffffffffu, (unsigned)value);
}
TB unsigned tb_match_any(float value) {
  unsigned found = __match_any_sync(0xffffffffu, __float_as_uint(value + 0.0f));
  return value == value ? found : 0u;
}
TB unsigned tb_match_any(double value) {
  unsigned found = __match_any_sync(0xffffffffu, (unsigned long long)__double_as_longlong(value + 0.0));
  return value == value ? found : 0u;
}"""
_MATCH_NARROW = "TB unsigned tb_match_any({type} value) {{ return tb_match_any((float)value); }}"

_MINMAX = """\
template <class T> TB T tb_max(T a, T b) { return a > b ? a : b; }
template <class T> TB T tb_min(T a, T b) { return a < b ? a : b; }
TB float tb_max(float a, float b) { return fmaxf(a, b); }
TB float tb_min(float a, float b) { return fminf(a, b); }
TB double tb_max(double a, double b) { return fmax(a, b); }
TB double tb_min(double a, double b) { return fmin(a, b); }
template <class T> TB T tb_clamp(T x, T low, T high) {
  T raised = x < low ? low : x;
  return raised > high ? high : raised;
}
template <class T> TB T tb_max_nan(T a, T b) { return a != a || a > b ? a : b; }
template <class T> TB T tb_min_nan(T a, T b) { return a != a || a < b ? a : b; }"""
_MINMAX_NARROW = """\
TB {type} tb_max({type} a, {type} b) {{ return {type}(fmaxf((float)a, (float)b)); }}
TB {type} tb_min({type} a, {type} b) {{ return {type}(fminf((float)a, (float)b)); }}"""

_FUNCTIONS = (
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "sin", "cos",
    "tan", "atan", "sinh", "cosh", "asin", "acos", "asinh",
    "acosh", "atanh", "erf", "floor", "ceil", "trunc", "rint", "round",
)  # fmt: skip
_MATH = """\
TB float tb_{name}(float x) {{ return {name}f(x); }}
TB double tb_{name}(double x) {{ return {name}(x); }}"""
_EXP2 = """\
TB float tb_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TB double tb_exp2(double x) { return exp2(x); }"""
_MATH_NARROW = "TB {type} tb_{name}({type} x) {{ return {type}({name}f((float)x)); }}"
_ABS = """\
template <class T> TB T tb_abs(T x) { return x < T(0) ? T(-x) : x; }
TB float tb_abs(float x) { return fabsf(x); }
TB double tb_abs(double x) { return fabs(x); }"""
_ABS_NARROW = """\
TB {type} tb_abs({type} x) {{
  return {type}_from_bits(x.bits & (1 << (8 * sizeof(x.bits) - 1)) - 1);
}}"""
# Of 8 bits as the other functions: rounded into them, which stops an infinity at the largest.
_ABS_EIGHT = "TB {type} tb_abs({type} x) {{ return {type}(fabsf((float)x)); }}"
_OF_TWO = ("pow", "fmod", "hypot", "atan2", "copysign")
_MATH_OF_TWO = """\
TB float tb_{name}(float x, float y) {{ return {name}f(x, y); }}
TB double tb_{name}(double x, double y) {{ return {name}(x, y); }}"""
_LDEXP = """\
TB float tb_ldexp(float x, float n) { return ldexpf(x, (int)n); }
TB double tb_ldexp(double x, double n) { return ldexp(x, (int)n); }"""
_PHILOX = """\
TB unsigned tb_philox(unsigned word, unsigned a, unsigned b, unsigned c, unsigned d, unsigned k, unsigned l) {
  #pragma unroll
  for (int round = 0; round < 10; ++round) {
    unsigned high = __umulhi(a, 0xd2511f53u), low = a * 0xd2511f53u;
    a = __umulhi(c, 0xcd9e8d57u) ^ b ^ k;
    b = c * 0xcd9e8d57u;
    c = high ^ d ^ l;
    d = low;
    k += 0x9e3779b9u;
    l += 0xbb67ae85u;
  }
  return word & 2 ? (word & 1 ? d : c) : (word & 1 ? b : a);
}"""
_BITS = """\
TB int tb_popcount(unsigned x) { return __popc(x); }
TB int tb_popcount(unsigned long long x) { return __popcll(x); }
TB int tb_bit_length(unsigned x) { return 32 - __clz(x); }
TB int tb_bit_length(unsigned long long x) { return 64 - __clzll(x); }"""

_WITHOUT_NAN = "template <class T> TB T tb_without_nan(T x) { return x == x ? x : T(0); }"
_SAME_BITS = """\
template <class To, class From> TB To tb_same_bits(From value) {
  union Both { From from; To to; unsigned short half; TB_MEMBER Both() {} } both;
  both.from = value;
  if constexpr (sizeof(To) == 2) {
    // Through 32 bits: of a float's 16 bits ptxas 13.0 stores as a byte the float converted to an integer.
    unsigned whole;
    asm("mov.b32 %0, {%1, 0};" : "=r"(whole) : "h"(both.half));
    both.half = (unsigned short)whole;
  }
  return both.to;
}"""
_INTEGER = """\
template <class T> TB T tb_floordiv(T a, T b) {
  if (b == 0) return 0;
  if (b == T(-1) && T(-1) < T(0)) return (T)(0ull - (unsigned long long)a);
  T q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
template <class T> TB T tb_floormod(T a, T b) {
  if (b == 0 || (b == T(-1) && T(-1) < T(0))) return 0;
  T r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}"""

_INFINITY = """\
TB float tb_inf_f32() { return __int_as_float(0x7f800000); }
TB double tb_inf_f64() { return __longlong_as_double(0x7ff0000000000000ll); }
TB float tb_nan_f32() { return __int_as_float(0x7fc00000); }
TB double tb_nan_f64() { return __longlong_as_double(0x7ff8000000000000ll); }"""
_INFINITY_NARROW = {
    "tb_half": """\
TB tb_half tb_inf_f16() { return tb_half_from_bits(0x7c00); }
TB tb_half tb_nan_f16() { return tb_half_from_bits(0x7e00); }""",
    "tb_bf16": """\
TB tb_bf16 tb_inf_bf16() { return tb_bf16_from_bits(0x7f80); }
TB tb_bf16 tb_nan_bf16() { return tb_bf16_from_bits(0x7fc0); }""",
    "tb_e2m1": "",
    "tb_e4m3": "TB tb_e4m3 tb_nan_e4m3() { return tb_e4m3_from_bits(0x7f); }",
    "tb_e5m2": """\
TB tb_e5m2 tb_inf_e5m2() { return tb_e5m2_from_bits(0x7c); }
TB tb_e5m2 tb_nan_e5m2() { return tb_e5m2_from_bits(0x7f); }""",
}


# The struct of the prelude behind a part of its own.
_STRUCTS = {
    "float16": "tb_half", "bfloat16": "tb_bf16", "float8_e4m3fn": "tb_e4m3", "float8_e5m2": "tb_e5m2",
    "float4_e2m1fn": "tb_e2m1",
}  # fmt: skip


def _structs(wanted: Wanted) -> list[str]:
    return [struct for part, struct in _STRUCTS.items() if part in wanted.parts]


def _with_structs(text: str, for_struct: str) -> Callable[[Wanted], str]:
    """A part that has more functions for each of the narrow floats that the kernel uses."""
    return lambda wanted: "\n".join([text, *(for_struct.format(type=struct) for struct in _structs(wanted))])


def _packed(wanted: Wanted) -> str:
    return "\n".join([PACKED, *([PACKED_FLOATS] if "float4_e2m1fn" in wanted.parts else [])])


def _infinity(wanted: Wanted) -> str:
    return "\n".join([_INFINITY, *(_INFINITY_NARROW[struct] for struct in _structs(wanted))])


def _math(wanted: Wanted) -> str:
    """Only the functions that the kernel names."""
    structs = _structs(wanted)
    out: list[str] = []
    for name in _FUNCTIONS:
        if wanted.has(f"tb_{name}"):
            out.append(_EXP2 if name == "exp2" else _MATH.format(name=name))
            out += [_MATH_NARROW.format(type=struct, name=name) for struct in structs]
    if wanted.has("tb_abs"):
        eight = ("tb_e4m3", "tb_e5m2", "tb_e2m1")
        out += [_ABS, *((_ABS_EIGHT if t in eight else _ABS_NARROW).format(type=t) for t in structs)]
    out += [_MATH_OF_TWO.format(name=name) for name in _OF_TWO if wanted.has(f"tb_{name}")]
    if wanted.has("tb_ldexp"):
        out.append(_LDEXP)
    return "\n".join(out)


def _atomics(wanted: Wanted) -> str:
    """Only the atomics that the kernel names."""
    structs = _structs(wanted)
    return "\n".join(
        [SWAP, *(atomics(how, structs) for how in ATOMICS.values() if wanted.has(f"tb_atomic_{how}"))]
    )


PRELUDE = Prelude(
    _HEAD,
    (
        Part("float16", r"tb_half\w*|tb_\w+_f16", FLOAT16),
        Part("bfloat16", r"tb_bf16\w*|tb_\w+_bf16", BFLOAT16),
        Part("float8_e4m3fn", r"tb_e4m3\w*|tb_\w+_e4m3", E4M3),
        Part("float8_e5m2", r"tb_e5m2\w*|tb_\w+_e5m2", E5M2),
        Part("float4_e2m1fn", r"tb_e2m1\w*|tb_\w+_e2m1", E2M1),
        Part("packed", r"tb_(?:to|get)_u?int4|tb_put_half|tb_(?:ld|st)_packed|tb_get_e2m1", _packed),
        Part("memory", r"tb_(?:ld|st)_(?:global|shared)_\d+", _memory()),
        Part("cp.async", r"tb_cp_async_\w+", cp_async),
        Part(
            "barriers in phases",
            r"tb_mbarrier_\w+|tb_fence_(?:mbarrier_init|async_shared)|tb_sync_cluster\w*",
            mbarriers,
        ),
        Part("tensor maps", r"tb_tensor_map|tb_tma_\w+", boxes),
        Part("clocks", r"tb_read_\w+", _CLOCKS),
        Part("move bits", r"tb_move_bits", _MOVE_BITS),
        Part("unaligned", r"tb_(?:ld|from)_pieces", _UNALIGNED),
        Part("shuffle", r"tb_shfl\w*", _with_structs(_SHUFFLE, _SHUFFLE_NARROW)),
        Part("match", r"tb_match_any", _with_structs(_MATCH, _MATCH_NARROW)),
        Part(
            "minmax",
            r"tb_(?:max|min)(?:_nan)?|tb_clamp|tb_atomic_(?:max|min)",
            _with_structs(_MINMAX, _MINMAX_NARROW),
        ),
        Part("atomic", r"tb_atomic_\w+", _atomics),
        Part("vector adds", r"tb_add_global_\d", WIDE_ADDS),
        Part("fence", r"tb_fence(?:_sc)?", FENCES),
        Part("math", r"tb_(?:abs|ldexp|" + "|".join((*_OF_TWO, *_FUNCTIONS)) + ")", _math),
        Part("philox", r"tb_philox", _PHILOX),
        Part("bits", r"tb_popcount|tb_bit_length", _BITS),
        Part("conversion", r"tb_without_nan", _WITHOUT_NAN),
        Part("same bits", r"tb_same_bits", _SAME_BITS),
        Part("integer", r"tb_floor(?:div|mod)", _INTEGER),
        Part("infinity", r"tb_(?:inf|nan)_\w+", _infinity),
        *MATRIX,
        *WARP_GROUPS,
    ),
)
