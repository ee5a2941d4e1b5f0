"""The text of `cp.async`: calls of the prelude, whose functions are the instructions."""

from __future__ import annotations

from typing import Any

from ....errors import TargetError
from ....ir import Call, Const, DType, Expr
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic, Meaning
from ..instructions.cp_async import CpAsync, CpAsyncCommit, CpAsyncWait

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
    args = f"{renderer.address(dst)}, {renderer.address(src)}"
    if statement.valid is not None:
        args += f", {renderer.text(_bytes(statement.valid, src.buffer.dtype))}"
    renderer.line(f"tb_cp_async_{width}({args});", statement)


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


def _simulated(name: str) -> Meaning:
    def run(lanes: Any, statement: Any, mask: Any) -> Any:
        from ..instructions import cp_async_meaning  # with the simulator, which texts do not need

        return getattr(cp_async_meaning, name)(lanes, statement, mask)

    return run


INTRINSICS = (
    Intrinsic(CpAsync, _simulated("cp_async"), _copy),
    Intrinsic(CpAsyncCommit, _simulated("cp_async_commit"), _commit),
    Intrinsic(CpAsyncWait, _simulated("cp_async_wait"), _wait),
)
