"""The text of barriers in phases: calls of the prelude, whose functions are the instructions."""

from __future__ import annotations

from ....errors import TargetError
from ....ir import Expr, WordStmt
from ....language.lowered.clusters import SyncCluster
from ....language.lowered.mbarriers import (
    FenceAsyncShared,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierExpect,
    MbarrierInit,
    MbarrierInval,
    MbarrierWait,
)
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic


def _call(
    renderer: Renderer, statement: WordStmt, name: str, *operands: Expr, needs: str = "mbarrier"
) -> None:
    """A call of the prelude's function on the statement's barrier, where it has one."""
    _check(renderer, statement, needs)
    region = getattr(statement, "barrier", None)
    if region is not None and (region.buffer.scope, region.buffer.dtype.bits) != ("shared", 64):
        raise TargetError(
            "{name} is no barrier: barriers are uint64 in shared memory", at=statement.place,
            name=region.buffer.name, found=f"{region.buffer.dtype.name} in {region.buffer.scope} memory",
        )  # fmt: skip
    args = [] if region is None else [renderer.address(region)]
    args += [renderer.text(operand) for operand in operands]
    renderer.line(f"{name}({', '.join(args)});", statement)


def _check(renderer: Renderer, statement: WordStmt, needs: str) -> None:
    if needs not in renderer.machine.features:
        raise TargetError(
            "T.{word} needs {what}, which {target} has not", at=statement.place, word=statement.word,
            what=_TOLD[needs], target=renderer.machine.name,
        )  # fmt: skip


_TOLD = {
    "cluster": "clusters of blocks (sm_90)",
    "mbarrier": "barriers in shared memory (sm_80)",
    "tma": "copies of the tensor memory accelerator (sm_90)",
}


def _init(renderer: Renderer, statement: MbarrierInit) -> None:
    _call(renderer, statement, "tb_mbarrier_init", statement.count)


def _inval(renderer: Renderer, statement: MbarrierInval) -> None:
    _call(renderer, statement, "tb_mbarrier_inval")


def _arrive(renderer: Renderer, statement: MbarrierArrive) -> None:
    """Of sm_80 alone are single arrivals without bytes."""
    if statement.bytes is not None:
        if statement.count is not None:
            raise TargetError(
                "an arrival that announces bytes is one: it has no count", at=statement.place,
                hint="announce them first: T.mbarrier_expect(barrier, bytes)",
            )  # fmt: skip
        _call(renderer, statement, "tb_mbarrier_arrive_expect", statement.bytes, needs="tma")
    elif statement.count is not None:
        _call(renderer, statement, "tb_mbarrier_arrive_many", statement.count, needs="tma")
    elif statement.block is not None:
        name = f"tb_mbarrier_arrive_at{'_relaxed' if statement.relaxed else ''}"
        _call(renderer, statement, name, statement.block, needs="cluster")
    else:
        _call(renderer, statement, "tb_mbarrier_arrive")


def _expect(renderer: Renderer, statement: MbarrierExpect) -> None:
    _call(renderer, statement, "tb_mbarrier_expect", statement.bytes, needs="tma")


def _wait(renderer: Renderer, statement: MbarrierWait) -> None:
    _call(renderer, statement, "tb_mbarrier_wait", statement.parity)


def _fence_init(renderer: Renderer, statement: FenceMbarrierInit) -> None:
    _call(renderer, statement, "tb_fence_mbarrier_init", needs="tma")


def _fence_async(renderer: Renderer, statement: FenceAsyncShared) -> None:
    _call(renderer, statement, "tb_fence_async_shared", needs="tma")


def _sync_cluster(renderer: Renderer, statement: SyncCluster) -> None:
    _check(renderer, statement, "cluster")
    name = f"tb_sync_cluster{'_relaxed' if statement.relaxed else ''}"
    renderer.line(f"{name}();" + (f"  // {statement.why}" if statement.why else ""), statement)


INTRINSICS = (
    Intrinsic(MbarrierInit, None, _init),
    Intrinsic(MbarrierInval, None, _inval),
    Intrinsic(MbarrierArrive, None, _arrive),
    Intrinsic(MbarrierExpect, None, _expect),
    Intrinsic(MbarrierWait, None, _wait),
    Intrinsic(SyncCluster, None, _sync_cluster),
    Intrinsic(FenceMbarrierInit, None, _fence_init),
    Intrinsic(FenceAsyncShared, None, _fence_async),
)
