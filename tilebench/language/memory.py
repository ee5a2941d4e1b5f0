"""Memory: `T.alloc_shared`, `alloc_fragment`, `alloc_local`, `alloc_var`, and `alloc_global` of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import AllocStmt, Buffer, Expr, Word, attribute, decision, node, operand, result
from ..layout import Fragment, SharedLayout
from .dynamic import global_shape
from .stages import EVERY, TILES
from .tracing.builder import for_tiles, in_trace, inside_kernel, shown
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
    `of_fragment`: the kernel's text allocates a fragment (`closing/lone_elements.py`).
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
    """A tile in registers, spread over the threads by `layout`; `versions` of it where one is in flight.

    With `of_threads` the first dimensions are those of the block's threads, and each has its own row.
    """

    word = "alloc_fragment"
    stages = TILES
    scope = "fragment"
    buffer: Buffer = result()
    layout: Fragment | None = decision("laid_out", default=None, early=True)
    versions: int = attribute(default=1)
    of_threads: bool = attribute(default=False)


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


@node
class AllocGlobal(AllocStmt):
    """An array of device memory that lives as long as a call, seen by all its launches; no block's statement.

    Passes and targets meet it as a parameter that nobody passes (`passes/analysis/launches.py`).
    """

    word = "alloc_global"
    stages = EVERY
    scope = "global"
    buffer: Buffer = result()


CLASSES = (AllocShared, AllocFragment, AllocLocal, AllocVar, AllocGlobal)
WORDS = tuple((each.word, Word(each)) for each in CLASSES)


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

    `shape` are constant extents. TileLang's scope is taken at its word: "local" is an array of each thread's
    own, `T.alloc_local`, and "shared" a shared tile. Raises as `T.alloc_shared` does.
    """
    if scope == "local":
        return alloc_local(shape, dtype)
    if scope in ("shared", "shared.dyn"):
        return alloc_shared(shape, dtype)
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

    `init` is converted to `dtype`; without one the scalar starts from zero. Raises `LanguageError` for
    another scope.
    """
    if isinstance(init, str):  # TileLang also takes the scope as second argument
        init, scope = None, init
    if scope != "local.var":
        raise LanguageError("T.alloc_var has no scope {scope!r}", scope=scope)
    wanted = plain(dtype)
    first = stored(0 if init is None else init, wanted)
    return VarRef(_allocate("T.alloc_var", AllocVar, (), dtype, init=first))


def alloc_global(shape: Shape, dtype: DTypeLike, scope: str = "global") -> BufferView:
    """An array of device memory that lives as long as the call: `W = T.alloc_global((S, M, N), "float32")`.

    It stands before or between the `with T.Kernel(...)` of a function, which all see it: one launch
    writes what a later one reads. Extents are numbers or made of sizes of the arrays; its elements are
    undefined until they are written. Raises `LanguageError` inside `with T.Kernel` or for another scope,
    `ShapeError` for an extent that is no size.
    """
    builder = in_trace("T.alloc_global")
    if scope != "global":
        raise LanguageError("T.alloc_global has no scope {scope!r}", scope=scope)
    if len(builder.frames) > 1:
        raise LanguageError(
            "T.alloc_global is memory of the whole call, and stands before `with T.Kernel`",
            hint="T.alloc_shared and T.alloc_fragment make the tiles of a block",
        )
    name = builder.allocation_name("T.alloc_global")
    buffer = Buffer(name, global_shape(shape, "T.alloc_global"), plain(dtype), "global")
    builder.frames[0].statements.append(AllocGlobal(buffer, place=builder.place))
    return BufferView(buffer, None, builder.place)


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
