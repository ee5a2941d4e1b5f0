"""An operation on tiles that a package adds to the language: `T.toy_flip(src, dst)`.

It is the accelerator's own idea, but every target runs it, because the package brings a lowering for each
road. What a built-in operation has is here in the same pieces: the class with its marks and its word, what
a kernel calls, the meaning in NumPy with its bound, and the code by road. An entry point of the group
`tilebench.operations` names `extension`; no pass and no target is touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilebench.errors import ShapeError
from tilebench.ir import (
    Arith,
    Const,
    Load,
    OpStmt,
    Region,
    Stmt,
    Store,
    Word,
    decision,
    node,
    reads,
    writes,
)
from tilebench.language.extensions import Extension
from tilebench.language.meanings.inexact import Inexact
from tilebench.language.meanings.tiles import TileMeaning
from tilebench.language.stages import TILES
from tilebench.language.tracing.builder import for_tiles
from tilebench.language.tracing.operands import whole_part
from tilebench.layout import Fragment


@node
class ToyFlip(OpStmt):
    """`T.toy_flip(src, dst)`: the lines of a shared tile, each from its end to its start.

    It has a mapping like a copy, so the passes share its elements out among threads.
    """

    word = "toy_flip"
    stages = TILES
    src: Region = reads()
    dst: Region = writes()
    map: Fragment | None = decision("laid_out", default=None)


def toy_flip(src: object, dst: object) -> None:
    """Turn the lines of a shared tile around: `dst[..., i] = src[..., n - 1 - i]`."""
    builder = for_tiles("T.toy_flip")
    source, target = whole_part(src, "T.toy_flip"), whole_part(dst, "T.toy_flip")
    same = source.view.shape == target.view.shape and source.view.buffer.dtype == target.view.buffer.dtype
    if not same or source.view.scope != "shared":
        raise ShapeError(
            "T.toy_flip takes a shared tile and one like it", src=source.described, dst=target.described,
            found="{src}; {dst}", also=[source.declared, target.declared],
        )  # fmt: skip
    builder.emit(ToyFlip(source.region, target.region, place=builder.place))


def _flipped(operation: ToyFlip, source: Any) -> Any:
    if isinstance(source, Inexact):
        return Inexact(np.flip(source.value, -1), np.flip(source.error, -1))
    return np.flip(source, -1)


def _meanings() -> dict[type, TileMeaning]:
    # What moves elements adds no error: both meanings are the same.
    return {ToyFlip: TileMeaning(_flipped, _flipped)}


def _threads(emitter: Any, operation: ToyFlip) -> list[Stmt]:
    """For targets with warps: an element loop like that of a copy."""
    from tilebench.passes.analysis.sites import box_of
    from tilebench.passes.threads.elements import ElementLoop, element_loops
    from tilebench.passes.threads.rows.copy import coordinates, element_of, mapping_of

    src, dst, box = operation.src, operation.dst, box_of(operation.dst)
    names = coordinates(emitter, box)
    index = list(element_of(src, names))
    index[-1] = Arith("-", (Const(src.buffer.extents[-1] - 1), index[-1]))
    body = Store(dst.buffer, element_of(dst, names), Load(src.buffer, tuple(index)))
    mapping = mapping_of(emitter, operation, operation.map, box, (src, dst))
    return element_loops(emitter, ElementLoop(operation, mapping, box, names, (body,), ours=True))


def _loops(work: Any, operation: ToyFlip) -> list[Stmt]:
    """For the CPU: serial loops over the tile in scratch memory."""
    from tilebench.targets.cpu.loops.vectors import nest

    src, dst = work.swapped(operation.src), work.swapped(operation.dst)
    extents = src.buffer.extents
    names = [work.fresh("ijkl"[k % 4]) for k in range(len(extents))]
    turned = (*names[:-1], Arith("-", (Const(extents[-1] - 1), names[-1])))
    store = Store(dst.buffer, tuple(names), Load(src.buffer, turned), place=operation.place)
    return list(nest(names, [Const(extent) for extent in extents], (store,)))


def _lowerings(road: str) -> tuple[Any, ...]:
    if road == "threads":
        from tilebench.passes.threads.lowering import Lowering

        return (Lowering(ToyFlip, "", _threads),)
    if road == "loops":
        from tilebench.targets.cpu.loops.lowering import Lowering as Row

        return (Row(ToyFlip, _loops),)
    return ()


extension = Extension(
    name="tilebench-toy",
    words=((ToyFlip.word, Word(ToyFlip)),),
    functions={"toy_flip": toy_flip},
    meanings=_meanings,
    lowerings=_lowerings,
)
