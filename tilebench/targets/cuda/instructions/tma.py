"""The tensor memory accelerator (sm_90 on): boxes of arrays to shared memory, moved by nobody's threads.

One thread names a box of a global array, which the launch has described to the card in a tensor map
(`tensor_maps.py`), and a place in shared memory. The copy goes on by itself and completes on a barrier, which
counts its bytes. What of the box lies outside of the array arrives as zeros.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from ....errors import LayoutError
from ....ir import Const, Expr, If, OpStmt, Region, Stmt, attribute, node, reads, writes
from ....language.copy import EVICTIONS, Copy
from ....language.lowered.copy_barriers import ExpectCopies, OpenBarriers, ReleaseTiles
from ....language.lowered.mbarriers import FenceMbarrierInit, MbarrierArrive, MbarrierExpect, MbarrierInit
from ....language.lowered.threads import SyncWarp
from ....language.lowered.tokens import BY_HAND, Commit, Wait
from ....language.stages import THREAD
from ....layout import SharedLayout, offset_expr
from ....passes.analysis.box_parts import unproved
from ....passes.analysis.box_shares import Share, shares
from ....passes.analysis.boxes import Cut, boxes_of, cut, sides
from ....passes.threads.addresses import lower_expr, version_start
from ....passes.threads.emitter import Emitter
from ....passes.threads.lowering import Lowering
from ....passes.threads.rows.mbarriers import barrier_of
from ....passes.threads.tiles import NOWHERE

NAME = "tma"


@node
class TmaLoad(OpStmt):
    """`T.tma_load(A_s[i : i + 8192], A[m : m + 128, k : k + 64], full[v : v + 1], swizzle=128)`: a box of A.

    It lies in rows, the last dimension fastest; with a swizzle its rows are of so many bytes, and their units
    of 16 bytes change places as in a layout's atoms of that width. All its bytes are counted on the barrier.
    With `blocks=3` it comes to blocks 0 and 1 of the cluster (a bit a rank), each at the same place of its
    shared memory, and counts on the barrier at the same place there.
    """

    word = "tma_load"
    stages = THREAD
    for_all: ClassVar[bool] = True
    by_proxy = True
    dst: Region = writes()
    src: Region = reads()
    barrier: Region = reads()
    swizzle: int = attribute(default=0)
    blocks: int = attribute(default=0)
    eviction: str | None = attribute(default=None)


@node
class TmaStore(OpStmt):
    """`T.tma_store(C[m : m + 64, n : n + 64], C_s[i : i + 4096], swizzle=128)`: a box of C from a tile.

    It lies there as `T.tma_load` would have put it. What of the box is outside of the array is left out.
    """

    word = "tma_store"
    stages = THREAD
    for_all: ClassVar[bool] = True
    by_proxy = True
    dst: Region = writes()
    src: Region = reads()
    swizzle: int = attribute(default=0)
    eviction: str | None = attribute(default=None)


@node
class TmaCommit(OpStmt):
    """`T.tma_commit()`: the stores that this thread issued since its last one are a group."""

    word = "tma_commit"
    stages = THREAD
    for_all: ClassVar[bool] = True


@node
class TmaWait(OpStmt):
    """`T.tma_wait(pending=1)`: all groups of this thread but the youngest have read their shared memory."""

    word = "tma_wait"
    stages = THREAD
    for_all: ClassVar[bool] = True
    pending: int = attribute(default=0)


CLASSES = (TmaLoad, TmaStore, TmaCommit, TmaWait)


def open_barriers(emitter: Emitter, statement: OpenBarriers) -> list[Stmt]:
    """All versions, by one thread, which tells the accelerator of them."""
    tile = emitter.shared[statement.barriers.buffer.name]
    made: list[Stmt] = [
        MbarrierInit(Region(tile.flat, (Const(number),), extent=(1,)), Const(statement.arrivals))
        for number in range(tile.flat.size)
    ]
    return _by_one(emitter, *made, FenceMbarrierInit())


def expect_copies(emitter: Emitter, statement: ExpectCopies) -> list[Stmt]:
    """One thread arrives for all."""
    before: list[Stmt] = []
    barrier = barrier_of(emitter, statement.barrier, before)
    return _by_one(emitter, *before, MbarrierArrive(barrier, bytes=Const(statement.bytes)))


def release_tiles(emitter: Emitter, statement: ReleaseTiles) -> list[Stmt]:
    """One thread of each warp arrives for it, behind all of them; one for each block that waits for it."""
    before: list[Stmt] = []
    barrier = barrier_of(emitter, statement.barrier, before)
    lane = emitter.tid % emitter.machine.warp
    if statement.blocks:
        arrive = MbarrierArrive(barrier, block=lane, relaxed=statement.relaxed)
        return [*before, SyncWarp(), If(lane.compare("<", statement.blocks), (arrive,), ())]
    return [*before, SyncWarp(), If(lane.compare("==", 0), (MbarrierArrive(barrier),), ())]


def copy(emitter: Emitter, statement: Copy) -> list[Stmt]:
    """Each box of the tile, by one thread: from the array, or to it."""
    part, tile = sides(statement)
    stores = part is statement.dst
    if statement.by is None or not statement.by.box or (statement.barrier is None and not stores):
        raise LayoutError("a copy by {name} has a barrier, and a box", at=statement.place, name=NAME)
    (found, share), before = _cut(emitter, statement), list[Stmt]()
    barrier = None if statement.barrier is None else barrier_of(emitter, statement.barrier, before)
    start = [lower_expr(emitter, index, NOWHERE, before) for index in part.start]
    base, flat = _part_start(emitter, tile, before), emitter.shared[tile.buffer.name].flat
    moves: list[Stmt] = []
    if statement.token == BY_HAND and barrier is not None:
        size = prod(part.extent or ()) * part.buffer.dtype.bits // 8
        moves.append(MbarrierExpect(barrier, Const(size)))
    blocks, eviction = statement.by.blocks, _eviction(statement)
    if isinstance(share, Share):
        start = [a + emitter.rank * by if by else a for a, by in zip(start, share.step, strict=True)]
        base = base + emitter.rank * share.stride
    for where, first in share.pieces:
        place = Region(flat, (base + first,), extent=(prod(share.box),))
        index = tuple(a + b for a, b in zip(start, where, strict=True))
        box = Region(part.buffer, index, extent=share.box)
        if stores:
            moves.append(TmaStore(box, place, swizzle=found.swizzle, eviction=eviction))
        elif barrier is not None:
            every = (1 << blocks) - 1
            hints: dict[str, Any] = {"blocks": every, "eviction": eviction}
            moves.append(TmaLoad(place, box, barrier, swizzle=found.swizzle, **hints))
    return _by_one(emitter, *before, *moves)


def commit(emitter: Emitter, statement: Commit) -> list[Stmt]:
    """What was stored is a group."""
    return _by_one(emitter, TmaCommit())


def wait(emitter: Emitter, statement: Wait) -> list[Stmt]:
    """The thread that issued stores waits; what others do next is behind a barrier."""
    return _by_one(emitter, TmaWait(pending=statement.pending))


def _eviction(copy: Copy) -> str | None:
    """What the cache is told; nothing of what it does anyway."""
    return None if copy.eviction == EVICTIONS[0] else copy.eviction


def _cut(emitter: Emitter, statement: Copy) -> tuple[Cut, Cut | Share]:
    """How the tile of a copy is cut, and the part of it that this block brings.

    Raises `LayoutError` where the stage's text says otherwise.
    """
    part, tile = sides(statement)
    by, boxes = statement.by, boxes_of(statement, emitter.machine)
    assert by is not None
    assert boxes is not None
    found = cut(part, tile, emitter.shared[tile.buffer.name].layout, boxes)
    own = found
    if by.blocks and not isinstance(found, str):
        own = shares(found, by.blocks, tile.buffer.dtype.bits)
    if by.blocks not in (0, emitter.cluster):
        why = f"its parts come from {by.blocks} blocks, and a cluster has {emitter.cluster}"
    elif isinstance(found, str) or isinstance(own, str):
        why = found if isinstance(found, str) else str(own)
    elif (own.box, found.swizzle) != (by.box, by.swizzle):
        why = f"its layout gives box={own.box}, swizzle={found.swizzle}"
    else:
        return found, own
    raise LayoutError(
        "{name} cannot move {tile} in boxes of {box} with swizzle={swizzle}: {why}", at=statement.place,
        name=NAME, tile=tile.buffer.name, box=by.box, swizzle=by.swizzle, why=why,
    )  # fmt: skip


def _part_start(emitter: Emitter, part: Region, before: list[Stmt]) -> Expr:
    """The element of the flat buffer where a part of a version begins."""
    base = version_start(emitter, part, before)
    if part.is_whole:
        return base
    start = [lower_expr(emitter, index, NOWHERE, before) for index in part.start]
    dim = unproved(part, tuple(emitter.facts.divisor(index) for index in start))
    if dim is not None:
        raise LayoutError(
            "the part of {tile} that {name} fills begins anywhere in dimension {dim}", at=part.place,
            tile=part.buffer.name, name=NAME, dim=dim, size=(part.extent or ())[dim],
            expected="a multiple of {size}, its extent there",
        )  # fmt: skip
    layout = emitter.shared[part.buffer.name].layout
    return base + offset_expr(SharedLayout(layout.shape, layout.strides), start, emitter.facts)


def _by_one(emitter: Emitter, *body: Stmt) -> list[Stmt]:
    """What one thread does for all."""
    return [*body] if emitter.threads.count == 1 else [If(emitter.tid.compare("==", 0), tuple(body), ())]


LOWERINGS = (
    Lowering(Copy, NAME, copy), Lowering(OpenBarriers, "", open_barriers),
    Lowering(ExpectCopies, "", expect_copies), Lowering(ReleaseTiles, "", release_tiles),
    Lowering(Commit, NAME, commit), Lowering(Wait, NAME, wait),
)  # fmt: skip
