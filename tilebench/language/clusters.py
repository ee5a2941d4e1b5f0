"""Clusters of blocks as a kernel says them: `T.ClusterKernel`, and a block's number in its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import ZERO, Expr
from .launch import Kernel, KernelSpec
from .threads.block import block_of
from .tracing.builder import inside_kernel
from .tracing.values import Value

if TYPE_CHECKING:
    from .tracing.taken import Whole

__all__ = ["ClusterKernel", "block_rank_in_cluster"]


def ClusterKernel(
    *blocks: Whole,
    cluster_dims: int | tuple[int, ...],
    threads: int | tuple[int, ...] | None = None,
    prelude: str | None = None,
) -> KernelSpec:
    """`T.Kernel` in clusters of blocks: `with T.ClusterKernel(8, 8, cluster_dims=(2, 1)) as (bx, by):`.

    What all blocks of a cluster read is found and sent to them together; nothing else of the kernel changes.
    """
    return Kernel(*blocks, threads=threads, prelude=prelude, cluster_dims=cluster_dims)


def block_rank_in_cluster() -> Value:
    """The number of the block in its cluster, x counting first; 0 in a kernel without `cluster_dims`."""
    builder = inside_kernel("T.block_rank_in_cluster")
    cluster: tuple[int, ...] = builder.launch_hints.get("cluster", ())
    rank: Expr = ZERO
    step = 1
    for number, count in zip(block_of(builder).block, cluster, strict=False):
        if count > 1:
            rank, step = rank + number % count * step, step * count
    return Value(rank)
