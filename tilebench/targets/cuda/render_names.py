"""Names and types of CUDA C: which user names must be escaped, and what a dtype is called."""

from __future__ import annotations

from ...errors import TargetError
from ...ir import Buffer, DType, Function
from ...passes.names import names_of

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class
    compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    threadIdx blockIdx blockDim gridDim warpSize half main TB TB_MEMBER abs acos asin atan ceil clock cos
    cosh erf exp exp2 expm1 floor fmax fmaxf fmin fminf log log10 log1p log2 max min pow printf rint
    round rsqrt sin sinh sqrt tan tanh trunc expf exp2f logf log2f powf sqrtf rsqrtf tanhf sinf cosf erff
    floorf ceilf fabs fabsf malloc free memcpy memset assert uint4 uint2 int4 int2 float4 float2 dim3
    """.split()  # noqa: SIM905  -- a table of words reads better as text
)

TYPES = {
    "float64": "double", "float32": "float", "float16": "tb_half", "bfloat16": "tb_bf16",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned",
    "uint64": "unsigned long long", "bool": "bool",
}  # fmt: skip


def c_type(dtype: DType) -> str:
    """The C type of an element. Raises `TargetError` for a dtype without one."""
    found = TYPES.get(dtype.name)
    if found is None:
        raise TargetError(
            "there is no CUDA code for {dtype} yet",
            dtype=dtype,
            known=", ".join(TYPES),
            expected="one of {known}",
        )
    return found


def c_names(function: Function) -> dict[str, str]:
    """The C name of each name of a function: itself, or with `_` behind it where C++ uses it."""
    taken = names_of(function)
    out: dict[str, str] = {}
    for name in sorted(taken):
        made = name
        if name in KEYWORDS or name.startswith(("tb_", "__")) or not name.isascii():
            made = "".join(each if each.isascii() else f"u{ord(each):x}" for each in name).lstrip("_") + "_"
            if made.startswith("tb_"):
                made = "k" + made
            while made in taken or made in KEYWORDS or made in out.values():
                made += "_"
        out[name] = made
    return out


def pointer(buffer: Buffer) -> str:
    """The C type of a pointer to the elements of a buffer."""
    return f"{c_type(buffer.dtype)}*"
