"""The text of `cp.async`: calls of the prelude, whose functions are the instructions."""

from __future__ import annotations

from ....errors import TargetError
from ....ir import Call, Const, DType, Expr, Region, Var, int32, lift
from ....ir.arith import Linear, linear
from ...clike.expressions import LARGE
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic
from ..instructions.cp_async import CpAsync, CpAsyncCommit, CpAsyncWait
from .simulated import simulated

# Bytes of one access.
WIDTHS = (4, 8, 16)


def _copy(renderer: Renderer, statement: CpAsync) -> None:
    dst, src = statement.dst, statement.src
    width = src.buffer.dtype.bytes_of((src.extent or (1,))[-1])
    if width not in WIDTHS or (dst.buffer.scope, src.buffer.scope) != ("shared", "global"):
        raise TargetError(
            "T.cp_async of {width} bytes from {a} to {b} memory has no code for {target}",
            at=statement.place, width=width, a=src.buffer.scope, b=dst.buffer.scope,
            target=renderer.machine.name, widths=", ".join(map(str, WIDTHS)),
            expected="one of {widths} bytes from global to shared memory",
        )  # fmt: skip
    shared, far = _split(renderer, src, statement.apart)
    args = f"{renderer.address(dst)}, {shared}"
    if far is not None:
        args += f", {renderer.text(far)}"
    if statement.valid is not None:
        args += f", {renderer.text(_bytes(statement.valid, src.buffer.dtype))}"
    name = f"tb_cp_async_{width}" if far is None else f"tb_cp_async_{width}_apart"
    renderer.line(f"{name}({args});", statement)


def _split(renderer: Renderer, src: Region, apart: tuple[str, ...]) -> tuple[str, Expr | None]:
    """The address that neighbours share, and how many bytes after it this one is; None: it stands alone."""
    strides, span, dtype = src.buffer.element_strides, src.buffer.span, src.buffer.dtype
    if not apart or not isinstance(span, int) or span >= LARGE or dtype.per_byte > 1:
        return renderer.address(src), None
    total: Expr = Const(0)
    for part, stride in zip(src.start, strides, strict=True):
        total = total + part * lift(stride)
    form = linear(total)
    own = tuple((term, factor) for term, factor in form.terms if isinstance(term, Var) and term.name in apart)
    after = Linear(own, 0).times(dtype.bits // 8).expr()
    if not own or total.dtype != int32 or not renderer.expressions.rough.fits(after):
        return renderer.address(src), None
    base = form.plus(Linear(own, 0), -1).expr()
    return f"{renderer.names[src.buffer.name]} + ({renderer.text(base)})", after


def _bytes(elements: Expr, dtype: DType) -> Expr:
    """The bytes that so many elements take."""
    if isinstance(elements, Call) and elements.word == "if_then_else":
        condition, yes, no = elements.args
        return elements.but(args=(condition, _bytes(yes, dtype), _bytes(no, dtype)))
    if isinstance(elements, Const):
        return Const(dtype.bytes_of(elements.value))
    return elements * dtype.bits // 8


def _commit(renderer: Renderer, statement: CpAsyncCommit) -> None:
    renderer.line("tb_cp_async_commit();", statement)


def _wait(renderer: Renderer, statement: CpAsyncWait) -> None:
    renderer.line(f"tb_cp_async_wait<{statement.pending}>();", statement)


INTRINSICS = (
    Intrinsic(CpAsync, simulated("cp_async_meaning", "cp_async"), _copy),
    Intrinsic(CpAsyncCommit, simulated("cp_async_meaning", "cp_async_commit"), _commit),
    Intrinsic(CpAsyncWait, simulated("cp_async_meaning", "cp_async_wait"), _wait),
)
