"""The tensor memory accelerator (sm_90 on): boxes of arrays to shared memory, moved by nobody's threads.

One thread names a box of a global array, which the launch has described to the card in a tensor map
(`tensor_maps.py`), and a place in shared memory. The copy goes on by itself and completes on a barrier, which
counts its bytes. What of the box lies outside of the array arrives as zeros.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ....errors import LayoutError
from ....ir import Const, Expr, If, OpStmt, Region, Stmt, attribute, node, reads, writes
from ....language.copy import Copy
from ....language.lowered.copy_barriers import AwaitCopies, ExpectCopies, OpenBarriers
from ....language.lowered.mbarriers import FenceMbarrierInit, MbarrierArrive, MbarrierInit, MbarrierWait
from ....language.stages import THREAD
from ....passes.analysis.boxes import boxes_of, cut
from ....passes.threads.addresses import lower_expr
from ....passes.threads.emitter import Emitter
from ....passes.threads.lowering import Lowering
from ....passes.threads.registers import check_version
from ....passes.threads.tiles import NOWHERE

NAME = "tma"


@node
class TmaLoad(OpStmt):
    """`T.tma_load(A_s[i : i + 8192], A[m : m + 128, k : k + 64], full[v : v + 1], swizzle=128)`: a box of A.

    It lies in rows, the last dimension fastest; with a swizzle its rows are of so many bytes, and their units
    of 16 bytes change places as in a layout's atoms of that width. All its bytes are counted on the barrier.
    """

    word = "tma_load"
    stages = THREAD
    for_all: ClassVar[bool] = True
    dst: Region = writes()
    src: Region = reads()
    barrier: Region = reads()
    swizzle: int = attribute(default=0)


CLASSES = (TmaLoad,)


def open_barriers(emitter: Emitter, statement: OpenBarriers) -> list[Stmt]:
    """All versions, by one thread, which tells the accelerator of them."""
    tile = emitter.shared[statement.barriers.buffer.name]
    made: list[Stmt] = [
        MbarrierInit(Region(tile.flat, (Const(number),), extent=(1,)), Const(statement.arrivals))
        for number in range(tile.flat.size)
    ]
    return [_by_one(emitter, *made, FenceMbarrierInit())]


def expect_copies(emitter: Emitter, statement: ExpectCopies) -> list[Stmt]:
    """One thread arrives for all."""
    barrier, before = _barrier(emitter, statement.barrier)
    return [_by_one(emitter, *before, MbarrierArrive(barrier, bytes=Const(statement.bytes)))]


def await_copies(emitter: Emitter, statement: AwaitCopies) -> list[Stmt]:
    """Each thread waits for itself."""
    barrier, before = _barrier(emitter, statement.barrier)
    parity = lower_expr(emitter, statement.parity, NOWHERE, before)
    return [*before, MbarrierWait(barrier, parity)]


def copy(emitter: Emitter, statement: Copy) -> list[Stmt]:
    """Each box of the tile, by one thread."""
    by, src, dst = statement.by, statement.src, statement.dst
    boxes, tile = boxes_of(statement, emitter.machine), emitter.shared[dst.buffer.name]
    if by is None or boxes is None or statement.barrier is None:
        raise LayoutError("a copy by {name} has a barrier, and a box", at=statement.place, name=NAME)
    found = cut(src, dst.buffer, tile.layout, boxes)
    if isinstance(found, str) or (found.box, found.swizzle) != (by.box, by.swizzle):
        why = (
            found if isinstance(found, str) else f"its layout gives box={found.box}, swizzle={found.swizzle}"
        )
        raise LayoutError(
            "{name} cannot fill {tile} in boxes of {box} with swizzle={swizzle}: {why}", at=statement.place,
            name=NAME, tile=dst.buffer.name, box=by.box, swizzle=by.swizzle, why=why,
        )  # fmt: skip
    barrier, before = _barrier(emitter, statement.barrier)
    start = [lower_expr(emitter, part, NOWHERE, before) for part in src.start]
    base = _version_start(emitter, dst, before)
    loads = [
        TmaLoad(
            Region(tile.flat, (base + first,), extent=(prod(found.box),)),
            Region(src.buffer, tuple(a + b for a, b in zip(start, where, strict=True)), extent=found.box),
            barrier,
            swizzle=found.swizzle,
        )
        for where, first in found.pieces
    ]
    return [_by_one(emitter, *before, *loads)]


def _version_start(emitter: Emitter, region: Region, before: list[Stmt]) -> Expr:
    """The element of the flat buffer where a region's version begins."""
    if region.version is None:
        return Const(0)
    tile = emitter.shared[region.buffer.name]
    version = lower_expr(emitter, region.version, NOWHERE, before)
    check_version(emitter, region.buffer.name, version, tile.flat.size // tile.layout.cosize)
    return version * tile.layout.cosize


def _barrier(emitter: Emitter, region: Region) -> tuple[Region, list[Stmt]]:
    before: list[Stmt] = []
    first = _version_start(emitter, region, before)
    return Region(emitter.shared[region.buffer.name].flat, (first,), extent=(1,)), before


def _by_one(emitter: Emitter, *body: Stmt) -> Stmt:
    """What one thread does for all."""
    return If(emitter.tid.compare("==", 0), tuple(body), ())


LOWERINGS = (
    Lowering(Copy, NAME, copy), Lowering(OpenBarriers, "", open_barriers),
    Lowering(ExpectCopies, "", expect_copies), Lowering(AwaitCopies, "", await_copies),
)  # fmt: skip
