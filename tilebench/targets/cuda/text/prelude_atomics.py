"""The prelude's stores that combine: the card's own instructions, else compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterable

# One step on the bits of an element: tried again until nobody else came between.
SWAP = """\
template <class Bits, class T, class F> TB void tb_swap(T* to, F combined) {
  Bits found = *(volatile Bits*)to, seen;
  do {
    seen = found;
    T now = combined(*(T*)&seen);
    found = atomicCAS((Bits*)to, seen, *(Bits*)&now);
  } while (found != seen);
}"""
_OWN = "TB void tb_atomic_{how}({type}* to, {type} x) {{ atomic{name}(({card}*)to, ({card})x); }}"
_SWAPPED = """\
TB void tb_atomic_{how}({type}* to, {type} x) {{
  tb_swap<{bits}>(to, [=]({type} old) {{ return {combined}; }});
}}"""
# What each type of the card's own instructions is to them.
_ADDS = {
    "int": "int", "unsigned": "unsigned", "long long": "unsigned long long",
    "unsigned long long": "unsigned long long", "float": "float", "double": "double",
}  # fmt: skip
_ORS = {
    "int": "int", "unsigned": "unsigned", "long long": "unsigned long long",
    "unsigned long long": "unsigned long long",
}  # fmt: skip
_EXTREMES = {each: each for each in ("int", "unsigned", "long long", "unsigned long long")}
_BITS = {
    "float": "unsigned", "double": "unsigned long long", "short": "unsigned short",
    "unsigned short": "unsigned short", "tb_half": "unsigned short", "tb_bf16": "unsigned short",
}  # fmt: skip
_COMBINED = {
    "add": "({type})(old + x)",
    "max": "tb_max(old, x)",
    "min": "tb_min(old, x)",
    "or": "({type})(old | x)",
}


def atomics(how: str, structs: Iterable[str]) -> str:
    """The functions of one way to combine, for every type that a kernel can have."""
    own = _ADDS if how == "add" else _EXTREMES if how != "or" else _ORS
    others = {type_: bits for type_, bits in _BITS.items() if how != "or" or "short" in type_}
    out = [_OWN.format(how=how, type=type_, name=how.capitalize(), card=card) for type_, card in own.items()]
    for type_, bits in others.items():
        if type_ not in own and (not type_.startswith("tb_") or type_ in structs):
            combined = _COMBINED[how].format(type=type_)
            out.append(_SWAPPED.format(how=how, type=type_, bits=bits, combined=combined))
    return "\n".join(out)
