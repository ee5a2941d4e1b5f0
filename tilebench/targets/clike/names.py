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
# Functions of the C library and the first ones of every such language's own.
LIBRARY = frozenset(
    """
    main abs acos asin atan ceil clock cos cosh erf exp exp2 expm1 floor fmax fmaxf fmin fminf log log10
    log1p log2 max min pow printf rint round rsqrt sin sinh sqrt tan tanh trunc expf exp2f logf log2f powf
    sqrtf rsqrtf tanhf sinf cosf erff floorf ceilf fabs fabsf malloc free memcpy memset assert
    """.split()  # noqa: SIM905
)


def names_in_c(function: Function, reserved: frozenset[str]) -> dict[str, str]:
    """The C name of each name of a function: itself, or with `_` behind it where the language uses it."""
    used = KEYWORDS | LIBRARY | reserved
    own = names_of(function)
    escaped: dict[str, str] = {}
    for name in sorted(own):
        spelled = name
        if name in used or name.startswith((OURS, "__")) or not name.isascii():
            spelled = _ascii(name).lstrip("_") + "_"
            if spelled.startswith(OURS):
                spelled = "k" + spelled
            while spelled in own or spelled in used or spelled in escaped.values():
                spelled += "_"
        escaped[name] = spelled
    return escaped


def _ascii(name: str) -> str:
    return "".join(letter if letter.isascii() else f"u{ord(letter):x}" for letter in name)
