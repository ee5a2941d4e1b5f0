"""The words of one thread that CUDA has code for, besides values, loops and allocations."""

from __future__ import annotations

from functools import cache

from ....errors import TargetError
from ....ir import Region
from ....ir.dtypes import float32
from ....language.lowered.clocks import ReadClock
from ....language.lowered.launches import LaunchDependents, WaitForLaunches
from ....language.lowered.threads import (
    FromPieces,
    LoadPieces,
    MoveBits,
    NamedBarrierArrive,
    SyncThreads,
    SyncWarp,
    VectorAdd,
    VectorLoad,
    VectorStore,
)
from ....machine import VECTOR_ADDS
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic
from . import cp_async, mbarriers, mma, registers, tma, wgmma

# Bytes of one access, and the memories whose accesses the prelude has functions for.
WIDTHS = (1, 2, 4, 8, 16)
SPACES = ("global", "shared")
UNALIGNED = (16, 8, 4)
# Barriers of a block, the one of `__syncthreads` included.
BARRIERS = 16


def _load(renderer: Renderer, statement: VectorLoad) -> None:
    _move(renderer, statement, "ld", statement.src)


def _store(renderer: Renderer, statement: VectorStore) -> None:
    _move(renderer, statement, "st", statement.dst)


def _move(renderer: Renderer, statement: VectorLoad | VectorStore, verb: str, memory: Region) -> None:
    """One access between registers and `memory`, whose last extent is the vector."""
    count = (memory.extent or (1,))[-1]
    width = memory.buffer.dtype.bytes_of(count)
    space = memory.buffer.scope
    if width not in WIDTHS or space not in SPACES:
        raise TargetError(
            "T.{word} of {width} bytes in {space} memory has no code for {target}",
            at=statement.place, word=statement.word, width=width, space=space, target=renderer.machine.name,
            expected="one of {widths} bytes in {spaces} memory",
            widths=", ".join(map(str, WIDTHS)), spaces=" or ".join(SPACES),
        )  # fmt: skip
    if memory.buffer.dtype.per_byte > 1:
        _move_packed(renderer, statement, count)
        return
    to, source = renderer.address(statement.dst), renderer.address(statement.src)
    renderer.line(f"tb_{verb}_{space}_{width}({to}, {source});", statement)


def _add(renderer: Renderer, statement: VectorAdd) -> None:
    """One access that adds neighbours in global memory."""
    memory = statement.dst
    dtype, count = memory.buffer.dtype, (memory.extent or (1,))[-1]
    there = VECTOR_ADDS in renderer.machine.features
    if dtype != float32 or memory.buffer.scope != "global" or count not in (2, 4) or not there:
        raise TargetError(
            "T.vector_add of {count} elements of {dtype} in {space} memory has no code for {target}",
            at=statement.place, count=count, dtype=dtype.name, space=memory.buffer.scope,
            target=renderer.machine.name, expected="2 or 4 of float32 in global memory, from sm_90 on",
        )  # fmt: skip
    to, source = renderer.address(memory), renderer.address(statement.src)
    renderer.line(f"tb_add_global_{count}({to}, {source});", statement)


def _load_pieces(renderer: Renderer, statement: LoadPieces) -> None:
    """A load from any address as two aligned ones."""
    memory = statement.src
    dtype, count = memory.buffer.dtype, (memory.extent or (1,))[-1]
    width = dtype.bytes_of(count)
    if memory.buffer.scope != "global" or width not in UNALIGNED or dtype.per_byte > 1:
        raise TargetError(
            "T.load_pieces of {width} bytes in {space} memory has no code for {target}",
            at=statement.place, width=width, space=memory.buffer.scope, target=renderer.machine.name,
            expected="one of {widths} bytes in global memory", widths=", ".join(map(str, UNALIGNED)),
        )  # fmt: skip
    to, source = renderer.address(statement.dst), renderer.address(memory)
    renderer.line(f"tb_ld_pieces<{width}, {dtype.bytes_of(1)}>({to}, {source});", statement)


def _from_pieces(renderer: Renderer, statement: FromPieces) -> None:
    memory = statement.src
    dtype, count = memory.buffer.dtype, (memory.extent or (1,))[-1]
    to, pieces = renderer.address(statement.dst), renderer.address(statement.pieces)
    kind = f"{dtype.bytes_of(count)}, {dtype.bytes_of(1)}"
    renderer.line(f"tb_from_pieces<{kind}>({to}, {pieces}, {renderer.address(memory)});", statement)


def _move_packed(renderer: Renderer, statement: VectorLoad | VectorStore, count: int) -> None:
    """The same for elements that share bytes; in registers each has a byte of its own."""
    loads = isinstance(statement, VectorLoad)
    memory, own = (statement.src, statement.dst) if loads else (statement.dst, statement.src)
    name, first = renderer.names[memory.buffer.name], renderer.expressions.offset(memory.buffer, memory.start)
    registers = renderer.address(own)
    args = f"{registers}, {name}, {first}" if loads else f"{name}, {first}, {registers}"
    renderer.line(f"tb_{'ld' if loads else 'st'}_packed<{count}>({args});", statement)


def _move_bits(renderer: Renderer, statement: MoveBits) -> None:
    """Registers as those of another dtype, in pieces of the larger element."""
    sizes = [bytes_of(region) for region in (statement.dst, statement.src)]
    if sizes[0] != sizes[1]:
        raise TargetError(
            "T.move_bits has {to} bytes on one side and {source} on the other", at=statement.place,
            to=sizes[0], source=sizes[1],
        )  # fmt: skip
    wider = max((statement.dst.buffer, statement.src.buffer), key=lambda buffer: buffer.dtype.bits)
    to, source = renderer.address(statement.dst), renderer.address(statement.src)
    bits = max(8, wider.dtype.bits)
    type, count = renderer.dialect.types[f"uint{bits}"], sizes[0] * 8 // bits
    renderer.line(f"tb_move_bits<{type}, {count}>({to}, {source});", statement)


def bytes_of(region: Region) -> int:
    """The bytes of a region of registers."""
    return max(8, region.buffer.dtype.bits) // 8 * (region.extent or (1,))[-1]


# Counters by the special register that holds each (PTX ISA, "Special Registers").
COUNTERS = {"cycles": "clock64", "nanoseconds": "globaltimer", "unit": "smid"}


def _read_clock(renderer: Renderer, statement: ReadClock) -> None:
    """In place: volatile, and nothing that touches memory moves over it."""
    register = COUNTERS.get(statement.counter)
    if register is None:
        raise TargetError(
            "{target} has no clock {counter!r}", at=statement.place, target=renderer.machine.name,
            counter=statement.counter, expected="one of {known}", known=", ".join(COUNTERS),
        )  # fmt: skip
    to = renderer.address(statement.dst)
    renderer.line(f"tb_read_{register}({to});", statement)


def _sync_threads(renderer: Renderer, statement: SyncThreads) -> None:
    """The block's barrier, or one of the 16 of its own number on which some whole warps meet (PTX ISA,
    `bar.sync`)."""
    number, threads = statement.barrier, statement.threads
    barrier = "__syncthreads();"
    if number or threads:
        _check_barrier(renderer, statement)
        barrier = f'asm volatile("bar.sync {number}{f", {threads}" if threads else ""};" ::: "memory");'
    renderer.line(barrier + (f"  // {statement.why}" if statement.why else ""), statement)


def _named_arrive(renderer: Renderer, statement: NamedBarrierArrive) -> None:
    _check_barrier(renderer, statement)
    number, threads = statement.barrier, statement.threads
    renderer.line(f'asm volatile("bar.arrive {number}, {threads};" ::: "memory");', statement)


def _check_barrier(renderer: Renderer, statement: SyncThreads | NamedBarrierArrive) -> None:
    number, threads = statement.barrier, statement.threads
    if not 0 <= number < BARRIERS or threads % renderer.machine.warp or threads > renderer.launch.threads:
        raise TargetError(
            "barrier {number} for {threads} threads has no code for {target}", at=statement.place,
            number=number, threads=threads, target=renderer.machine.name, most=BARRIERS - 1,
            warp=renderer.machine.warp, block=renderer.launch.threads,
            expected="a barrier from 0 to {most}, for a multiple of {warp} threads, at most {block}",
        )  # fmt: skip


def _at_launch(renderer: Renderer, statement: LaunchDependents | WaitForLaunches) -> None:
    """PTX ISA, `griddepcontrol`; without the launch's attribute it does nothing."""
    if "dependent-launch" not in renderer.machine.features:
        raise TargetError(
            "T.{word} needs launches that begin early (sm_90), which {target} has not", at=statement.place,
            word=statement.word, target=renderer.machine.name,
        )  # fmt: skip
    what = "wait" if isinstance(statement, WaitForLaunches) else "launch_dependents"
    renderer.line(f'asm volatile("griddepcontrol.{what};" ::: "memory");', statement)


def _sync_warp(renderer: Renderer, statement: SyncWarp) -> None:
    renderer.line("__syncwarp();", statement)


@cache
def intrinsics() -> tuple[Intrinsic, ...]:
    """The rows that the manifest brings."""
    return (
        Intrinsic(VectorLoad, None, _load),
        Intrinsic(VectorStore, None, _store),
        Intrinsic(VectorAdd, None, _add),
        Intrinsic(MoveBits, None, _move_bits),
        Intrinsic(LoadPieces, None, _load_pieces),
        Intrinsic(FromPieces, None, _from_pieces),
        Intrinsic(ReadClock, None, _read_clock),
        Intrinsic(SyncThreads, None, _sync_threads),
        Intrinsic(NamedBarrierArrive, None, _named_arrive),
        Intrinsic(SyncWarp, None, _sync_warp),
        Intrinsic(LaunchDependents, None, _at_launch),
        Intrinsic(WaitForLaunches, None, _at_launch),
        *mbarriers.INTRINSICS,
        *cp_async.INTRINSICS,
        *mma.INTRINSICS,
        *registers.INTRINSICS,
        *tma.INTRINSICS,
        *wgmma.INTRINSICS,
    )
