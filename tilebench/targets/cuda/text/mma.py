"""The text of the tensor cores' words: calls of functions of the prelude, each one instruction."""

from __future__ import annotations

import re
from typing import Any

from ....errors import TargetError
from ...clike.prelude import Part, Wanted
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic
from ..instructions.mma import LoadMatrix, Mma
from ..tensor_cores import PTX_TYPES, MmaShape, shape_named


def _mma(renderer: Renderer, statement: Mma) -> None:
    """`tb_mma_m16n8k16_f32_f16_f16(c, a, b);`"""
    regions = (statement.c, statement.a, statement.b)
    types = [PTX_TYPES.get(region.buffer.dtype.name, "") for region in regions]
    # Operands of 32 bits are read as TF32, whose last 13 bits do not count.
    types = [types[0], *("tf32" if name == "f32" else name for name in types[1:])]
    if not all(types):
        raise TargetError(
            "T.mma of {dtypes} has no code for {target}", at=statement.place, target=renderer.machine.name,
            dtypes=", ".join(region.buffer.dtype.name for region in regions),
        )  # fmt: skip
    args = ", ".join(renderer.address(region) for region in regions)
    renderer.line(f"tb_mma_{statement.shape}_{'_'.join(types)}({args});", statement)


def _load_matrix(renderer: Renderer, statement: LoadMatrix) -> None:
    """`tb_ldmatrix_x4(a, A_s + offset);`"""
    bits = statement.dst.buffer.dtype.bits
    count = (statement.dst.extent or (1,))[-1] * bits // 32
    turned = "_trans" if statement.turned else ""
    to, source = renderer.address(statement.dst), renderer.address(statement.src)
    renderer.line(f"tb_ldmatrix_x{count}{turned}({to}, {source});", statement)


_LOAD = """\
TB void tb_ldmatrix_x{count}{turned}(void* to, const void* from) {{
  unsigned* r = (unsigned*)to;
  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{option}.shared.b16 {{{outs}}}, [%{count}];"
               : {registers} : "r"((unsigned)__cvta_generic_to_shared(from)));
}}"""
_MMA = """\
TB void tb_mma_{shape}_{c}_{a}_{b}(void* to, const void* left, const void* right) {{
  {to}* c = ({to}*)to;
  const {source}* a = (const {source}*)left;
  const {source}* b = (const {source}*)right;
  asm("mma.sync.aligned.{shape}.row.col.{c}.{a}.{b}.{c} {{{outs}}}, {{{lefts}}}, {{{rights}}}, {{{outs}}};"
      : {results} : {operands});
}}"""
_NAME = re.compile(r"tb_mma_(m\d+n\d+k\d+)_(\w+?)_(\w+?)_(\w+)")
# Of a type: bits, the type of a register in C and in the constraint of an assembly statement.
_BITS = {
    "f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32, "e4m3": 8,
    "e5m2": 8,
}  # fmt: skip
_REGISTERS = {"f32": ("float", "f"), "f64": ("double", "d")}


def _loads(wanted: Wanted) -> str:
    kinds = [(count, turned) for count in (1, 2, 4) for turned in ("", "_trans")]
    return "\n".join(_load_of(*kind) for kind in kinds if wanted.has("tb_ldmatrix_x{}{}".format(*kind)))


def _load_of(count: int, turned: str) -> str:
    registers = ", ".join(f'"=r"(r[{k}])' for k in range(count))
    option, outs = turned.replace("_", "."), _numbers(0, count)
    return _LOAD.format(count=count, turned=turned, option=option, outs=outs, registers=registers)


def _numbers(first: int, count: int) -> str:
    return ", ".join(f"%{first + k}" for k in range(count))


def _products(wanted: Wanted) -> str:
    return "\n".join(
        one_product(*match.groups()) for name in sorted(wanted.names or ()) if (match := _NAME.match(name))
    )


def one_product(shape: str, c: str, a: str, b: str) -> str:
    """The function of one instruction, `tb_mma_SHAPE_C_A_B`."""
    tile: MmaShape = shape_named(shape, _BITS[a])
    source, operand = ("double", "d") if a == "f64" else ("unsigned", "r")
    to, result = _REGISTERS.get(c, ("int", "r"))
    counts = [tile.c.values * _BITS[c] // (64 if c == "f64" else 32)]
    counts += [fragment.values * _BITS[a] // (64 if a == "f64" else 32) for fragment in (tile.a, tile.b)]
    operands = [
        f'"{operand}"({name}[{k}])'
        for name, count in zip("ab", counts[1:], strict=True)
        for k in range(count)
    ]
    return _MMA.format(
        shape=shape, c=c, a=a, b=b, to=to, source=source, outs=_numbers(0, counts[0]),
        lefts=_numbers(counts[0], counts[1]), rights=_numbers(counts[0] + counts[1], counts[2]),
        results=", ".join(f'"+{result}"(c[{k}])' for k in range(counts[0])), operands=", ".join(operands),
    )  # fmt: skip


MATRIX = (
    Part("ldmatrix", r"tb_ldmatrix_x\d\w*", _loads),
    Part("mma", r"tb_mma_\w+", _products),
)


def _product(lanes: Any, statement: Mma, mask: Any) -> None:
    from ..instructions.mma_meaning import mma  # only the simulator asks

    mma(lanes, statement, mask)


def _load(lanes: Any, statement: LoadMatrix, mask: Any) -> None:
    from ..instructions.mma_meaning import load_matrix

    load_matrix(lanes, statement, mask)


INTRINSICS = (Intrinsic(Mma, _product, _mma), Intrinsic(LoadMatrix, _load, _load_matrix))
