"""Step 4: each word of one thread with what it does in the simulator and with its text.

The words of the language take the simulator's own meanings; those of `words.py` bring theirs. A text
is written with the renderer: `line` for a line of the statement's, `text` for an expression, `address`
for a pointer to a region.
"""

from __future__ import annotations

from functools import cache

from tilebench.errors import TargetError
from tilebench.ir.dtypes import float32
from tilebench.language.lowered.threads import MoveBits, SyncThreads, SyncWarp, VectorLoad, VectorStore
from tilebench.targets import Intrinsic
from tilebench.targets.clike.renderer import Renderer

from . import meanings
from .words import ToyAxpy, ToyCommit, ToyCopyAhead, ToyMma, ToyWait, ToyWarpSum


def _move(renderer: Renderer, statement: VectorLoad | VectorStore) -> None:
    memory = statement.src if isinstance(statement, VectorLoad) else statement.dst
    width = memory.buffer.dtype.bytes_of((memory.extent or (1,))[-1])
    to, source = renderer.address(statement.dst), renderer.address(statement.src)
    renderer.line(f"memcpy({to}, {source}, {width});", statement)


def _move_bits(renderer: Renderer, statement: MoveBits) -> None:
    width = statement.dst.buffer.dtype.bytes_of((statement.dst.extent or (1,))[-1])
    renderer.line(
        f"memcpy({renderer.address(statement.dst)}, {renderer.address(statement.src)}, {width});", statement
    )


def _sync_threads(renderer: Renderer, statement: SyncThreads) -> None:
    if statement.barrier or statement.threads:
        raise TargetError("toy has one barrier, on which all threads of a block meet", at=statement.place)
    renderer.line("tb_sync_threads();" + (f"  // {statement.why}" if statement.why else ""), statement)


def _sync_warp(renderer: Renderer, statement: SyncWarp) -> None:
    renderer.line("tb_sync_warp();", statement)


def _axpy(renderer: Renderer, statement: ToyAxpy) -> None:
    y, x = statement.y, statement.x
    if y.buffer.dtype != float32 or x.buffer.dtype != float32:
        raise TargetError(
            "T.toy_axpy works on float32", at=statement.place, found="{y} and {x}",
            y=y.buffer.dtype, x=x.buffer.dtype,
        )  # fmt: skip
    count = (y.extent or (1,))[-1]
    args = f"{renderer.address(y)}, {renderer.address(x)}, {renderer.text(statement.a)}, {count}"
    renderer.line(f"tb_axpy({args});", statement)


def _warp_sum(renderer: Renderer, statement: ToyWarpSum) -> None:
    renderer.line(f"tb_warp_sum({renderer.address(statement.value)});", statement)


def _mma(renderer: Renderer, statement: ToyMma) -> None:
    c, a, b = (renderer.address(region) for region in (statement.c, statement.a, statement.b))
    renderer.line(f"tb_mma({c}, {a}, {b});", statement)


def _copy_ahead(renderer: Renderer, statement: ToyCopyAhead) -> None:
    to, source = renderer.address(statement.dst), renderer.address(statement.src)
    renderer.line(f"tb_copy_ahead({to}, {source});", statement)


def _commit(renderer: Renderer, statement: ToyCommit) -> None:
    renderer.line(f"tb_commit();  // {statement.token}", statement)


def _wait(renderer: Renderer, statement: ToyWait) -> None:
    renderer.line(f"tb_wait({statement.pending});  // {statement.token}", statement)


@cache
def intrinsics() -> tuple[Intrinsic, ...]:
    """The rows of the manifest."""
    return (
        Intrinsic(VectorLoad, None, _move),
        Intrinsic(MoveBits, None, _move_bits),
        Intrinsic(VectorStore, None, _move),
        Intrinsic(SyncThreads, None, _sync_threads),
        Intrinsic(SyncWarp, None, _sync_warp),
        Intrinsic(ToyAxpy, meanings.axpy, _axpy),
        Intrinsic(ToyWarpSum, meanings.warp_sum, _warp_sum),
        Intrinsic(ToyMma, meanings.mma, _mma),
        Intrinsic(ToyCopyAhead, meanings.copy_ahead, _copy_ahead),
        Intrinsic(ToyCommit, meanings.commit, _commit),
        Intrinsic(ToyWait, meanings.wait, _wait),
    )
