"""Buffers of a block and of a thread: `T.alloc_shared`, `T.alloc_fragment`, `T.alloc_local`, `T.alloc_var`."""

from __future__ import annotations

from ..ir import AllocStmt, Buffer, Expr, Word, attribute, node, operand, result
from ..layout import Fragment, SharedLayout


@node
class AllocShared(AllocStmt):
    """A tile in memory that all threads of the block see.

    `swizzle` is the hint or the schedule's choice (None: the compiler decides), `layout` the
    decision, `versions` the stages of its ring, `offset` its first byte in the block's map.
    """

    word = "alloc_shared"
    scope = "shared"
    buffer: Buffer = result()
    swizzle: bool | None = attribute(None)
    layout: SharedLayout | None = attribute(None)
    versions: int = attribute(1)
    offset: int | None = attribute(None)


@node
class AllocFragment(AllocStmt):
    """A tile in registers, spread over the threads by `layout`."""

    word = "alloc_fragment"
    scope = "fragment"
    buffer: Buffer = result()
    layout: Fragment | None = attribute(None)


@node
class AllocLocal(AllocStmt):
    """An array of each thread's own; in `threaded`, the registers of a fragment."""

    word = "alloc_local"
    scope = "local"
    buffer: Buffer = result()


@node
class AllocVar(AllocStmt):
    """A scalar of each thread that can be assigned; `init` is its first value."""

    word = "alloc_var"
    scope = "var"
    buffer: Buffer = result()
    init: Expr | None = operand(None)


WORDS = tuple((each.word, Word(each)) for each in (AllocShared, AllocFragment, AllocLocal, AllocVar))
