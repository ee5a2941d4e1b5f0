"""Words of one thread, which `threaded` is written in: vector moves, barriers, exchanges."""

from __future__ import annotations

from ...ir import OpStmt, Region, ScalarFunction, Word, attribute, int32, node, reads, same_as_first, writes
from ...ir.dtypes import DType, uint32
from ..stages import EVERY, THREAD


@node
class VectorLoad(OpStmt):
    """`T.vector_load(registers[i : i + v], memory[j : j + v])`: one access of v elements.

    The last dimension has the extent, all others 1; the address is a multiple of the access.
    """

    word = "vector_load"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()


@node
class VectorStore(OpStmt):
    """`T.vector_store(memory[j : j + v], registers[i : i + v])`: one access of v elements."""

    word = "vector_store"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()


@node
class VectorAdd(OpStmt):
    """`T.vector_add(memory[j : j + v], registers[i : i + v])`: adds v elements, each as one step, in one
    access."""

    word = "vector_add"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()


@node
class LoadPieces(OpStmt):
    """`T.load_pieces(pieces[i : i + 2 * v], memory[j : j + v])`: v elements from any address, and more.

    Two aligned accesses are read around them: the pieces of memory of that size in which the first and the
    last element lie, which have to be inside of the buffer. `T.from_pieces` finds the elements in them.
    """

    word = "load_pieces"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()


@node
class FromPieces(OpStmt):
    """`T.from_pieces(registers[i : i + v], pieces[k : k + 2 * v], memory[j : j + v])`: a load's elements.

    Of the memory only the address counts. Apart from the load, since it waits for it.
    """

    word = "from_pieces"
    stages = THREAD
    dst: Region = writes()
    pieces: Region = reads()
    src: Region = reads()


@node
class MoveBits(OpStmt):
    """`T.move_bits(words[i : i + n], registers[j : j + m])`: the bytes of registers as another dtype's.

    Both are a thread's own and take the same bytes; the first element has the low bits of a word.
    """

    word = "move_bits"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()


@node
class SyncThreads(OpStmt):
    """`T.sync_threads()`: every thread of the block waits; shared memory is seen by all after it.

    `T.sync_threads(barrier=1, threads=64)` is a barrier of its own number on which 64 threads meet.
    """

    word = "sync_threads"
    stages = EVERY
    why: str = attribute(default="")
    barrier: int = attribute(default=0)
    threads: int = attribute(default=0)


@node
class NamedBarrierArrive(OpStmt):
    """`T.named_barrier_arrive(barrier=1, threads=64)`: counted at that barrier, and on at once.

    Those who wait there by `T.sync_threads` see what these threads have done.
    """

    word = "named_barrier_arrive"
    stages = EVERY
    barrier: int = attribute()
    threads: int = attribute()


@node
class SyncWarp(OpStmt):
    """`T.sync_warp()`: the same for the threads of one warp."""

    word = "sync_warp"
    stages = EVERY


def _int32(_: tuple[DType, ...]) -> DType:
    return int32


def _uint32(_: tuple[DType, ...]) -> DType:
    return uint32


# Exchanges take (value, distance) and give the value of the lane at that XOR, or that many below; `shfl`
# takes (value, lane) and gives that lane's. `vote_ballot` has a bit for each lane of the warp whose value is
# not 0, `vote_match` for each that has the same.
FUNCTIONS = (
    ScalarFunction("thread_id", 0, _int32),
    ScalarFunction("shfl_xor", 2, same_as_first),
    ScalarFunction("shfl_down", 2, same_as_first),
    ScalarFunction("shfl", 2, same_as_first),
    ScalarFunction("vote_ballot", 1, _uint32),
    ScalarFunction("vote_match", 1, _uint32),
)
_CLASSES = (
    VectorLoad, VectorStore, VectorAdd, LoadPieces, FromPieces, MoveBits, SyncThreads, NamedBarrierArrive,
    SyncWarp,
)  # fmt: skip
WORDS = tuple((each.word, Word(each)) for each in _CLASSES)
