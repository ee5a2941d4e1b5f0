"""Which threads carry out a statement: the block's, or those of the group it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import LayoutError, ResourceError
from ...ir import AllocStmt, Function, If, LoopStmt, Node, Stmt, WithStmt, children, names_read_and_written
from ...ir.stmt import statements
from ...language.lowered.threads import NamedBarrierArrive, SyncThreads, SyncWarp
from ...language.memory import AllocFragment
from ...language.structure import Parallel, ThreadGroup
from ...machine import Machine
from .launches import launch_of


@dataclass(frozen=True)
class Threads:
    """`count` threads of a block from number `first` on, acting together. `whole`: they are the block."""

    first: int
    count: int
    whole: bool = True


def threads_of_group(group: ThreadGroup, around: Threads, machine: Machine) -> Threads:
    """The threads of a group. Raises `LayoutError` for one that cannot share out a tile."""
    end = around.first + around.count
    count = end - group.first if group.count is None else group.count
    inside = around.first <= group.first and group.first + count <= end
    whole_warps = group.first % machine.warp == 0 and count % machine.warp == 0
    if count < 1 or not inside or not (count == 1 or whole_warps):
        raise LayoutError(
            "threads {first} to {last} cannot work on tiles together", at=group.place,
            first=group.first, last=group.first + count - 1, warp=machine.warp, a=around.first, b=end - 1,
            expected="one thread, or whole warps of {warp}, among threads {a} to {b}",
            hint="start and end the group at a multiple of {warp}",
        )  # fmt: skip
    return Threads(group.first, count, whole=count == around.count and around.whole)


def threads_by_statement(function: Function, machine: Machine) -> dict[int, Threads]:
    """The threads of every statement of a function, by its identity.

    A fragment is allocated for those who use it, where all of them are one group.
    """
    launch = launch_of(function)
    by_statement: dict[int, Threads] = {}
    grouped = False

    def visit(body: tuple[Stmt, ...], threads: Threads) -> None:
        nonlocal grouped
        for statement in body:
            by_statement[id(statement)] = threads
            if isinstance(statement, ThreadGroup):
                grouped = True
                visit(statement.body, threads_of_group(statement, threads, machine))
            elif isinstance(statement, If):
                visit(statement.then, threads)
                visit(statement.orelse, threads)
            elif isinstance(statement, (LoopStmt, WithStmt)):
                visit(statement.body, threads)

    visit(launch.body, Threads(0, launch.threads))
    if grouped:
        users = users_of_memory(function, by_statement)
        for statement in statements(launch.body):
            if isinstance(statement, AllocFragment):
                theirs = users.get(statement.buffer.name, frozenset[Threads]())
                if len(theirs) == 1:
                    by_statement[id(statement)] = next(iter(theirs))
    return by_statement


def users_of_memory(function: Function, by_statement: Mapping[int, Threads]) -> dict[str, set[Threads]]:
    """The threads that use each buffer, by its name."""
    found: dict[str, set[Threads]] = {}
    for statement in statements(launch_of(function).body):
        nests = isinstance(statement, (WithStmt, If, LoopStmt)) and not isinstance(statement, Parallel)
        if nests:
            # Their own bounds and conditions; what is inside comes by itself.
            roots = [part for part in children(statement) if not isinstance(part, Stmt)]
        else:
            roots = [] if isinstance(statement, AllocStmt) else [statement]
        reads, writes = names_read_and_written(roots)
        for name in reads | writes:
            found.setdefault(name, set()).add(by_statement[id(statement)])
    return found


def refuse_strange_fragment(name: str, owner: Threads, user: Threads, statement: Node) -> None:
    """Raise `LayoutError` where a statement uses registers that its threads do not have."""
    if owner == user:
        return
    raise LayoutError(
        "the fragment {name} lies in the registers of threads {a} to {b}, and threads {c} to {d} use it here",
        at=statement.place, name=name, a=owner.first, b=owner.first + owner.count - 1,
        c=user.first, d=user.first + user.count - 1,
        hint="bring it over through a shared tile: T.copy it there, and from there",
    )  # fmt: skip


# Named barriers of a block; number 0 is the block's own.
MOST_BARRIERS = 16


def barrier_numbers(function: Function, machine: Machine) -> dict[tuple[int, int], int]:
    """A barrier's number for each group of several warps, by (first, count), in order of appearance.

    Numbers that the kernel itself names stay its own.

    Raises `ResourceError` where there are more groups than barriers.
    """
    taken = {s.barrier for s in statements(function.body) if isinstance(s, (SyncThreads, NamedBarrierArrive))}
    free = [number for number in range(1, MOST_BARRIERS) if number not in taken]
    groups = [
        (threads.first, threads.count)
        for threads in threads_by_statement(function, machine).values()
        if not threads.whole and threads.count > machine.warp
    ]
    numbers = dict(zip(dict.fromkeys(groups), free, strict=False))
    if len(numbers) < len(set(groups)):
        raise ResourceError(
            "the kernel has {count} groups of threads, and a block has barriers for {most}",
            at=launch_of(function).place, count=len(set(groups)), most=len(free),
        )  # fmt: skip
    return numbers


def barrier(
    threads: Threads, numbers: Mapping[tuple[int, int], int], machine: Machine, why: str
) -> list[Stmt]:
    """The statement on which these threads meet: the block's barrier, a warp's, or one of their own."""
    if threads.whole:
        return [SyncThreads(why=why)]
    if threads.count == 1:
        return []
    if threads.count <= machine.warp:
        return [SyncWarp()]
    number = numbers[threads.first, threads.count]
    return [SyncThreads(why=why, barrier=number, threads=threads.count)]
