"""What threads do with each other: barriers, and values that the threads of a warp exchange and vote on.

An exchange is a row of a tile for each thread, read at another thread's row when all have written: what
warps do with a shuffle is the same on a target without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import LanguageError
from ..ir import Buffer, Call, Cast, Const, Expr, Let, Load, Store, Var, int32, whole
from ..ir.dtypes import uint32, uint64
from .lowered.threads import NamedBarrierArrive, SyncThreads, SyncWarp
from .memory import AllocFragment
from .threads.block import BlockThreads, block_of
from .threads.over_block import over_block
from .tracing.arithmetic import arithmetic, comparison, truth
from .tracing.builder import Builder, for_tiles
from .tracing.expressions import Value
from .tracing.operands import positive, whole_number
from .tracing.promote import computable, convert, expr_of
from .votes import WarpVote

if TYPE_CHECKING:
    from .tracing.taken import Condition, Number

_WARP = 32
_ALL = 0xFFFFFFFF


# -- barriers


def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> None:
    """All threads of the block wait for each other, and see what the others have written.

    Barriers that the kernel's accesses need are there anyway; this one is kept as it is written.
    `T.sync_threads(3, 256)` in groups of threads (`with T.ws(0):`) is the barrier of that number, which
    opens when 256 threads have come to it, here or in other groups. In code of single threads, under a
    condition on their numbers, `if tx < 64: T.sync_threads(3, 64)` is one of those threads, and all of the
    block wait with them. Raises `LanguageError` under another condition that differs from thread to thread.
    """
    builder = for_tiles("T.sync_threads")
    if (barrier_id is None) != (arrive_count is None):
        raise LanguageError(
            "a barrier of some threads has a number and a count", expected="T.sync_threads(3, 64)"
        )
    count = 0 if arrive_count is None else positive(arrive_count, "T.sync_threads", "the count")
    number = 0 if barrier_id is None else whole_number(barrier_id, "T.sync_threads", "the number")
    why = "written in the kernel"
    builder.emit(SyncThreads(why=why, barrier=number, threads=count, place=builder.place))
    if count and not block_of(builder).numbers:
        # A block that asks for no number has its barriers as they are: it is one of all.
        block_of(builder).coordinates(builder)


def named_barrier_arrive(barrier_id: int, thread_count: int) -> None:
    """Be counted at the barrier of a number, and go on at once: `T.named_barrier_arrive(1, 256)`.

    Others wait there, by `T.sync_threads(1, 256)`, until `thread_count` threads have come in all.
    """
    builder = for_tiles("T.named_barrier_arrive")
    count = positive(thread_count, "T.named_barrier_arrive", "the count")
    number = whole_number(barrier_id, "T.named_barrier_arrive", "the number")
    builder.emit(NamedBarrierArrive(number, count, place=builder.place))


def sync_warp(mask: int | None = None) -> None:
    """The threads of each warp wait for each other, and see what the others of the warp have written."""
    _full(mask, "T.sync_warp")
    builder = for_tiles("T.sync_warp")
    builder.emit(SyncWarp(place=builder.place))


# -- exchanges of a warp


def _full(mask: int | None, word: str) -> None:
    if mask is not None and whole_number(mask, word, "the mask") & _ALL != _ALL:
        raise LanguageError(
            "{word} takes part of a warp's threads by its mask", word=word,
            expected="the whole warp: 0xFFFFFFFF",
            hint="give the others a value that changes nothing, with T.if_then_else",
        )  # fmt: skip


def _opened(word: str) -> tuple[Builder, BlockThreads]:
    builder = for_tiles(word)
    block = block_of(builder)
    if block.count % _WARP:
        raise LanguageError(
            "{word} is done by whole warps of {warp} threads, and this block has {count}", word=word,
            warp=_WARP, count=block.count, expected="threads= a multiple of {warp}",
        )  # fmt: skip
    return builder, block


def _told(builder: Builder, block: BlockThreads, value: Expr) -> Buffer:
    """The value of each thread where the others can read it."""
    like = Buffer(builder.unique("told"), (), value.dtype, "var")
    allocation: AllocFragment = block.keep(like.name, like, builder.place)
    builder.emit(allocation)
    builder.emit(Store(allocation.buffer, block.coordinates(builder), value, place=builder.place))
    return allocation.buffer


def _named(builder: Builder, name: str, value: Expr) -> Expr:
    var = Var(builder.unique(name), type=value.dtype, place=builder.place)
    builder.emit(Let(var, value, place=builder.place))
    return var


def _asked(builder: Builder, block: BlockThreads, told: Buffer, lane: Expr) -> Expr:
    """What the thread of the same warp with a lane's number has told."""
    number = block.linear(builder)
    at = block.coordinates_of(number - number % _WARP + lane)
    return _named(builder, "heard", Load(told, at, place=builder.place))


def _scalar(value: Number | Condition, word: str) -> Expr:
    return computable(expr_of(value))


def _select(condition: Expr, a: Expr, b: Expr) -> Expr:
    return Call("if_then_else", (condition, a, b), type=a.dtype)


def _segment(width: int, word: str) -> int:
    size = whole_number(width, word, "the width")
    if size not in (1, 2, 4, 8, 16, 32):
        raise LanguageError("{word} has width {size}", word=word, size=size, expected="1, 2, 4, 8, 16 or 32")
    return size


def _shuffled(word: str, value: Number, by: Number, width: int, mask: int | None, how: str) -> Value:
    builder, block = _opened(word)
    _full(mask, word)
    size = _segment(width, word)
    lane = block.linear(builder) % _WARP
    first = lane - lane % size
    step = convert(expr_of(by), int32)
    told = _told(builder, block, _scalar(value, word))
    if how == "sync":
        source = first + arithmetic("%", step, size)
    else:
        source = arithmetic({"xor": "^", "up": "-", "down": "+"}[how], lane, step)
        reached = source.compare(">=", first) if how == "up" else source.compare("<", first + size)
        source = _select(reached, source, lane)
    return Value(_asked(builder, block, told, source))


def shfl_sync(value: Number, src_lane: Number, width: int = 32, mask: int | None = None) -> Value:
    """The value of the thread with number `src_lane` among each `width` threads that follow each other.

    `value` is of any dtype of 8 bits or more. All threads of a warp take part: raises `LanguageError` under a
    condition that differs among them, for a `mask` of some, and for a block that is no whole warps.
    """
    return _shuffled("T.shfl_sync", value, src_lane, width, mask, "sync")


def shfl_xor(value: Number, delta: Number, width: int = 32, mask: int | None = None) -> Value:
    """The value of the thread whose lane is this one's XOR `delta`; see `T.shfl_sync`.

    One behind the end of its `width` threads gets its own.
    """
    return _shuffled("T.shfl_xor", value, delta, width, mask, "xor")


def shfl_up(value: Number, delta: Number, width: int = 32, mask: int | None = None) -> Value:
    """The value of the thread `delta` lanes below; the first ones of each `width` get their own."""
    return _shuffled("T.shfl_up", value, delta, width, mask, "up")


def shfl_down(value: Number, delta: Number, width: int = 32, mask: int | None = None) -> Value:
    """The value of the thread `delta` lanes above; the last ones of each `width` get their own."""
    return _shuffled("T.shfl_down", value, delta, width, mask, "down")


def tvm_warp_shuffle(mask: int, value: Number, lane: Number, width: int = 32, warp_size: int = 32) -> Value:
    """`T.shfl_sync(value, lane, width)` in the words of TVM: all threads of a warp take part, as there."""
    return _shuffled("T.tvm_warp_shuffle", value, lane, width, mask, "sync")


# -- what a warp makes of its values


def _combined(how: str, a: Expr, b: Expr) -> Expr:
    return Call(how, (a, b), type=a.dtype) if how in ("max", "min") else arithmetic(how, Value(a), Value(b))


def _over_warp(word: str, value: Expr, how: str) -> Expr:
    """All values of a warp combined, in every thread: five exchanges, in the same order everywhere."""
    builder, block = _opened(word)
    lane = block.linear(builder) % _WARP
    dtype = value.dtype
    for bit in range(5):
        told = _told(builder, block, value)
        other = _asked(builder, block, told, arithmetic("^", Value(lane), 1 << bit))
        value = convert(_combined(how, Load(told, block.coordinates(builder)), other), dtype)
    return _named(builder, "of_warp", value)


def warp_reduce_sum(value: Number) -> Value:
    """The sum of the warp's values, in each of its threads; see `T.shfl_sync` for who takes part.

    Formed in the dtype of `value`, lanes apart by 1, 2, 4, 8 and 16 in turn.
    """
    return Value(_over_warp("T.warp_reduce_sum", _scalar(value, "T.warp_reduce_sum"), "+"))


def warp_reduce_max(value: Number) -> Value:
    """The greatest of the warp's values, in each of its threads; a NaN loses."""
    return Value(_over_warp("T.warp_reduce_max", _scalar(value, "T.warp_reduce_max"), "max"))


def warp_reduce_min(value: Number) -> Value:
    """The least of the warp's values, in each of its threads; a NaN loses."""
    return Value(_over_warp("T.warp_reduce_min", _scalar(value, "T.warp_reduce_min"), "min"))


def warp_reduce_bitand(value: Number) -> Value:
    """The bits that all of the warp's values have, in each of its threads. Integers only."""
    return Value(_over_warp("T.warp_reduce_bitand", _scalar(value, "T.warp_reduce_bitand"), "&"))


def warp_reduce_bitor(value: Number) -> Value:
    """The bits that any of the warp's values has, in each of its threads. Integers only."""
    return Value(_over_warp("T.warp_reduce_bitor", _scalar(value, "T.warp_reduce_bitor"), "|"))


# -- votes


def _vote(word: str, predicate: Condition, mask: int | None) -> Expr:
    """The lanes whose predicate holds, one bit each, uint32."""
    _full(mask, word)
    mine = _select(truth(expr_of(predicate)), Const(1), Const(0))
    return _of_lanes(word, "ballot", mine)


def _of_lanes(word: str, kind: str, mine: Expr) -> Expr:
    """A bit for each lane of the warp, by what all of them have: one step of the warp."""
    builder, block = _opened(word)
    told = _told(builder, block, mine)
    like = Buffer(builder.unique(kind), (), uint32, "var")
    allocation: AllocFragment = block.keep(like.name, like, builder.place)
    builder.emit(allocation)
    builder.emit(WarpVote(kind, whole(told), whole(allocation.buffer), place=builder.place))
    return _named(builder, "lanes", Load(allocation.buffer, block.coordinates(builder)))


def any_sync(predicate: Condition, mask: int | None = None) -> Value:
    """1 where the predicate holds in any thread of the warp, else 0 (int32); see `T.shfl_sync`."""
    bits = _vote("T.any_sync", predicate, mask)
    return Value(Cast(comparison("!=", bits, 0), type=int32))


def all_sync(predicate: Condition, mask: int | None = None) -> Value:
    """1 where the predicate holds in all threads of the warp, else 0 (int32); see `T.shfl_sync`."""
    bits = _vote("T.all_sync", predicate, mask)
    return Value(Cast(comparison("==", bits, _ALL), type=int32))


def ballot_sync(predicate: Condition, mask: int | None = None) -> Value:
    """A bit for each lane of the warp, set where the predicate holds there, uint64; see `T.shfl_sync`."""
    return Value(convert(_vote("T.ballot_sync", predicate, mask), uint64))


def ballot(predicate: Condition) -> Value:
    """`T.ballot_sync` of the whole warp."""
    return ballot_sync(predicate)


def activemask() -> Value:
    """The lanes of the warp that are here, a bit each, uint64: all, since no exchange works with fewer."""
    _opened("T.activemask")
    return Value(Const(_ALL, type=uint64))


def _matched(word: str, value: Number, mask: int | None) -> Expr:
    """The lanes that have the same value, one bit each, uint32."""
    _full(mask, word)
    return _of_lanes(word, "match", _scalar(value, word))


def match_any_sync(value: Number, mask: int | None = None) -> Value:
    """The lanes of the warp that have the same value as this one, a bit each, uint32; see `T.shfl_sync`."""
    return Value(_matched("T.match_any_sync", value, mask))


def match_all_sync(value: Number, mask: int | None = None) -> Value:
    """All lanes (uint32) where every thread of the warp has the same value, else 0; see `T.shfl_sync`."""
    bits = _matched("T.match_all_sync", value, mask)
    everyone = Const(_ALL, type=uint32)
    return Value(_select(comparison("==", bits, _ALL), everyone, Const(0, type=uint32)))


# -- barriers with a result


def _of_block(word: str, kind: str, predicate: Condition) -> Value:
    """A reduction of every thread's predicate, that all threads have after a barrier."""
    builder = for_tiles(word)
    block = block_of(builder)
    place = builder.place
    found = Buffer(builder.unique("voted"), block.extents, int32, "fragment")
    value = _select(truth(expr_of(predicate)), Const(1), Const(0))
    builder.emit(AllocFragment(found, place=place))
    builder.emit(Store(found, block.coordinates(builder), value, place=place))
    reductions, told = over_block(found, kind, builder.unique, place)
    for statement in reductions:
        builder.emit(statement)
    return Value(_named(builder, "of_block", Load(told, (Const(0),), place=place)))


def syncthreads_count(predicate: Condition) -> Value:
    """In how many threads of the block the predicate holds, int32, the same in all; a barrier."""
    return _of_block("T.syncthreads_count", "sum", predicate)


def syncthreads_and(predicate: Condition) -> Value:
    """1 where the predicate holds in all threads of the block, else 0, int32; a barrier of the block."""
    return _of_block("T.syncthreads_and", "min", predicate)


def syncthreads_or(predicate: Condition) -> Value:
    """1 where the predicate holds in any thread of the block, else 0, int32; a barrier of the block."""
    return _of_block("T.syncthreads_or", "max", predicate)


__all__ = [
    "activemask",
    "all_sync",
    "any_sync",
    "ballot",
    "ballot_sync",
    "match_all_sync",
    "match_any_sync",
    "named_barrier_arrive",
    "shfl_down",
    "shfl_sync",
    "shfl_up",
    "shfl_xor",
    "sync_threads",
    "sync_warp",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "tvm_warp_shuffle",
    "warp_reduce_bitand",
    "warp_reduce_bitor",
    "warp_reduce_max",
    "warp_reduce_min",
    "warp_reduce_sum",
]
