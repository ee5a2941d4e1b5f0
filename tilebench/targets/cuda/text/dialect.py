"""CUDA C as a language like C: spellings of types, of numbers of threads, and of functions."""

from __future__ import annotations

from ....ir import Call
from ...clike.dialect import ATOM, UNARY, Dialect, ExpressionWriter, Packed, ScalarText, Spelled
from ...clike.functions import EVERY_FLOAT, INTEGERS, STRUCTURAL, called, in_single, sigmoid
from .prelude import PRELUDE

# What shared memory is aligned to: the largest alignment that a copy unit asks for.
SHARED_ALIGN = 1024

TYPES = {
    "float64": "double", "float32": "float", "float16": "tb_half", "bfloat16": "tb_bf16",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned",
    "uint64": "unsigned long long", "bool": "bool", "float8_e4m3fn": "tb_e4m3", "float8_e5m2": "tb_e5m2",
    "float4_e2m1fn": "tb_e2m1", "int4": "signed char", "uint4": "unsigned char",
}  # fmt: skip
PACKED = {
    dtype: Packed(
        memory="unsigned char",
        load=f"tb_get_{dtype}({{name}}, {{offset}})",
        store="tb_put_half({name}, {offset}, {value});",
        cut=f"tb_to_{dtype}({{value}})",
    )
    for dtype in ("int4", "uint4")
} | {
    "float4_e2m1fn": Packed(
        memory="unsigned char",
        load="tb_get_e2m1({name}, {offset})",
        store="tb_put_half({name}, {offset}, tb_nibble({value}));",
        cut="tb_e2m1({value})",
    )
}

# The types of CUDA's headers, for functions of a kernel's own text that includes them: the same bits.
OWN_TYPES = {
    "float16": ("cuda_fp16.h", "__half"), "bfloat16": ("cuda_bf16.h", "__nv_bfloat16"),
    "float8_e4m3fn": ("cuda_fp8.h", "__nv_fp8_e4m3"), "float8_e5m2": ("cuda_fp8.h", "__nv_fp8_e5m2"),
}  # fmt: skip

# What a system's headers and TileLang's declare. A type of theirs that text includes is the same.
OWN_NAMES = {
    name: f"typedef {kind} {name};"
    for name, kind in (
        ("uint", "unsigned int"), ("uchar", "unsigned char"), ("ushort", "unsigned short"),
        ("ulong", "unsigned long"), ("int8_t", "signed char"), ("uint8_t", "unsigned char"),
        ("int16_t", "signed short"), ("uint16_t", "unsigned short"), ("int32_t", "signed int"),
        ("uint32_t", "unsigned int"), ("int64_t", "signed long"), ("uint64_t", "unsigned long"),
        ("half_t", "tb_half"), ("bfloat16_t", "tb_bf16"), ("float_e4m3_t", "tb_e4m3"),
        ("float_e5m2_t", "tb_e5m2"),
    )
}  # fmt: skip

RESERVED = frozenset(
    """
    threadIdx blockIdx blockDim gridDim warpSize half TB TB_MEMBER uint4 uint2 int4 int2 float4 float2
    dim3 STD NOMINMAX RESOURCE_ABI_BYTES THROWBADALLOC
    """.split()  # noqa: SIM905  -- a table of words reads better as text
)


def _least_or_most(writer: ExpressionWriter, expr: Call) -> Spelled:
    args = ", ".join([writer.text(arg) for arg in expr.args])
    if expr.type.name == "int32":
        return f"{expr.word}({args})", ATOM
    # Both sides of an integer's are made the same type; the floats have overloads.
    kind = f"<{writer.type_of(expr.type)}>" if expr.type.is_integer else ""
    return f"tb_{expr.word}{kind}({args})", ATOM


def _absolute(writer: ExpressionWriter, expr: Call) -> Spelled:
    value = f"tb_abs({writer.text(expr.args[0])})"
    return (f"({writer.type_of(expr.type)}){value}", UNARY) if expr.type.is_integer else (value, ATOM)


MATH = (
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "tanh",
    "floor",
    "ceil",
    "trunc",
    "round",
    "erf",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
)
MATH_OF_TWO = ("pow", "fmod", "hypot", "atan2", "copysign")
WORDS_OF_BITS = frozenset({"uint32", "uint64"})  # fmt: skip
FUNCTIONS = {
    **STRUCTURAL,
    **{
        # 16-bit floats have functions of the prelude, which do the same.
        word: in_single(called(f"tb_{word}({{args}})", EVERY_FLOAT), f"tb_{word}({{args}})", bits=8)
        for word in MATH
    },
    "nearbyint": in_single(called("tb_rint({args})", EVERY_FLOAT), "tb_rint({args})", bits=8),
    **{
        word: in_single(called(f"tb_{word}({{args}})", EVERY_FLOAT), f"tb_{word}({{args}})")
        for word in MATH_OF_TWO
    },
    "ldexp": called("tb_ldexp({args})", {"float32", "float64"}),
    "fma": called("__fmaf_rn({args})", {"float32"}),
    "philox": called("tb_philox({args})", {"uint32"}),
    "popcount": called("({type})tb_popcount({args})", WORDS_OF_BITS),
    "bit_length": called("({type})tb_bit_length({args})", WORDS_OF_BITS),
    "sigmoid": sigmoid("tb_exp", EVERY_FLOAT),
    "abs": ScalarText(_absolute, frozenset(TYPES) - {"bool"}),
    "min": ScalarText(_least_or_most),
    "max": ScalarText(_least_or_most),
    "clamp": called("tb_clamp({args})"),
    "shfl_xor": called("tb_shfl_xor({args})"),
    "shfl": called("tb_shfl({args})"),
    "vote_ballot": called("__ballot_sync(0xffffffffu, {args})", {"uint32"}),
    "vote_match": called("tb_match_any({args})", {"uint32"}),
    # The built-in takes 32 and 64 bits: narrower integers are promoted, a narrower float is a struct to it.
    "shfl_down": called("({type})__shfl_down_sync(0xffffffffu, {args})", INTEGERS | {"float64", "float32"}),
}

CUDA = Dialect(
    language="CUDA",
    types=TYPES,
    packed=PACKED,
    own_types=OWN_TYPES,
    own_names=OWN_NAMES,
    # One block an SM is enough where a kernel asks for no more: without the second number ptxas spills to
    # get down to 128 registers.
    kernel='extern "C" __global__ void {cluster}__launch_bounds__({threads}, {blocks}) {entry}({params}) {{',
    cluster="__cluster_dims__({blocks}, 1, 1) ",
    parameter="{const}{type}* __restrict__ {name}",
    thread="(int)threadIdx.x",
    blocks=("(int)blockIdx.x", "(int)blockIdx.y", "(int)blockIdx.z"),
    shared_block=f"extern __shared__ __align__({SHARED_ALIGN}) unsigned char tb_shared[];",
    shared="{type}* const {name} = ({type}*)(tb_shared + {offset});",
    registers="__align__(16) {type} {name}[{size}];",
    functions=FUNCTIONS,
    prelude=PRELUDE,
    floor_division="tb_{word}<{type}>({a}, {b})",
    special="tb_{word}_{suffix}()",
    # The narrow floats are structs of the prelude.
    narrow_float="{type}({value})",
    # The card's own conversions from a double and to 64 bits make the least number of a NaN, or 2^63.
    without_nan="tb_without_nan({value})",
    same_bits="tb_same_bits<{type}>({value})",
    # The card's own conversion to int stops at the ends of int32 and gives 0 for NaN.
    narrow_integer="({type})min(max((int){value}, {least}), {most})",
    reserved=RESERVED,
    # Macros of the headers that its compiler puts in front.
    reserved_starts=("CU", "NV_", "cuda"),
    unrolled="#pragma unroll",
    unrolled_by="#pragma unroll {factor}",
    rolled="#pragma unroll 1",
)
