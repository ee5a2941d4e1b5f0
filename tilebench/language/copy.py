"""Moving tiles: `T.copy`, `T.fill`, `T.clear`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LanguageError, ShapeError
from ..ir import Expr, OpStmt, Region, Word, addresses, attribute, decision, node, operand, reads, writes
from ..layout import Fragment
from .layouts import loop_map
from .lowered.decisions import Instr, Stage
from .moving_parts import copy_moving, fill_moving
from .notes import note_unused
from .stages import TILES
from .tracing.builder import for_tiles, holds_nothing, inside_kernel, shown
from .tracing.expressions import Value
from .tracing.operands import TileOperand, on_chip_reach, part_of, positive
from .tracing.stores import assign_var, store_element, stored
from .tracing.values import ElementRef, MovingRef, VarRef

if TYPE_CHECKING:
    from .tracing.taken import Number, Tile

# One entry a dimension of a region: the extent that indices must stay under, None where every
# access is proved inside. A whole tuple of None is stored as None.
Within = tuple[int | Expr | None, ...] | None


# How long caches keep what is moved, beside what else they hold.
EVICTIONS = ("evict_normal", "evict_first", "evict_last")


@node
class Copy(OpStmt):
    """`T.copy(src, dst)`: `dst[...] = cast(src[...])` over the box; synchronous.

    Reads outside a global buffer give zero, writes outside are skipped. From `bounded` on both
    regions have extents and `src_within`/`dst_within` say which dimensions need a test; from
    `laid_out` on `by` is the instruction and `map` which thread moves what.
    An asynchronous instruction completes when its `token` has been waited for, or the `barrier` that counts
    its bytes.
    `coalesced_width` is the user's cap of the vector width, in elements; one that is `sync` goes by none.
    `for_blocks` are the blocks of a cluster that all read this same box, and `eviction` says how long caches
    are to keep what a copy in boxes moves.
    """

    word = "copy"
    stages = TILES
    src: Region = reads()
    dst: Region = writes()
    coalesced_width: int | None = attribute(default=None)
    src_within: Within = attribute(default=None)
    dst_within: Within = attribute(default=None)
    at_stage: Stage | None = attribute(default=None)
    by: Instr | None = decision("laid_out", default=None, early=True)
    map: Fragment | None = decision("laid_out", default=None, early=True)
    token: str = attribute(default="")
    barrier: Region | None = addresses(default=None)
    sync: bool = attribute(default=False, used="bounded")
    by_threads: bool = attribute(default=False, used="laid_out")
    for_blocks: int = attribute(default=0, used="laid_out")
    eviction: str | None = attribute(default=None)

    def settled(self) -> frozenset[str]:
        # What goes in boxes is shared out among no threads.
        return frozenset({"map"} if self.by is not None and self.by.box else ())


@node
class Fill(OpStmt):
    """`T.fill(dst, value)`: every element of the box; `T.clear(x)` is `T.fill(x, 0)`.

    `map` says which thread does what, but for a whole fragment, of which each thread fills what it has.
    """

    word = "fill"
    stages = TILES
    dst: Region = writes()
    value: Expr = operand()
    dst_within: Within = attribute(default=None)
    map: Fragment | None = decision("laid_out", default=None)

    def settled(self) -> frozenset[str]:
        whole = self.dst.is_whole and self.dst.buffer.scope == "fragment"
        return frozenset({"map"} if whole else ())


WORDS = tuple((each.word, Word(each)) for each in (Copy, Fill))


# -- as a kernel writes them


def copy(
    src: Tile | Value,
    dst: Tile,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """Move a tile: `T.copy(A[by * 128, ko * 32], A_s)`; synchronous, converting the dtype where it differs.

    Each side is a buffer, a region `A[i : i + 8, :]` or a head address `A[i, j]` that takes the other
    side's extents, aligned to the right. Extents that are not 1 must agree one by one, those that only the
    running kernel knows as well; nothing is broadcast. Outside a buffer reads give zero and writes are
    skipped. `coalesced_width` caps
    the vector width, in elements, and `loop_layout` (a `T.Fragment` over the extents that are not 1) says
    which thread moves what. `prefer_instruction` "sync" has a copy wait for what it moves; "cp_async" or
    `disable_tma` has threads move it, also where it would go in boxes. `eviction_policy` says of a copy in
    boxes how long caches are to keep it. The other options choose nothing here, which a remark tells. Raises
    `ShapeError` where the sides do not match, `LanguageError` for a policy or instruction that there is not.
    """
    _check_choice("eviction_policy", eviction_policy, EVICTIONS)
    _check_choice("prefer_instruction", prefer_instruction, ("tma", "cp_async", "sync"))
    if isinstance(dst, ElementRef) and isinstance(src, Value):
        for_tiles("T.copy") if isinstance(src, ElementRef) else inside_kernel("T.copy")
        store_element(dst, src)
        return
    builder = for_tiles("T.copy")
    if isinstance(src, MovingRef) or isinstance(dst, MovingRef):
        copy_moving(builder, src, dst, coalesced_width)
        return
    source, target = part_of(src, "T.copy"), part_of(dst, "T.copy")
    _match(source, target)
    width = None if coalesced_width is None else positive(coalesced_width, "T.copy", "coalesced_width")
    asked = prefer_instruction if prefer_instruction == "tma" else None
    note_unused("T.copy", prefer_instruction=asked, annotations=annotations)
    if holds_nothing(source.region):
        extent = target.extent or (source.extent or ())[-target.view.ndim :]
        lead = (1,) * (target.view.ndim - len(extent))
        region = target.region.but(extent=(*lead, *extent))
        builder.emit(Fill(region, stored(0, target.view.buffer.dtype), place=builder.place))
        return
    layout = loop_map(loop_layout, None, "T.copy")
    sync, by_threads = prefer_instruction == "sync", disable_tma or prefer_instruction == "cp_async"
    hints: dict[str, Any] = {"coalesced_width": width, "map": layout, "sync": sync, "by_threads": by_threads}
    builder.emit(Copy(source.region, target.region, **hints, eviction=eviction_policy, place=builder.place))


def _check_choice(name: str, given: object, known: tuple[str, ...]) -> None:
    if given is not None and given not in known:
        raise LanguageError(
            "T.copy has no {name} {text}", name=name, text=shown(given), known=", ".join(map(repr, known)),
            expected="one of {known}",
        )  # fmt: skip


def _match(src: TileOperand, dst: TileOperand) -> None:
    a, b = src.extent, dst.extent
    for part, own, other in ((src, a, b), (dst, b, a)):
        if own is None and other is not None:
            on_chip_reach(part, other, "T.copy")
    if a is None or b is None:
        head, extent = (src, b) if a is None else (dst, a)
        extra = len(extent or ()) - head.view.ndim
        if extra <= 0 or all(each == 1 for each in (extent or ())[:extra]):
            return
    elif [each for each in a if each != 1] == [each for each in b if each != 1]:
        return
    raise ShapeError(
        "the two sides of this copy have different extents",
        src=src.described,
        dst=dst.described,
        expected="the same extents on both sides, apart from extents of 1",
        found="{src}; {dst}",
        also=[src.declared, dst.declared],
    )


def fill(buffer: Tile | VarRef, value: Number) -> None:
    """Set every element of a buffer or region to a value, converted to its dtype; outside of it nothing."""
    _fill("T.fill", buffer, value)


def _fill(word: str, dst: Tile | VarRef, value: Number) -> None:
    if isinstance(dst, VarRef):
        assign_var(dst, value)
        return
    builder = for_tiles(word)
    if isinstance(dst, MovingRef):
        fill_moving(builder, word, dst, value)
        return
    part = part_of(dst, word)
    region = part.region if part.extent is not None else part.region.but(extent=(1,) * part.view.ndim)
    builder.emit(Fill(region, stored(value, part.view.buffer.dtype), place=builder.place))


def clear(buffer: Tile | VarRef) -> None:
    """Set every element of a buffer or region to zero."""
    _fill("T.clear", buffer, 0)
