"""Copies that go on until the kernel itself waits for the barrier that counts their bytes: `T.tma_copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from .copy import Copy, copy
from .lowered.decisions import Instr
from .lowered.tokens import BY_HAND, Commit
from .mbarriers import barrier_region
from .notes import note_unused
from .tracing.builder import for_tiles
from .waits_by_hand import wait_by_hand

if TYPE_CHECKING:
    from .tracing.taken import Tile
    from .tracing.values import BufferView, ElementRef

__all__ = ["tma_copy", "tma_store_arrive", "tma_store_wait"]

_TMA = Instr("tma")


def tma_copy(
    src: Tile,
    dst: Tile,
    *,
    barrier: BufferView | ElementRef | None = None,
    cluster_mask: int | None = None,
    leader_scope_threads: int | None = None,
    eviction_policy: str | None = None,
    annotations: Any = None,
) -> None:
    """A box of an array to or from shared memory (sm_90 on): `T.tma_copy(A[m, k], A_s, barrier=full[v])`.

    One thread of those here announces its bytes on the barrier and issues it; nobody arrives or waits:
    `T.barrier_arrive(full[v])` and `T.barrier_wait(full[v], parity)` do, and who has waited sees the tile.
    What lies outside of the array is zero. A store, `T.tma_copy(C_s, C[m, n])`, has no barrier: it is a
    group, and `T.tma_store_wait()` waits. Raises as `T.copy`, `LanguageError` for a load without a barrier;
    a box that the accelerator cannot bring is refused where layouts are chosen, with the rule.
    """
    builder = for_tiles("T.tma_copy")
    if cluster_mask is not None:
        raise LanguageError(
            "T.tma_copy brings a box to several blocks of a cluster", hint="leave cluster_mask out"
        )
    note_unused("T.tma_copy", leader_scope_threads=leader_scope_threads, annotations=annotations)
    statements = builder.frames[-1].statements
    known = len(statements)
    copy(src, dst, eviction_policy=eviction_policy)
    new = statements[known] if len(statements) == known + 1 else None
    if not isinstance(new, Copy) or {new.src.buffer.scope, new.dst.buffer.scope} != {"global", "shared"}:
        raise LanguageError(
            "T.tma_copy moves a box of an array to or from a shared tile",
            expected="an array, and a shared tile", hint="T.copy does the others, and waits for them",
        )  # fmt: skip
    if new.src.buffer.scope == "shared":
        statements[known] = new.but(by=_TMA, token=BY_HAND)
        builder.emit(Commit(BY_HAND, by=_TMA, place=builder.place))
        return
    if barrier is None:
        raise LanguageError(
            "T.tma_copy names no barrier", expected="T.tma_copy(A[m, k], A_s, barrier=full)",
            hint="full = T.alloc_barrier(128): a wait for it sees what the copy brings",
        )  # fmt: skip
    where = barrier_region("T.tma_copy", barrier, builder)
    statements[known] = new.but(by=_TMA, barrier=where, token=BY_HAND)


def tma_store_arrive() -> None:
    """Stores by `T.tma_copy` since the last one are a group: of each of them it is one already."""
    builder = for_tiles("T.tma_store_arrive")
    builder.emit(Commit(BY_HAND, by=_TMA, place=builder.place))


def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Stores by `T.tma_copy` have read their tiles, all but the `count` youngest.

    With `read` False TileLang waits until the array has them, which a kernel here has no use for: it touches
    the array in no other way.
    """
    wait_by_hand("T.tma_store_wait", count, "stores", _TMA)
    note_unused("T.tma_store_wait", read=None if read else "False")
