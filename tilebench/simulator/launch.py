"""A launch, and how its threads are ordered: what outlives the batches of blocks that run together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import Buffer, Stmt, effects_in, walk
from ..language.lowered.threads import SyncThreads
from ..language.structure import KernelLaunch
from .counters import Counters
from .memory import Sites, Tracked, tracked_arrays


@dataclass(frozen=True)
class Launch:
    """A launch and what outlives its batches of blocks: the arrays, and who touched those it writes."""

    kernel: KernelLaunch
    arrays: Mapping[str, Any]
    warp: int
    group: int
    # Whether asynchronous copies complete on barriers in shared memory.
    engine: bool
    tracked: Mapping[str, Tracked]
    sites: Sites
    counters: Counters | None = None

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks, x first."""
        x, y, z = (*self.kernel.blocks, 1, 1, 1)[:3]
        return x, y, z

    @property
    def cluster(self) -> int:
        """Blocks of a cluster; they follow each other along x."""
        return math.prod(self.kernel.cluster or (1,))


def ordered_by_blocks(kernel: KernelLaunch, simple: frozenset[type]) -> bool:
    """Whether only barriers of whole blocks order anything: then one clock a block is exact."""
    for node in walk(kernel):
        if isinstance(node, Stmt) and type(node) not in simple:
            return False
        if isinstance(node, SyncThreads) and node.threads not in (0, kernel.threads):
            return False
    return True


def launch_of(
    kernel: KernelLaunch,
    buffers: Mapping[str, Buffer],
    arrays: Mapping[str, Any],
    warp: int,
    *,
    by_blocks: bool,
    engine: bool = False,
    counters: Counters | None = None,
) -> Launch:
    """The launch of a kernel on arrays by parameter name."""
    group = kernel.threads if by_blocks else warp
    written = {effect.buffer.name for effect in effects_in(kernel) if effect.writes}
    tracked = tracked_arrays(buffers, written, -(-kernel.threads // group) + engine)
    return Launch(kernel, arrays, warp, group, engine, tracked, Sites(kernel.body), counters)
