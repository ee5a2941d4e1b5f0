"""What each statement of one thread's code does in the simulator: a row for each word, and no default."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ir import Let, Store, zero_of
from ..language.extern import ExternCall
from ..language.lowered.clocks import ReadClock
from ..language.lowered.launches import LaunchDependents, WaitForLaunches
from ..language.lowered.threads import (
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
from ..language.memory import AllocLocal, AllocShared, AllocVar
from .barriers import Meeting
from .clusters import MEANINGS as CLUSTERS
from .expressions import OWN
from .extern import extern_call
from .lanes import Lanes, Meaning, Waits, singles
from .mbarriers import MEANINGS as MBARRIERS
from .refusal import refuse
from .state import Mask


def let(lanes: Lanes, stmt: Let, mask: Mask) -> None:
    """`x: T.int32 = value`"""
    lanes.values[stmt.var.name] = lanes.value(stmt.value, mask)


def store(lanes: Lanes, stmt: Store, mask: Mask) -> None:
    """`buffer[index] = value`"""
    buffer = stmt.buffer
    value = lanes.wide(lanes.value(stmt.value, mask), buffer.dtype.numpy)[None]
    if stmt.atomic:
        found = lanes.combine(stmt, [lanes.value(index, mask) for index in stmt.index], value[0], mask)
        if stmt.found is not None:
            lanes.put(stmt.found, lanes.register_of(stmt.found, (), mask, stmt), found[None], mask, stmt)
        return
    if buffer.scope in OWN:
        lanes.put(buffer, lanes.register_of(buffer, stmt.index, mask, stmt), value, mask, stmt)
    else:
        lanes.keep(stmt, buffer, [lanes.value(index, mask) for index in stmt.index], value, mask)


def vector_move(lanes: Lanes, stmt: VectorLoad | VectorStore, mask: Mask) -> None:
    """`T.vector_load(registers, memory)` and `T.vector_store(memory, registers)`"""
    lanes.write(stmt.dst, lanes.read(stmt.src, mask), mask)


def vector_add(lanes: Lanes, stmt: VectorAdd, mask: Mask) -> None:
    """`T.vector_add(memory, registers)`: one access, and each element a step of its own."""
    if mask is not None and not mask.any():
        return
    buffer, values = stmt.dst.buffer, lanes.read(stmt.src, mask)
    lanes.touch(stmt, buffer, [lanes.value(index, mask) for index in stmt.dst.start], len(values), mask)
    for store, value in zip(_adds(stmt), values, strict=True):
        wide = lanes.wide(value, buffer.dtype.numpy)
        lanes.combine(store, [lanes.value(index, mask) for index in store.index], wide, mask, counts=False)


@lru_cache(1024)
def _adds(stmt: VectorAdd) -> tuple[Store, ...]:
    """The atomic additions that a wide one is."""
    zero = zero_of(stmt.dst.buffer.dtype)
    return tuple(
        Store(part.buffer, part.start, zero, atomic="add", place=stmt.place) for part in singles(stmt.dst)
    )


def move_bits(lanes: Lanes, stmt: MoveBits, mask: Mask) -> None:
    """`T.move_bits(words, registers)`"""
    values: Any = np.ascontiguousarray(np.asarray(lanes.read(stmt.src, mask)).T)
    words = values.view(np.uint8).view(stmt.dst.buffer.dtype.numpy).T
    if len(words) != (stmt.dst.extent or (1,))[-1]:
        refuse("the two sides of T.move_bits have not the same bytes", stmt)
    lanes.write(stmt.dst, words, mask)


def load_pieces(lanes: Lanes, stmt: LoadPieces, mask: Mask) -> None:
    """`T.load_pieces(pieces, memory)`

    The elements stand where they do in two aligned pieces; what else is in those is of no account.
    """
    past = lanes.past_aligned(stmt.src, mask)
    found = np.concatenate([lanes.read(part, mask, counts=False) for part in singles(stmt.src)])
    lanes.count_pieces(stmt.src, mask)
    count = len(found)
    pieces = np.zeros((2 * count, found.shape[1]), found.dtype)
    for k in range(count):
        pieces[past + k, np.arange(len(past))] = found[k]
    lanes.write(stmt.dst, pieces, mask)


def from_pieces(lanes: Lanes, stmt: FromPieces, mask: Mask) -> None:
    """`T.from_pieces(registers, pieces, memory)`"""
    past = lanes.past_aligned(stmt.src, mask)
    pieces: Any = lanes.read(stmt.pieces, mask)
    found = [pieces[past + k, np.arange(len(past))] for k in range(len(pieces) // 2)]
    lanes.write(stmt.dst, np.stack(found), mask)


def read_clock(lanes: Lanes, stmt: ReadClock, mask: Mask) -> None:
    """`T.read_clock(now, "cycles")`: the simulator counts the reads themselves, so that order can be seen."""
    lanes.clock_reads += 1
    value = 0 if stmt.counter == "unit" else lanes.clock_reads
    lanes.write(stmt.dst, lanes.wide(value, np.int64)[None], mask)


def alloc_shared(lanes: Lanes, stmt: AllocShared, mask: Mask) -> None:
    """`S = T.alloc_shared(...)`"""
    lanes.add_shared(stmt)


def alloc_local(lanes: Lanes, stmt: AllocLocal, mask: Mask) -> None:
    """`x = T.alloc_local(...)`"""
    lanes.add_registers(stmt, mask)


def alloc_var(lanes: Lanes, stmt: AllocVar, mask: Mask) -> None:
    """`n = T.alloc_var(...)`"""
    first = None if stmt.init is None else lanes.value(stmt.init, mask)
    lanes.add_registers(stmt, mask, first)


def sync_threads(lanes: Lanes, stmt: SyncThreads, mask: Mask) -> Waits:
    """`T.sync_threads(barrier=1, threads=64)`"""
    yield Meeting(stmt.barrier, stmt.threads, last=True)


def named_barrier_arrive(lanes: Lanes, stmt: NamedBarrierArrive, mask: Mask) -> Waits:
    """`T.named_barrier_arrive(barrier=1, threads=64)`"""
    yield Meeting(stmt.barrier, stmt.threads, wait=False)


def at_launch(lanes: Lanes, stmt: LaunchDependents | WaitForLaunches, mask: Mask) -> None:
    """Nothing here: launches run one after the other."""


def sync_warp(lanes: Lanes, stmt: SyncWarp, mask: Mask) -> None:
    """`T.sync_warp()`"""
    warps = lanes.whole_warps(mask)
    if warps is None:
        refuse("not all threads of a warp reach this barrier", stmt)
    lanes.clocks.meet_groups(warps)


MEANINGS: Mapping[type, Meaning] = MappingProxyType(
    {
        Let: let,
        Store: store,
        VectorLoad: vector_move,
        VectorStore: vector_move,
        VectorAdd: vector_add,
        MoveBits: move_bits,
        LoadPieces: load_pieces,
        FromPieces: from_pieces,
        ReadClock: read_clock,
        AllocShared: alloc_shared,
        AllocLocal: alloc_local,
        AllocVar: alloc_var,
        SyncThreads: sync_threads,
        NamedBarrierArrive: named_barrier_arrive,
        SyncWarp: sync_warp,
        LaunchDependents: at_launch,
        WaitForLaunches: at_launch,
        ExternCall: extern_call,
        **MBARRIERS,
        **CLUSTERS,
    }
)
