"""What swizzles that move single elements cost and save: the kernel is laid out without them and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import TileError
from ...ir import rewrite, walk
from ...ir.printer import print_function
from ...language.memory import AllocShared
from ...profile.diagnosis.case import SwizzleTrade

if TYPE_CHECKING:
    from ...pictures.collect import AccessPicture
    from ..kernel import Kernel

# What a thread moves at once where nothing keeps it from it; bytes.
VECTOR = 16
# Where a kernel's own layouts stand, and no other choice has been made.
BEFORE = "bounded"


def swizzle_trades(kernel: Kernel) -> tuple[SwizzleTrade, ...]:
    """The tiles whose own swizzles break vector accesses, with both ways counted over all their accesses.

    Only swizzles that move less than 16 bytes can; without one nothing is compiled for it.
    """
    function = kernel.compilation.functions.get(BEFORE)
    own = [node for node in walk(function) if isinstance(node, AllocShared)] if function is not None else []
    fine = {node.buffer.name for node in own if _moves_less(node, VECTOR)}
    if function is None or not fine:
        return ()

    def plain(node: object) -> object:
        if isinstance(node, AllocShared) and node.buffer.name in fine and node.layout is not None:
            return node.but(layout=type(node.layout)(node.layout.shape, node.layout.strides))
        return node

    from ..continued import continued

    try:
        other = continued(kernel, BEFORE, print_function(rewrite(function, plain)).text)
        both = kernel.accesses(), other.accesses()
    except TileError:
        return ()
    return tuple(trade for name in sorted(fine) if (trade := _trade(name, *both)) is not None)


def _trade(
    name: str, with_it: tuple[AccessPicture, ...], without: tuple[AccessPicture, ...]
) -> SwizzleTrade | None:
    mine = [each.access for each in with_it if each.access.buffer == name]
    plain = [each.access for each in without if each.access.buffer == name]
    widths = {(each.line, each.written): each.width for each in plain}
    broken = [each for each in mine if widths.get((each.line, each.written), 0) > each.width]
    if not broken:
        return None
    worst = max(broken, key=lambda each: each.instructions)
    (issued, passes), (plain_issued, plain_passes) = (
        (sum(each.instructions for each in some), sum(each.passes for each in some)) for some in (mine, plain)
    )
    width = widths[worst.line, worst.written]
    return SwizzleTrade(name, worst.line, worst.width, issued, passes, width, plain_issued, plain_passes)


def _moves_less(node: AllocShared, size: int) -> bool:
    """Whether a tile's swizzle takes elements apart that lie within so many bytes."""
    swizzle = node.layout.swizzle if node.layout is not None else None
    return swizzle is not None and (1 << swizzle.base) * node.buffer.dtype.bits < 8 * size
