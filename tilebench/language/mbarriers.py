"""Barriers in shared memory by hand: `T.alloc_barrier`, `T.barrier_arrive`, `T.barrier_wait` and their kin.

What each does is said in `lowered/mbarriers.py`; here each thread of the group that the statement stands in
does it: `T.barrier_arrive(full)` in `with T.ws(0):` is 128 arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import AllocStmt, Buffer, Const, Expr, Region, Word, attribute, node, result
from ..ir.dtypes import int32, uint64
from .lowered.mbarriers import (
    FenceAsyncShared,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierExpect,
    MbarrierWait,
)
from .stages import TILES
from .tracing.builder import Builder, for_tiles, shown
from .tracing.operands import positive
from .tracing.promote import convert, expr_of
from .tracing.values import BufferView, ElementRef, RegionRef

if TYPE_CHECKING:
    from .tracing.taken import Number

__all__ = [
    "alloc_barrier",
    "barrier_arrive",
    "barrier_wait",
    "create_list_of_mbarrier",
    "fence_proxy_async",
    "get_mbarrier",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_expect_tx",
    "mbarrier_wait_parity",
    "ptx_arrive_barrier",
    "ptx_arrive_barrier_expect_tx",
    "ptx_fence_barrier_init",
]


@node
class AllocBarrier(AllocStmt):
    """`full = T.alloc_barrier((128, 128))`: barriers of the block, each with the arrivals of a phase.

    It stands at the head of the kernel, and they are ready for all threads behind it.
    """

    word = "alloc_barrier"
    stages = TILES
    scope = "shared"
    buffer: Buffer = result()
    arrivals: tuple[int, ...] = attribute()


WORDS = ((AllocBarrier.word, Word(AllocBarrier)),)


def alloc_barrier(arrive_count: int | Sequence[int]) -> BufferView:
    """Barriers in shared memory: `full = T.alloc_barrier(128)`, or `T.alloc_barrier([128] * 4)` for four.

    A phase of one ends when as many arrivals have come as its number says, and the bytes that were announced
    (`T.mbarrier_expect_tx`, `T.tma_copy`); then the next begins. Raises `LanguageError` for what is no count.
    """
    return _allocate("T.alloc_barrier", arrive_count)


def _allocate(word: str, arrive_count: Any) -> BufferView:
    builder = for_tiles(word)
    given: list[Any] = [*arrive_count] if isinstance(arrive_count, (list, tuple)) else [arrive_count]
    counts = tuple(positive(count, word, "the count of arrivals") for count in given)
    if not counts:
        raise LanguageError("{word} makes no barrier", word=word, expected="a count of arrivals for each")
    name = builder.allocation_name("T.alloc_barrier")
    buffer = Buffer(name, (len(counts),), uint64, "shared")
    view = BufferView(buffer, builder.frames[-1], builder.place)
    builder.emit(AllocBarrier(buffer, counts, place=view.place))
    return view


def create_list_of_mbarrier(*arrive_counts: int | Sequence[int]) -> None:
    """Barriers that `T.get_mbarrier(k)` names by number: `T.create_list_of_mbarrier(128, 128)`."""
    builder = for_tiles("T.create_list_of_mbarrier")
    if builder.barriers is not None:
        raise LanguageError(
            "a kernel has one list of barriers", also=[("the other one", builder.barriers.place)],
            hint="T.alloc_barrier makes more",
        )  # fmt: skip
    given: Any = arrive_counts
    if len(given) == 1 and isinstance(given[0], Sequence):
        given = given[0]
    builder.barriers = _allocate("T.create_list_of_mbarrier", given)


def get_mbarrier(number: Number) -> ElementRef:
    """The barrier of a number of those that `T.create_list_of_mbarrier` has made."""
    builder = for_tiles("T.get_mbarrier")
    if builder.barriers is None:
        raise LanguageError("T.get_mbarrier stands behind T.create_list_of_mbarrier(128, 128)")
    return ElementRef(builder.barriers, (convert(expr_of(number), int32),))


# -- arriving and waiting


def barrier_arrive(mbarrier: BufferView | ElementRef) -> None:
    """Every thread here arrives: what it has done is seen by those who wait for the phase."""
    _arrive("T.barrier_arrive", mbarrier)


def mbarrier_arrive(mbarrier: BufferView | ElementRef, cta_id: None = None) -> None:
    """`T.barrier_arrive(mbarrier)`; that of another block of a cluster is refused."""
    if cta_id is not None:
        raise LanguageError("T.mbarrier_arrive names another block of a cluster", hint="leave cta_id out")
    _arrive("T.mbarrier_arrive", mbarrier)


def ptx_arrive_barrier(mbarrier: BufferView | ElementRef) -> None:
    """`T.barrier_arrive(mbarrier)`."""
    _arrive("T.ptx_arrive_barrier", mbarrier)


def _arrive(word: str, mbarrier: Any) -> None:
    builder = for_tiles(word)
    builder.emit(MbarrierArrive(barrier_region(word, mbarrier, builder), place=builder.place))


def mbarrier_expect_tx(mbarrier: BufferView | ElementRef, tx: Number) -> None:
    """Every thread here announces `tx` bytes: the phase does not end before so many more have come."""
    builder = for_tiles("T.mbarrier_expect_tx")
    barrier = barrier_region("T.mbarrier_expect_tx", mbarrier, builder)
    builder.emit(MbarrierExpect(barrier, _whole(tx), place=builder.place))


def mbarrier_arrive_expect_tx(mbarrier: BufferView | ElementRef, tx: Number) -> None:
    """`T.mbarrier_expect_tx(mbarrier, tx)` and `T.barrier_arrive(mbarrier)` as one."""
    _arrive_expect("T.mbarrier_arrive_expect_tx", mbarrier, tx)


def ptx_arrive_barrier_expect_tx(mbarrier: BufferView | ElementRef, tx: Number) -> None:
    """`T.mbarrier_arrive_expect_tx(mbarrier, tx)`."""
    _arrive_expect("T.ptx_arrive_barrier_expect_tx", mbarrier, tx)


def _arrive_expect(word: str, mbarrier: Any, tx: Number) -> None:
    builder = for_tiles(word)
    barrier = barrier_region(word, mbarrier, builder)
    builder.emit(MbarrierArrive(barrier, bytes=_whole(tx), place=builder.place))


def barrier_wait(mbarrier: BufferView | ElementRef, parity: Number) -> None:
    """`T.mbarrier_wait_parity(mbarrier, parity)`."""
    _wait("T.barrier_wait", mbarrier, parity)


def mbarrier_wait_parity(mbarrier: BufferView | ElementRef, parity: Number) -> None:
    """Every thread here waits until the phase of that parity is over: 0 is the first, then 1, 0, and so on.

    Before the first phase has ended that of parity 1 counts as over: so the first to fill a buffer goes on.
    """
    _wait("T.mbarrier_wait_parity", mbarrier, parity)


def _wait(word: str, mbarrier: Any, parity: Number) -> None:
    builder = for_tiles(word)
    barrier, value = barrier_region(word, mbarrier, builder), _whole(parity)
    if isinstance(value, Const) and value.value not in (0, 1):
        raise LanguageError(
            "{word} waits for a parity of {n}", word=word, n=value.value, expected="0 or 1, such as k % 2"
        )
    builder.emit(MbarrierWait(barrier, value, place=builder.place))


def fence_proxy_async() -> None:
    """What these threads know of shared memory is seen by asynchronous copies and products behind it."""
    builder = for_tiles("T.fence_proxy_async")
    builder.emit(FenceAsyncShared(place=builder.place))


def ptx_fence_barrier_init() -> None:
    """Asynchronous copies see the barriers that were made; behind `T.alloc_barrier` they do so anyway."""
    builder = for_tiles("T.ptx_fence_barrier_init")
    builder.emit(FenceMbarrierInit(place=builder.place))


def _whole(given: Number) -> Expr:
    return convert(expr_of(given), int32)


def barrier_region(word: str, given: Any, builder: Builder) -> Region:
    """The one barrier that is meant; of a list that is named alone the first. `LanguageError` for others."""
    view = given.view if isinstance(given, (ElementRef, RegionRef)) else given
    made = isinstance(view, BufferView) and any(
        isinstance(statement, AllocBarrier) and statement.buffer.name == view.name
        for frame in builder.frames
        for statement in frame.statements
    )
    if not made or isinstance(given, RegionRef):
        raise LanguageError(
            "{word} takes a barrier of T.alloc_barrier", word=word, text=shown(given), found="{text}",
            expected="full, or full[k] of several",
        )  # fmt: skip
    index = given.index if isinstance(given, ElementRef) else (Const(0),)
    return Region(view.buffer, index, extent=(1,), place=builder.place)
