"""The prelude's stores that combine: the card's own instructions, else compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterable

# One step on the bits of an element: tried again until nobody else came between.
SWAP = """\
template <class Bits, class T, class F> TB T tb_swap(T* to, F combined) {
  Bits found = *(volatile Bits*)to, seen;
  do {
    seen = found;
    T now = combined(*(T*)&seen);
    found = atomicCAS((Bits*)to, seen, *(Bits*)&now);
  } while (found != seen);
  return *(T*)&found;
}"""
_OWN = """\
TB {type} tb_atomic_{how}({type}* to, {type} x) {{
  return ({type})atomic{name}(({card}*)to, ({card})x);
}}"""
_SWAPPED = """\
TB {type} tb_atomic_{how}({type}* to, {type} x) {{
  return tb_swap<{bits}>(to, [=]({type} old) {{ return {combined}; }});
}}"""
# A load and a store of one step: what is volatile is read and written as it stands, in one access.
_LOAD = """\
TB {type} tb_atomic_load(const {type}* from) {{
  {bits} found = *(const volatile {bits}*)from;
  return *({type}*)&found;
}}"""
_STORE = "TB void tb_atomic_store({type}* to, {type} x) {{ *(volatile {bits}*)to = *({bits}*)&x; }}"
# Fences of the whole card.
FENCES = """\
TB void tb_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
TB void tb_fence_sc() { asm volatile("fence.sc.gpu;" ::: "memory"); }"""
# Neighbours in one access: each is added as one step, and all of them are not.
WIDE_ADDS = """\
TB void tb_add_global_2(float* to, const float* x) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};"
               :: "l"(__cvta_generic_to_global(to)), "f"(x[0]), "f"(x[1]) : "memory");
}
TB void tb_add_global_4(float* to, const float* x) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(__cvta_generic_to_global(to)), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}"""
# What each type of the card's own instructions is to them.
_ADDS = {
    "int": "int", "unsigned": "unsigned", "long long": "unsigned long long",
    "unsigned long long": "unsigned long long", "float": "float", "double": "double",
}  # fmt: skip
_ORS = {
    "int": "int", "unsigned": "unsigned", "long long": "unsigned long long",
    "unsigned long long": "unsigned long long",
}  # fmt: skip
_ALIKE = {each: each for each in ("int", "unsigned", "long long", "unsigned long long")}
_EXTREMES = _ALIKE
_BITS = {
    "float": "unsigned", "double": "unsigned long long", "short": "unsigned short",
    "unsigned short": "unsigned short", "tb_half": "unsigned short", "tb_bf16": "unsigned short",
}  # fmt: skip
# Of one byte, which nothing else than a load or store takes.
_BYTES = dict.fromkeys(("signed char", "unsigned char", "bool", "tb_e4m3", "tb_e5m2"), "unsigned char")
_COMBINED = {
    "add": "({type})(old + x)",
    "max": "tb_max(old, x)",
    "min": "tb_min(old, x)",
    "or": "({type})(old | x)",
}


def atomics(how: str, structs: Iterable[str]) -> str:
    """The functions of one atomic, for every type that a kernel can have. They give what was there before."""
    known = {type_: bits for type_, bits in _BITS.items() if not type_.startswith("tb_") or type_ in structs}
    if how in ("load", "store"):
        known |= {type_: bits for type_, bits in _BYTES.items() if type_[:3] != "tb_" or type_ in structs}
        text = _LOAD if how == "load" else _STORE
        return "\n".join(text.format(type=type_, bits=bits) for type_, bits in {**_ALIKE, **known}.items())
    own = _ADDS if how == "add" else _EXTREMES if how != "or" else _ORS
    others = {type_: bits for type_, bits in known.items() if how != "or" or "short" in type_}
    out = [_OWN.format(how=how, type=type_, name=how.capitalize(), card=card) for type_, card in own.items()]
    for type_, bits in others.items():
        if type_ not in own:
            combined = _COMBINED[how].format(type=type_)
            out.append(_SWAPPED.format(how=how, type=type_, bits=bits, combined=combined))
    return "\n".join(out)
