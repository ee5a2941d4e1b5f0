"""The numbers of threads and blocks: `T.get_thread_binding`, `T.get_lane_idx`, `T.get_block_binding`, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import Const, Expr, If, Stmt, Var, substitute
from ..ir.dtypes import boolean
from .launch import LoopSpec
from .threads.block import BlockThreads, block_of
from .tracing.builder import Builder, for_tiles, here, inside_kernel
from .tracing.expressions import Value
from .tracing.operands import positive, whole_number

if TYPE_CHECKING:
    from ..ir import LoopStmt

_WARP, _WARPS_OF_A_GROUP = 32, 4
_AXES = {"threadIdx.x": 0, "threadIdx.y": 1, "threadIdx.z": 2}


def is_thread_number(expr: Expr, builder: Builder) -> bool:
    """Whether an expression is the number of a thread itself, in the kernel that is being traced."""
    if not isinstance(expr, Var):
        return False
    return any(expr == number for block in builder.blocks for number in block.numbers.values())


def _axis(dim: int, word: str, block: BlockThreads) -> int:
    axis = whole_number(dim, word, "the dimension")
    if not 0 <= axis < len(block.extents):
        raise LanguageError(
            "{word} takes dimension {axis}, and the threads of this block have {count}", word=word, axis=axis,
            count=len(block.extents), expected="0 to {last}", last=len(block.extents) - 1,
            hint="T.Kernel(..., threads=(x, y)) numbers threads in two dimensions",
        )  # fmt: skip
    return axis


def get_thread_binding(dim: int = 0) -> Value:
    """The number of a thread in its block along dimension `dim` (0 is x), int32.

    After `tx = T.get_thread_binding()` each thread does `x[tx] = A[tx] * 2` for itself. A condition on it
    around operations on tiles chooses the threads that work on them together: `if tx < 32:`. Raises
    `LanguageError` for a dimension that `T.Kernel(threads=...)` has not, and inside T.Parallel.
    """
    builder = for_tiles("T.get_thread_binding")
    block = block_of(builder)
    return Value(block.number(builder, _axis(dim, "T.get_thread_binding", block)))


def get_thread_bindings() -> list[Value]:
    """The numbers of a thread along all dimensions of the block, x first; see `T.get_thread_binding`."""
    builder = for_tiles("T.get_thread_bindings")
    block = block_of(builder)
    return [Value(block.number(builder, axis)) for axis in range(len(block.extents))]


def get_thread_extent(dim: int = 0) -> int:
    """How many threads a block has along a dimension; 128 where `T.Kernel` does not say."""
    block = block_of(inside_kernel("T.get_thread_extent"))
    return block.extents[::-1][_axis(dim, "T.get_thread_extent", block)]


def get_thread_extents() -> list[int]:
    """How many threads a block has along each dimension, x first."""
    return list(block_of(inside_kernel("T.get_thread_extents")).extents[::-1])


def get_block_extents() -> list[Any]:
    """How many blocks the grid has along each dimension, x first: Python integers, or sizes of the call."""
    grid = inside_kernel("T.get_block_extents").grid
    return [count if isinstance(count, int) else Value(count) for count in grid]


def get_block_extent(dim: int = 0) -> Any:
    """How many blocks the grid has along dimension `dim`, 0 being x; `LanguageError` for another one."""
    extents = get_block_extents()
    axis = whole_number(dim, "T.get_block_extent", "the dimension")
    if not 0 <= axis < len(extents):
        raise LanguageError(
            "T.get_block_extent takes dimension {axis}, and the grid has {count}",
            axis=axis,
            count=len(extents),
        )
    return extents[axis]


def get_block_binding(dim: int = 0) -> Value:
    """The number of the block along dimension `dim` of the grid, 0 being x: what `T.Kernel` binds."""
    numbers = block_of(inside_kernel("T.get_block_binding")).block
    axis = whole_number(dim, "T.get_block_binding", "the dimension")
    if not 0 <= axis < len(numbers):
        raise LanguageError(
            "T.get_block_binding takes dimension {axis}, and the grid has {count}",
            axis=axis,
            count=len(numbers),
        )
    return Value(numbers[axis])


def get_block_bindings() -> list[Value]:
    """The numbers of the block along all dimensions of the grid, x first."""
    return [Value(number) for number in block_of(inside_kernel("T.get_block_bindings")).block]


def _linear(word: str) -> Expr:
    builder = for_tiles(word)
    return block_of(builder).linear(builder)


def _size(given: int | None, usual: int, word: str, what: str) -> int:
    return usual if given is None else positive(given, word, what)


def get_lane_idx(warp_size: int | None = None) -> Value:
    """The number of a thread in its warp, int32, 0 to 31 (or below `warp_size`)."""
    return Value(_linear("T.get_lane_idx") % _size(warp_size, _WARP, "T.get_lane_idx", "warp_size"))


def get_warp_idx(warp_size: int | None = None) -> Value:
    """The number of a thread's warp in its block, int32."""
    return Value(_linear("T.get_warp_idx") // _size(warp_size, _WARP, "T.get_warp_idx", "warp_size"))


def get_warp_idx_sync(warp_size: int | None = None) -> Value:
    """As `T.get_warp_idx`: all threads of a warp have the same here anyway."""
    return get_warp_idx(warp_size)


def get_warp_group_idx(warp_size: int | None = None, warps_per_group: int | None = None) -> Value:
    """The number of a thread's warp group in its block, int32; a group is 4 warps, or `warps_per_group`."""
    word = "T.get_warp_group_idx"
    size = _size(warp_size, _WARP, word, "warp_size") * _size(
        warps_per_group, _WARPS_OF_A_GROUP, word, "warps_per_group"
    )
    return Value(_linear(word) // size)


def thread_binding(start: int, stop: int | None = None, thread: str = "threadIdx.x") -> LoopSpec:
    """Each turn by the thread of its number: `for tx in T.thread_binding(128, thread="threadIdx.x"):`.

    The extent, `start` alone or `stop` behind a `start` of 0, is the number of threads along that dimension.
    Assigned to a name, `tx = T.thread_binding(0, 128, thread="threadIdx.x")`, it is the number of the thread.
    Raises `LanguageError` for another extent, and for numbers of blocks, which `T.Kernel` brings.
    """
    if isinstance(stop, str):
        stop, thread = None, stop
    builder = for_tiles("T.thread_binding")
    block = block_of(builder)
    if thread not in _AXES:
        raise LanguageError(
            "T.thread_binding has no {thread!r}", thread=thread, expected=", ".join(map(repr, _AXES)),
            hint="blocks are numbered by `with T.Kernel(...) as bx:`",
        )  # fmt: skip
    axis = _axis(_AXES[thread], "T.thread_binding", block)
    first = 0 if stop is None else whole_number(start, "T.thread_binding", "start")
    count = positive(start if stop is None else stop, "T.thread_binding", "the extent")
    if first:
        raise LanguageError("T.thread_binding counts from 0", found=f"{first}")
    if count != block.extents[::-1][axis]:
        raise LanguageError(
            "T.thread_binding is over {count} threads, and the block has {there} along {thread}", count=count,
            there=block.extents[::-1][axis], thread=thread, expected="all of them",
            hint="T.Kernel(..., threads=...) says how many there are; guard the body for fewer",
        )  # fmt: skip
    number = block.number(builder, axis)

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        inside = tuple(substitute(each, {vars[0].name: number}) for each in body)
        # A branch that is always taken: the splitting of runs takes it away.
        return If(Const(True, type=boolean), inside, (), place=here())  # type: ignore[return-value]

    return LoopSpec("T.thread_binding", "serial", 1, build, number=number)


def shuffle_elect(thread_extent: int) -> Value:
    """Whether a thread is the first of its `thread_extent` threads, or of the block where that is 0.

    Raises `LanguageError` for a group that is no whole warps.
    """
    size = whole_number(thread_extent, "T.shuffle_elect", "thread_extent")
    if size < 0 or size % _WARP:
        raise LanguageError(
            "T.shuffle_elect chooses one of {size} threads", size=size,
            expected="a multiple of 32, or 0 for one of the block",
        )  # fmt: skip
    number = _linear("T.shuffle_elect")
    return Value((number % size if size else number).compare("==", 0))


__all__ = [
    "get_block_binding", "get_block_bindings", "get_block_extent", "get_block_extents",
    "get_lane_idx", "get_thread_binding", "get_thread_bindings", "get_thread_extent", "get_thread_extents",
    "get_warp_group_idx", "get_warp_idx", "get_warp_idx_sync", "shuffle_elect", "thread_binding",
]  # fmt: skip
