"""The functions of the prelude that products of warp groups call: one for each form that a text names."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...clike.prelude import Part, Wanted
from ..warp_groups import WgmmaShape, shape_of

_COMMON = """\
TB void tb_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TB void tb_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending> TB void tb_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory");
}
template <int lead> TB unsigned tb_matrix(const void* from) {
  return ((unsigned)__cvta_generic_to_shared(from) & 0x3ffffu) >> 4 | (unsigned)(lead >> 4) << 16;
}"""
# What is read behind it are its own results, so that nothing that reads them moves in front of it.
_WAIT = """\
template <int pending, class R> TB void tb_wgmma_wait_{count}(R* c) {{
  tb_wgmma_wait<pending>();
  #pragma unroll
  for (int k = 0; k < {count}; ++k) tb_keep(c[k]);
}}"""
_PRODUCT = """\
template <{options}>
TB void tb_wgmma_{name}({parameters}) {{
  asm volatile("{{.reg .pred {predicates};{setup}"
{steps}
    "}}" : {sums} : {operands});
}}"""
_NAME = re.compile(
    r"tb_wgmma_(m\d+n\d+k\d+)_([a-z0-9]+)_([a-z0-9]+)_([a-z0-9]+?)(_registers)?(_first|_x\d+)?"
)
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}


class _Form(NamedTuple):
    """One function: the shape, the words of the types in PTX, whether A stands in registers, and the part of
    the name that says how often: `_first` (the sums held nothing before), `_x4` (four steps of k) or none."""

    shape: str
    c: str
    a: str
    b: str
    registers: bool
    times: str

    @property
    def tile(self) -> WgmmaShape:
        found = shape_of(self.shape, _BITS[self.a])
        assert found is not None
        return found

    @property
    def begins(self) -> bool:
        return self.times == "_first"

    @property
    def steps(self) -> int:
        return int(self.times[2:]) if self.times.startswith("_x") else 1

    @property
    def name(self) -> str:
        parts = (self.shape, self.c, self.a, self.b)
        return "_".join(parts) + ("_registers" if self.registers else "") + self.times


# The operands of a descriptor's halves, low and high, by side.
_Places = dict[str, tuple[str, str]]


class _Operands:
    """The inputs of a statement of assembly, numbered behind its results."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.texts: list[str] = []

    def add(self, kind: str, value: str) -> str:
        """The place of another one in the assembly."""
        self.texts.append(f'"{kind}"({value})')
        return f"%{self.first + len(self.texts) - 1}"


def _functions(wanted: Wanted) -> str:
    names = sorted(wanted.names or ())
    waits = [int(name.rpartition("_")[2]) for name in names if re.fullmatch(r"tb_wgmma_wait_\d+", name)]
    forms = [_form(found) for name in names if (found := _NAME.fullmatch(name))]
    waiting = [_WAIT.format(count=count) for count in sorted(waits)]
    return "\n".join([_COMMON, *waiting, *(_product(form) for form in forms)])


def _form(found: re.Match[str]) -> _Form:
    shape, c, a, b, registers, times = found.groups()
    return _Form(shape, c, a, b, registers is not None, times or "")


def _product(form: _Form) -> str:
    """The function of a form. Steps after the first add to what the one before them left."""
    to, kind = ("float", "f") if form.c == "f32" else ("int", "r")
    count = form.tile.c.values
    operands = _Operands(count)
    keep = "0" if form.begins else "keep"
    setup = "" if form.begins else f" setp.ne.b32 keep, {operands.add('r', 'keep')}, 0;"
    # A predicate that is a constant is none of those that PTX documents.
    setup += "" if form.steps == 1 else " setp.eq.b32 more, 0, 0;"
    sides = "b" if form.registers else "ab"
    places = {side: (operands.add("r", side), operands.add("n", f"{side}_high")) for side in sides}
    turned = [operands.add("n", f"{side}_turned") for side in sides] if _BITS[form.a] == 16 else []
    flags = ("" if form.c == "s32" else ", 1, 1") + "".join(f", {each}" for each in turned)
    steps: list[str] = []
    for step in range(form.steps):
        loads, first = _left(form, step, operands, places)
        loads += _descriptor("second", "b", step, operands, places)
        outs = ", ".join(f"%{k}" for k in range(count))
        word = f"wgmma.mma_async.sync.aligned.{form.shape}.{form.c}.{form.a}.{form.b}"
        own = f"{word} {{{outs}}}, {first}, second, {'more' if step else keep}{flags};"
        steps.append(f'    " {{{loads}{own}}}"')
    options = [f"unsigned {side}_high, int {side}_turned" for side in sides]
    options += [] if form.steps == 1 else ["int a_step, int b_step"]
    left = "const void* a" if form.registers else "unsigned a"
    return _PRODUCT.format(
        options=", ".join(options), name=form.name, setup=setup,
        predicates="keep" if form.steps == 1 else "keep, more",
        parameters=f"{to}* c, {left}, unsigned b" + ("" if form.begins else ", int keep"),
        steps="\n".join(steps), operands=", ".join(operands.texts),
        sums=", ".join(f'"{"=" if form.begins else "+"}{kind}"(c[{k}])' for k in range(count)),
    )  # fmt: skip


def _left(form: _Form, step: int, operands: _Operands, places: _Places) -> tuple[str, str]:
    """What makes A of a step, and A."""
    if not form.registers:
        return _descriptor("first", "a", step, operands, places), "first"
    words = form.tile.a.values * _BITS[form.a] // 32
    far = f" + {step} * a_step" if step else ""
    parts = [operands.add("r", f"((const unsigned*)a)[{k}{far}]") for k in range(words)]
    return "", "{" + ", ".join(parts) + "}"


def _descriptor(name: str, side: str, step: int, operands: _Operands, places: _Places) -> str:
    """What makes the descriptor of a step, where it is used and in registers of its own."""
    low, high = places[side]
    if not step:
        return f".reg .b64 {name}; mov.b64 {name}, {{{low}, {high}}}; "
    by = operands.add("n", f"{step} * {side}_step")
    add = f".reg .b32 {side}_low; add.s32 {side}_low, {low}, {by};"
    return f"{add} .reg .b64 {name}; mov.b64 {name}, {{{side}_low, {high}}}; "


_KEEP = """\
TB void tb_keep(float& x) { asm volatile("" : "+f"(x) :: "memory"); }
TB void tb_keep(int& x) { asm volatile("" : "+r"(x) :: "memory"); }"""

# An instruction that reads a value, and does nothing but for bits that no arithmetic gives: the assembler
# moves what nothing needs behind a branch, and knows of no empty statement.
_SETTLE = """\
TB void tb_settle(float x) {
  asm volatile("{.reg .pred odd; setp.eq.u32 odd, %0, 0x7fc0dead; @odd nanosleep.u32 0;}"
               :: "r"(__float_as_uint(x)) : "memory");
}"""

WARP_GROUPS = (
    Part("settle", r"tb_settle", _SETTLE),
    Part("wgmma_keep", r"tb_wgmma_wait_\d+", _KEEP),
    Part("wgmma", r"tb_wgmma_\w+|tb_matrix", _functions),
)
