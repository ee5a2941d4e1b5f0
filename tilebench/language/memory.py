"""Buffers of a block and of a thread: `T.alloc_shared`, `alloc_fragment`, `alloc_local`, `alloc_var`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import AllocStmt, Buffer, Expr, Word, attribute, decision, node, operand, result
from ..layout import Fragment, SharedLayout
from .stages import EVERY, TILES
from .tracing.builder import for_tiles, inside_kernel, shown
from .tracing.dtype_words import plain
from .tracing.operands import shape_of
from .tracing.stores import stored
from .tracing.values import BufferView, VarRef

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Number, Shape


@node
class AllocShared(AllocStmt):
    """A tile in memory that all threads of the block see.

    `swizzle` is the hint or the schedule's choice (None: the compiler decides), `layout` the
    decision, `versions` the stages of its ring, `offset` its first byte in the block's map.
    `of_fragment`: the kernel's text allocates a fragment (`lone_elements.py`).
    """

    word = "alloc_shared"
    stages = EVERY
    scope = "shared"
    buffer: Buffer = result()
    swizzle: bool | None = attribute(default=None, used="laid_out")
    layout: SharedLayout | None = decision("laid_out", default=None, early=True)
    versions: int = attribute(default=1)
    offset: int | None = attribute(default=None)
    of_fragment: bool = attribute(default=False)


@node
class AllocFragment(AllocStmt):
    """A tile in registers, spread over the threads by `layout`; `versions` of it where one is in flight."""

    word = "alloc_fragment"
    stages = TILES
    scope = "fragment"
    buffer: Buffer = result()
    layout: Fragment | None = decision("laid_out", default=None, early=True)
    versions: int = attribute(default=1)


@node
class AllocLocal(AllocStmt):
    """An array of each thread's own; in `threaded`, the registers of a fragment."""

    word = "alloc_local"
    stages = EVERY
    scope = "local"
    buffer: Buffer = result()


@node
class AllocVar(AllocStmt):
    """A scalar of each thread that can be assigned; `init` is its first value."""

    word = "alloc_var"
    stages = EVERY
    scope = "var"
    buffer: Buffer = result()
    init: Expr | None = operand(default=None)


WORDS = tuple((each.word, Word(each)) for each in (AllocShared, AllocFragment, AllocLocal, AllocVar))


# -- as a kernel writes them


def _allocate(
    word: str, cls: type[AllocStmt], shape: object, dtype: object, **operands: Expr | None
) -> BufferView:
    """The view of a new buffer, whose allocation (with `operands` as its fields) is part of the kernel."""
    builder = inside_kernel(word) if cls in (AllocLocal, AllocVar) else for_tiles(word)
    extents = () if cls is AllocVar else shape_of(shape, word)
    name = builder.allocation_name(word)
    buffer = Buffer(name, extents, plain(dtype), cls.scope)
    view = BufferView(buffer, builder.frames[-1], builder.place)
    allocation: Any = cls  # each class says its own fields
    builder.emit(allocation(buffer, place=view.place, **operands))
    return view


def alloc_shared(shape: Shape, dtype: DTypeLike, scope: str = "shared.dyn") -> BufferView:
    """A tile in shared memory: `shape` (constant extents) elements of `dtype`, seen by the whole block.

    `scope` is accepted for TileLang's sake; where the tile lies is the compiler's choice. Raises
    `LanguageError` for another scope, `ShapeError` for an extent that is no positive constant.
    """
    if scope not in ("shared", "shared.dyn"):
        raise LanguageError(
            "T.alloc_shared has no scope {scope!r}", scope=scope, hint="use 'shared' or 'shared.dyn'"
        )
    return _allocate("T.alloc_shared", AllocShared, shape, dtype)


def alloc_fragment(shape: Shape, dtype: DTypeLike, scope: str = "local.fragment") -> BufferView:
    """A tile in registers, spread over the threads of the block by the compiler.

    `shape` are constant extents. With TileLang's scope "local" it is an array of each thread's own,
    `T.alloc_local`. Raises as `T.alloc_shared` does.
    """
    if scope == "local":
        return alloc_local(shape, dtype)
    if scope != "local.fragment":
        raise LanguageError("T.alloc_fragment has no scope {scope!r}", scope=scope)
    return _allocate("T.alloc_fragment", AllocFragment, shape, dtype)


def alloc_local(shape: Shape, dtype: DTypeLike, scope: str = "local") -> BufferView:
    """An array of each thread's own: `shape` (constant extents) elements of `dtype`.

    Raises as `T.alloc_shared` does.
    """
    if scope != "local":
        raise LanguageError("T.alloc_local has no scope {scope!r}", scope=scope)
    return _allocate("T.alloc_local", AllocLocal, shape, dtype)


def alloc_var(dtype: DTypeLike, init: Number | None = None, scope: str = "local.var") -> VarRef:
    """A scalar of each thread that can be assigned: `x = T.alloc_var("int32", init=0)`, then `x = x + 1`.

    `init` is converted to `dtype`. Raises `LanguageError` for another scope.
    """
    if isinstance(init, str):  # TileLang also takes the scope as second argument
        init, scope = None, init
    if scope != "local.var":
        raise LanguageError("T.alloc_var has no scope {scope!r}", scope=scope)
    wanted = plain(dtype)
    first = None if init is None else stored(init, wanted)
    return VarRef(_allocate("T.alloc_var", AllocVar, (), dtype, init=first))


def swizzle(buffer: BufferView, enable: bool = True) -> None:
    """Ask for a swizzled layout of a shared tile, or a plain one; a hint, results do not change.

    Raises `LanguageError` for what `T.alloc_shared` of this kernel has not made.
    """
    builder = inside_kernel("T.swizzle")
    if not isinstance(buffer, BufferView) or buffer.scope != "shared":  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError(
            "T.swizzle takes a buffer made by T.alloc_shared", text=shown(buffer), found="{text}"
        )
    buffer.check_scope()
    for frame in builder.frames:
        for statement in frame.statements:
            if isinstance(statement, AllocShared) and statement.buffer is buffer.buffer:
                builder.replace(statement, statement.but(swizzle=enable))
                return
