"""What a kernel says of single threads, against the threads that a block has: for targets without any too."""

from __future__ import annotations

from math import prod

from ...errors import LayoutError, ResourceError
from ...ir import If, LoopStmt, Stmt, WithStmt
from ...ir.stmt import statements
from ...language.lowered.threads import NamedBarrierArrive, SyncThreads
from ...language.memory import AllocFragment
from ...language.structure import KernelLaunch, Parallel, ThreadGroup
from ..analysis.thread_groups import MOST_BARRIERS


def check_threads(launch: KernelLaunch) -> None:
    """Raise a `TileError` at the line of threads that a block of the launch has not."""
    threads = launch.threads
    for statement in statements(launch.body):
        if isinstance(statement, Parallel) and statement.of_threads and prod(statement.extents) != threads:
            raise ResourceError(
                "the kernel works with the numbers of {count} threads, and the block has {threads}",
                at=statement.place, count=prod(statement.extents), threads=threads,
                expected="threads={count}", hint="the kernel's own threads= says what tx counts to",
            )  # fmt: skip
        if isinstance(statement, AllocFragment) and statement.of_threads:
            _check_rows(statement, threads)
        if isinstance(statement, ThreadGroup):
            _check_group(statement, threads)
    _check_barriers(launch.body, threads, threads)


def _check_rows(allocation: AllocFragment, threads: int) -> None:
    shape = allocation.buffer.extents
    if not any(prod(shape[:rank]) == threads for rank in (1, 2, 3)):
        raise ResourceError(
            "{name} has no row for each of {threads} threads", at=allocation.place,
            name=allocation.buffer.name, threads=threads, shape=shape, found="{shape}",
            expected="first the dimensions of the block's threads",
        )  # fmt: skip


def _check_group(group: ThreadGroup, threads: int) -> None:
    end = threads if group.count is None else group.first + group.count
    if group.first >= threads or end > threads:
        raise LayoutError(
            "the block has no threads {first} to {last}: it has {threads}", at=group.place, first=group.first,
            last=max(end - 1, group.first), threads=threads, expected="threads below {threads}",
            hint="T.Kernel(..., threads=...) says how many there are",
        )  # fmt: skip


def _check_barriers(body: tuple[Stmt, ...], here: int, threads: int) -> None:
    """Refuse barriers of a number that `here` of a block's `threads` come to and do not fit."""
    for statement in body:
        if isinstance(statement, ThreadGroup):
            count = threads - statement.first if statement.count is None else statement.count
            _check_barriers(statement.body, count, threads)
        elif isinstance(statement, If):
            _check_barriers((*statement.then, *statement.orelse), here, threads)
        elif isinstance(statement, (LoopStmt, WithStmt)):
            _check_barriers(statement.body, here, threads)
        elif isinstance(statement, NamedBarrierArrive) or (
            isinstance(statement, SyncThreads) and (statement.barrier or statement.threads)
        ):
            _check_barrier(statement, here, threads)


def _check_barrier(barrier: SyncThreads | NamedBarrierArrive, here: int, threads: int) -> None:
    if not 0 < barrier.barrier < MOST_BARRIERS and (barrier.barrier or barrier.threads != threads):
        raise ResourceError(
            "there is no barrier {number} for some threads of a block", at=barrier.place,
            number=barrier.barrier, expected="a number from 1 to {most}", most=MOST_BARRIERS - 1,
        )  # fmt: skip
    if not here <= (barrier.threads or threads) <= threads:
        raise LayoutError(
            "a barrier of {count} threads, where {here} come to it", at=barrier.place, count=barrier.threads,
            here=here, threads=threads, expected="at least those that come here, and at most {threads}",
            hint="the count is of all threads that come to the barrier, in all groups",
        )  # fmt: skip
