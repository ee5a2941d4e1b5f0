"""Step 2, its other half: small functions in front of a kernel, of which a text gets those it names.

The toy has no silicon: its threads are threads of this machine that meet at barriers, so that a block
with shared memory and exchanges really runs. A real accelerator has this in hardware.
"""

from __future__ import annotations

from tilebench.targets.clike.prelude import Part, Prelude, Wanted

from .machine import THREADS, WARP

HEAD = """\
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <tgmath.h>"""

LAUNCH = f"""\
#define tb_kernel static
static _Thread_local int tb_thread, tb_block[3];
static pthread_barrier_t tb_meeting, tb_warp_meeting[{THREADS // WARP}];
static inline void tb_sync_threads(void) {{ pthread_barrier_wait(&tb_meeting); }}
static inline void tb_sync_warp(void) {{ pthread_barrier_wait(&tb_warp_meeting[tb_thread / {WARP}]); }}"""

# dtype -> its type in C, and for integers the least and the greatest value.
INTEGERS = {
    "int8": ("signed char", "SCHAR_MIN", "SCHAR_MAX"), "int16": ("short", "SHRT_MIN", "SHRT_MAX"),
    "int32": ("int", "INT_MIN", "INT_MAX"), "int64": ("long long", "LLONG_MIN", "LLONG_MAX"),
    "uint8": ("unsigned char", "0", "UCHAR_MAX"), "uint16": ("unsigned short", "0", "USHRT_MAX"),
    "uint32": ("unsigned", "0", "UINT_MAX"), "uint64": ("unsigned long long", "0", "ULLONG_MAX"),
}  # fmt: skip
FLOATS = {"float32": "float", "float64": "double"}
SIGNED = ("int8", "int16", "int32", "int64")
TYPES = {**FLOATS, **{dtype: row[0] for dtype, row in INTEGERS.items()}}

_FLOORDIV = """\
static inline {type} tb_floordiv_{dtype}({type} a, {type} b) {{
  if (b == 0) return 0;
  if (b == ({type})-1 && ({type})-1 < 0) return ({type})(0ull - (unsigned long long)a);
  {type} q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}}"""
_FLOORMOD = """\
static inline {type} tb_floormod_{dtype}({type} a, {type} b) {{
  if (b == 0 || (b == ({type})-1 && ({type})-1 < 0)) return 0;
  {type} r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}}"""
_TO = """\
static inline {type} tb_to_{dtype}(double x) {{
  return x != x ? 0 : x <= (double){least} ? {least} : x >= (double){most} ? {most} : ({type})x;
}}"""
# A value of any type on its way between the threads of a block: one slot a thread.
_SLOTS = f"static union {{ {' '.join(f'{TYPES[t]} {t};' for t in TYPES)} }} tb_slots[{THREADS}];"
_EXCHANGE = """\
static inline {type} tb_exchange_{dtype}({type} value, int from) {{
  tb_slots[tb_thread].{dtype} = value;
  tb_sync_warp();
  {type} other = tb_slots[from].{dtype};
  tb_sync_warp();
  return other;
}}
static inline {type} tb_shfl_xor_{dtype}({type} value, int lanes) {{
  return tb_exchange_{dtype}(value, tb_thread ^ lanes);
}}
static inline {type} tb_shfl_down_{dtype}({type} value, int lanes) {{
  return tb_exchange_{dtype}(value, tb_thread % {warp} + lanes < {warp} ? tb_thread + lanes : tb_thread);
}}"""

# The words of `words.py`.
AXPY = """\
static inline void tb_axpy(float* y, const float* x, float a, int count) {
  for (int i = 0; i < count; ++i) y[i] += a * x[i];
}"""
RAMP = "static inline float tb_ramp(float x) { return fmaxf(0.0f, fminf(x, 1.0f)); }"
_WARP_SUM = """\
static inline void tb_warp_sum(float* value) {{
  for (int lanes = 1; lanes < {warp}; lanes *= 2) *value += tb_shfl_xor_float32(*value, lanes);
}}"""
# Each thread gets the row of A that it is in, and all of B, from the others.
_MMA = """\
static float tb_tiles[{threads}][4];
static inline void tb_mma(float* c, const float* a, const float* b) {{
  float* mine = tb_tiles[tb_thread];
  int first = tb_thread / {warp} * {warp}, lane = tb_thread % {warp};
  mine[0] = a[0], mine[1] = a[1], mine[2] = b[0], mine[3] = b[1];
  tb_sync_warp();
  for (int k = 0; k < 4; ++k) {{
    float left = tb_tiles[first + lane / 2 * 2 + k / 2][k % 2];
    for (int e = 0; e < 2; ++e) c[e] += left * tb_tiles[first + k * 2 + lane % 2][2 + e];
  }}
  tb_sync_warp();
}}"""
# The toy's memory is as fast as its threads: what was issued is there at once.
AHEAD = """\
static inline void tb_copy_ahead(void* to, const void* source) { memcpy(to, source, 16); }
static inline void tb_commit(void) {}
static inline void tb_wait(int pending) { (void)pending; }"""


def _extremes(wanted: Wanted) -> str:
    """`tb_min` and `tb_max` of the types that a kernel names; floats lose a NaN against a number."""
    lines: list[str] = []
    for word, function, sign in (("min", "fmin", "<"), ("max", "fmax", ">")):
        for dtype, type in TYPES.items():
            value = f"{function}(a, b)" if dtype in FLOATS else f"a {sign} b ? a : b"
            if wanted.has(f"tb_{word}_{dtype}"):
                head = f"static inline {type} tb_{word}_{dtype}({type} a, {type} b)"
                lines.append(f"{head} {{ return {value}; }}")
    for dtype in FLOATS:
        if wanted.has(f"tb_clamp_{dtype}"):
            head = "static inline {type} tb_clamp_{dtype}({type} x, {type} low, {type} high)"
            value = "x < low ? low : x > high ? high : x"
            lines.append(f"{head.format(type=TYPES[dtype], dtype=dtype)} {{ return {value}; }}")
    return "\n".join(lines)


def _integers(wanted: Wanted) -> str:
    lines: list[str] = []
    for word, template in (("floordiv", _FLOORDIV), ("floormod", _FLOORMOD), ("to", _TO)):
        for dtype in SIGNED if word != "to" else INTEGERS:
            type, least, most = INTEGERS[dtype]
            if wanted.has(f"tb_{word}_{dtype}"):
                lines.append(template.format(type=type, dtype=dtype, least=least, most=most))
    return "\n".join(lines)


def _exchanges(wanted: Wanted) -> str:
    named = [
        dtype for dtype in TYPES if wanted.has(f"tb_shfl_xor_{dtype}") or wanted.has(f"tb_shfl_down_{dtype}")
    ]
    if "warp_sum" in wanted.parts and "float32" not in named:
        named.append("float32")
    return "\n".join(
        [_SLOTS, *(_EXCHANGE.format(type=TYPES[dtype], dtype=dtype, warp=WARP) for dtype in named)]
    )


SPECIAL = """\
static inline float tb_inf_f32(void) { return INFINITY; }
static inline double tb_inf_f64(void) { return INFINITY; }
static inline float tb_nan_f32(void) { return NAN; }
static inline double tb_nan_f64(void) { return NAN; }"""

PRELUDE = Prelude(
    HEAD,
    (
        Part("launch", r"tb_kernel", LAUNCH),
        Part("extremes", r"tb_(?:min|max|clamp)_\w+", _extremes),
        Part("integers", r"tb_(?:floordiv|floormod|to)_\w+", _integers),
        Part("exchanges", r"tb_shfl_\w+|tb_warp_sum", _exchanges),
        Part("special", r"tb_(?:inf|nan)_f\d+", SPECIAL),
        Part("axpy", r"tb_axpy", AXPY),
        Part("ramp", r"tb_ramp", RAMP),
        Part("mma", r"tb_mma", _MMA.format(warp=WARP, threads=THREADS)),
        Part("ahead", r"tb_copy_ahead|tb_commit|tb_wait", AHEAD),
        Part("warp_sum", r"tb_warp_sum", _WARP_SUM.format(warp=WARP)),
    ),
)
