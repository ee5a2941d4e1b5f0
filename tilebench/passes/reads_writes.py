"""Which parameters a kernel reads and which it writes, in any stage of it."""

from __future__ import annotations

from ..ir import Function, Load, Region, Store, walk
from ..language.tile_meaning import MEANINGS


def reads_and_writes(function: Function) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the parameters whose values may be read, and of those written, in their order."""
    reads: set[str] = set()
    writes: set[str] = set()
    sides = (*((each, reads) for each in ("src", "a", "b", "c")), *((each, writes) for each in ("dst", "c")))
    for node in walk(function):
        if isinstance(node, Load):
            reads.add(node.buffer.name)
        elif isinstance(node, Store):
            writes.add(node.buffer.name)
        elif type(node) in MEANINGS:
            meaning = MEANINGS[type(node)]
            # Not cleared whatever the scalars say: the old result may be read.
            found = meaning.reads(node, *[False] * len(meaning.values(node)))
            reads.update(each.buffer.name for each in found)
            writes.add(meaning.writes(node).buffer.name)
        else:
            # Words of lower stages name their regions as those of the tile do.
            for field, into in sides:
                region = getattr(node, field, None)
                if isinstance(region, Region):
                    into.add(region.buffer.name)
    names = [each.name for each in function.params]
    return tuple(n for n in names if n in reads), tuple(n for n in names if n in writes)
