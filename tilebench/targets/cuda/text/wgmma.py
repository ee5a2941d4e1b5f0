"""The text of products of warp groups: calls of functions of the prelude, each one instruction.

A descriptor's lower half is made of an address once, and what versions, groups and steps of k add to it is
added to that, in units of 16 bytes: the address is known when the kernel is linked, so in a loop an operand
costs an addition. The upper half is a constant.
"""

from __future__ import annotations

import re

from ....errors import TargetError
from ....ir import FALSE, TRUE, Expr, Region, const_of
from ....ir.arith import linear
from ....language.lowered.settle import Settle
from ...clike.prelude import Part, Wanted
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic
from ..instructions.wgmma import Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait
from ..tensor_cores import PTX_TYPES
from ..warp_groups import MatrixForm, WgmmaShape, shape_of
from .simulated import simulated

# Bytes that an address in a descriptor counts in.
_UNIT = 16


def _wgmma(renderer: Renderer, statement: Wgmma) -> None:
    """`tb_wgmma_m64n256k16_f32_f16_f16<...>(c, A_s descriptor, B_s descriptor, keep);`"""
    regions = (statement.c, statement.a, statement.b)
    types = [PTX_TYPES.get(region.buffer.dtype.name, "") for region in regions]
    types = [types[0], *("tf32" if name == "f32" else name for name in types[1:])]
    if not all(types) or shape_of(statement.shape, statement.a.buffer.dtype.bits) is None or (
        statement.b_form is None or (statement.a_form is None) != (statement.a.buffer.scope == "local")
    ):  # fmt: skip
        raise TargetError(
            "T.wgmma {shape} of {dtypes} has no code for {target}", at=statement.place, shape=statement.shape,
            target=renderer.machine.name, dtypes=", ".join(region.buffer.dtype.name for region in regions),
        )  # fmt: skip
    forms = [form for form in (statement.a_form, statement.b_form) if form is not None]
    name = f"tb_wgmma_{statement.shape}_{'_'.join(types)}" + ("" if statement.a_form else "_registers")
    name += "_first" if statement.clear == TRUE else ""
    options = ", ".join(f"{form.high:#x}u, {int(form.turned)}" for form in forms)
    sides = [
        renderer.address(statement.a)
        if statement.a_form is None
        else _matrix(renderer, statement.a, forms[0]),
        _matrix(renderer, statement.b, forms[-1]),
    ]
    arguments = [renderer.address(statement.c), *sides]
    if statement.clear != TRUE:
        arguments.append("1" if statement.clear == FALSE else f"!({renderer.text(statement.clear)})")
    renderer.line(f"{name}<{options}>({', '.join(arguments)});", statement)


def _matrix(renderer: Renderer, region: Region, form: MatrixForm) -> str:
    """The lower half of a descriptor: of the buffer, and the distance of the region from its start."""
    own = f"tb_matrix<{form.lead}>({renderer.names[region.buffer.name]})"
    distance = _units(region.start[-1], region.buffer.dtype.bits // 8)
    if const_of(distance) == 0:
        return own
    return f"{own} + ({renderer.text(distance)})"


def _units(start: Expr, size: int) -> Expr:
    """A number of elements as one of units; each of its terms is a multiple of one, as rows and lines are."""
    form = linear(start)
    per = _UNIT // size
    if form.constant % per == 0 and all(factor % per == 0 for _, factor in form.terms):
        terms = tuple((term, factor // per) for term, factor in form.terms)
        return type(form)(terms, form.constant // per).expr()
    return start // per


def _fence(renderer: Renderer, statement: WgmmaFence) -> None:
    renderer.line("tb_wgmma_fence();", statement)


def _commit(renderer: Renderer, statement: WgmmaCommit) -> None:
    renderer.line("tb_wgmma_commit();", statement)


def _wait(renderer: Renderer, statement: WgmmaWait) -> None:
    if statement.c is None:
        renderer.line(f"tb_wgmma_wait<{statement.pending}>();", statement)
        return
    count = (statement.c.extent or (1,))[-1]
    to = renderer.address(statement.c)
    renderer.line(f"tb_wgmma_wait_{count}<{statement.pending}>({to});", statement)


def _settle(renderer: Renderer, statement: Settle) -> None:
    to = renderer.address(statement.what)
    for number in range((statement.what.extent or (1,))[-1]):
        renderer.line(f"tb_settle(({to})[{number}]);", statement)


# -- the prelude

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
{keeps}
}}"""
_PRODUCT = """\
template <{options}>
TB void tb_wgmma_{name}({to}* c, {left}, unsigned b{more}) {{
  asm volatile("{{.reg .pred keep; {setup} setp.ne.b32 keep, {keep}, 0;"
    " wgmma.mma_async.sync.aligned.{shape}.{c}.{a}.{b} {{{outs}}}, {first}, second, keep{flags};}}"
    : {results} : {operands});
}}"""
_NAME = re.compile(r"tb_wgmma_(m\d+n\d+k\d+)_(\w+?)_(\w+?)_([a-z0-9]+)(_registers)?(_first)?$")
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}


def _functions(wanted: Wanted) -> str:
    names = sorted(wanted.names or ())
    waits = [int(name.rpartition("_")[2]) for name in names if re.fullmatch(r"tb_wgmma_wait_\d+", name)]
    products = [_one(*found.groups()) for name in names if (found := _NAME.match(name))]
    return "\n".join([_COMMON, *(_wait_of(count) for count in sorted(waits)), *products])


def _wait_of(count: int) -> str:
    return _WAIT.format(
        count=count, keeps=f"  #pragma unroll\n  for (int k = 0; k < {count}; ++k) tb_keep(c[k]);"
    )


def _one(shape: str, c: str, a: str, b: str, registers: str | None, begins: str | None) -> str:
    """The function of one instruction; of one that begins a sum, whose registers held nothing before."""
    tile: WgmmaShape | None = shape_of(shape, _BITS[a])
    assert tile is not None
    to, kind = ("float", "f") if c == "f32" else ("int", "r")
    sums, lefts = tile.c.values, tile.a.values * _BITS[a] // 32
    number = sums
    operands: list[str] = []
    if registers:
        first = "{" + ", ".join(f"%{number + k}" for k in range(lefts)) + "}"
        operands += [f'"r"(((const unsigned*)a)[{k}])' for k in range(lefts)]
        setup, number = "", number + lefts
    else:
        first, setup = "first", f".reg .b64 first; mov.b64 first, {{%{number}, %{number + 1}}};"
        operands += ['"r"(a)', '"n"(a_high)']
        number += 2
    setup += f" .reg .b64 second; mov.b64 second, {{%{number}, %{number + 1}}};"
    operands += ['"r"(b)', '"n"(b_high)'] + ([] if begins else ['"r"(keep)'])
    number += 2
    keep = "0" if begins else f"%{number}"
    number += not begins
    flags = "" if c == "s32" else ", 1, 1"
    if _BITS[a] == 16:
        turns = ["b_turned"] if registers else ["a_turned", "b_turned"]
        flags += "".join(f", %{number + k}" for k in range(len(turns)))
        operands += [f'"n"({turn})' for turn in turns]
    options = ["unsigned b_high, int b_turned"]
    options = options if registers else ["unsigned a_high, int a_turned", *options]
    return _PRODUCT.format(
        options=", ".join(options), name=f"{shape}_{c}_{a}_{b}{registers or ''}{begins or ''}",
        to=to, left="const void* a" if registers else "unsigned a", setup=setup, keep=keep, shape=shape,
        more="" if begins else ", int keep",
        c=c, a=a, b=b, outs=", ".join(f"%{k}" for k in range(sums)), first=first, flags=flags,
        results=", ".join(f'"{"=" if begins else "+"}{kind}"(c[{k}])' for k in range(sums)),
        operands=", ".join(operands),
    )  # fmt: skip


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


INTRINSICS = (
    Intrinsic(Wgmma, simulated("wgmma_meaning", "wgmma"), _wgmma),
    Intrinsic(WgmmaFence, simulated("wgmma_meaning", "wgmma_fence"), _fence),
    Intrinsic(WgmmaCommit, simulated("wgmma_meaning", "wgmma_commit"), _commit),
    Intrinsic(WgmmaWait, simulated("wgmma_meaning", "wgmma_wait"), _wait),
    Intrinsic(Settle, simulated("wgmma_meaning", "settle"), _settle),
)
