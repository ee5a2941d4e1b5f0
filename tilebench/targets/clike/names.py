"""Names in C: which of a user's names must be escaped."""

from __future__ import annotations

from ...ir import Function
from ...ir.names import names_of
from .prelude import OURS

# Keywords of C and C++; a language of this kind is one or the other, and both are read by people.
KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class
    compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905  -- a table of words reads better as text
)
# Macros of C's headers: no name of ours, whatever it is for, survives one of them.
MACROS = frozenset(
    """
    EOF INFINITY NAN NULL alloca assert errno offsetof stderr stdin stdout va_arg va_copy va_end va_start
    unix linux
    """.split()  # noqa: SIM905
)
# Functions and types that only the kernel's own name would meet: a variable hides them.
GLOBAL = frozenset(
    f"{word}{suffix}"
    for word in """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv
    exp exp10 exp2 expm1 fabs fdim fdivide floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma
    llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter norm norm3d norm4d
    normcdf normcdfinv pow remainder remquo rhypot rint rnorm round rsqrt scalbln scalbn sin sincos sincospi
    sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn
    """.split()  # noqa: SIM905
    for suffix in ("", "f", "l")
) | frozenset(
    """
    abort calloc clock clock64 clock_t div exit getenv labs llabs llmax llmin ptrdiff_t puts qsort rand
    realloc signal size_t srand std strcmp strlen system time time_t ullmax ullmin umax umin
    """.split()  # noqa: SIM905
)
# Functions of the C library and the first ones of every such language's own.
LIBRARY = frozenset(
    """
    main abs acos asin atan ceil clock cos cosh erf exp exp2 expm1 floor fmax fmaxf fmin fminf log log10
    log1p log2 max min pow printf rint round rsqrt sin sinh sqrt tan tanh trunc expf exp2f logf log2f powf
    sqrtf rsqrtf tanhf sinf cosf erff floorf ceilf fabs fabsf malloc free memcpy memset assert
    """.split()  # noqa: SIM905
)


def names_in_c(function: Function, reserved: frozenset[str], starts: tuple[str, ...] = ()) -> dict[str, str]:
    """The C name of each name of a function: itself, or with `_` behind it where the language uses it.

    `reserved` are the words of a language of this kind, `starts` what its own names begin with.
    """
    used = KEYWORDS | MACROS | LIBRARY | reserved
    own = names_of(function)
    escaped: dict[str, str] = {}
    for name in sorted(own):
        spelled = name
        taken = name in used or (name == function.name and name in GLOBAL) or not name.strip("_")
        if taken or name.startswith((OURS, "__", *starts)) or not name.isascii():
            spelled = (_ascii(name).lstrip("_") or "k") + "_"
            if spelled.startswith((OURS, *starts)):
                spelled = "k" + spelled
            while spelled in own or spelled in used or spelled in escaped.values():
                spelled += "_"
        escaped[name] = spelled
    return escaped


def _ascii(name: str) -> str:
    return "".join(letter if letter.isascii() else f"u{ord(letter):x}" for letter in name)
