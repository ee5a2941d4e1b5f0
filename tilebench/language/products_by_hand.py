"""Products that go on until the kernel itself waits for them: `T.wgmma_gemm` and `T.wait_wgmma`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from .gemm import Gemm, GemmWarpPolicy, gemm
from .lowered.decisions import Instr
from .lowered.tokens import BY_HAND, Commit
from .tracing.builder import for_tiles
from .waits_by_hand import wait_by_hand

if TYPE_CHECKING:
    from .tracing.taken import Condition, Tile

__all__ = ["wait_wgmma", "warpgroup_wait", "wgmma_gemm"]

_WGMMA = Instr("wgmma")


def wgmma_gemm(
    A: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | str | None = None,
    clear_accum: Condition = False,
    annotations: Any = None,
) -> None:
    """`T.gemm` by the instruction of warp groups (sm_90a), which is not waited for: `T.wait_wgmma` does.

    Until then nothing may touch C, nor write A and B. Each is a group of its own, in the order of the kernel.
    What threads wrote to A or B is seen behind `T.fence_proxy_async()` and a barrier. Raises as `T.gemm`.
    """
    builder = for_tiles("T.wgmma_gemm")
    statements = builder.frames[-1].statements
    known = len(statements)
    gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, annotations=annotations)
    new = statements[known:]
    if len(new) != 1 or not isinstance(new[0], Gemm):
        raise LanguageError(
            "T.wgmma_gemm adds a product of tiles to a fragment in the sum's own dtype",
            hint="T.gemm takes other operands, and waits for its result",
        )  # fmt: skip
    statements[known] = new[0].but(by=_WGMMA, token=BY_HAND)
    builder.emit(Commit(BY_HAND, by=_WGMMA, place=builder.place))


def wait_wgmma(id: int) -> None:
    """This group's products are done, all but the `id` youngest: `T.wait_wgmma(0)` waits for all."""
    wait_by_hand("T.wait_wgmma", id, "products", _WGMMA)


def warpgroup_wait(num_mma: int) -> None:
    """`T.wait_wgmma(num_mma)`."""
    wait_by_hand("T.warpgroup_wait", num_mma, "products", _WGMMA)
