"""Barriers by hand get their memory, and are made before anybody comes to them.

`full = T.alloc_barrier((128,))` -> `full = T.alloc_shared((1,), T.uint64)`; behind the allocations there one
thread makes them, and all wait for it.
"""

from __future__ import annotations

from ...errors import LanguageError, TargetError
from ...ir import AllocStmt, Const, Function, Let, Region, Stmt
from ...ir.stmt import statements
from ...language.lowered.mbarriers import FenceMbarrierInit, MbarrierInit
from ...language.lowered.threads import SyncThreads
from ...language.mbarriers import AllocBarrier
from ...language.memory import AllocShared
from ...language.structure import ThreadGroup
from ..analysis.launches import launch_of
from ..context import Context
from ..threads.places import placed

WHY = "barriers are made before they are used"


def make_barriers(function: Function, context: Context) -> Function:
    """The function without `T.alloc_barrier`. Raises `LanguageError` for one that is not at its head."""
    launch = launch_of(function)
    allocations = [s for s in statements(launch.body) if isinstance(s, AllocBarrier)]
    if not allocations:
        return function
    if "mbarrier" not in context.machine.features:
        raise TargetError(
            "{machine} has no barriers in shared memory", at=allocations[0].place,
            machine=context.machine.name, hint="they came with sm_80",
        )  # fmt: skip
    for inner in allocations:
        if all(inner is not statement for statement in launch.body):
            raise LanguageError(
                "a barrier is made once for the block, and this is done again and again, or by some threads",
                at=inner.place, hint="put T.alloc_barrier at the head of the kernel",
            )  # fmt: skip
    body: list[Stmt] = []
    waiting: list[AllocBarrier] = []
    for statement in launch.body:
        if isinstance(statement, AllocBarrier):
            waiting.append(statement)
            body.append(AllocShared(statement.buffer, place=statement.place))
            continue
        if waiting and not isinstance(statement, (AllocStmt, Let)):
            body += _made(waiting, context)
            waiting = []
        body.append(statement)
    made = launch.but(body=tuple(body))
    return function.but(body=tuple(made if each is launch else each for each in function.body))


def _made(allocations: list[AllocBarrier], context: Context) -> list[Stmt]:
    """One thread makes them; what is asynchronous on this machine sees them too."""
    made: list[Stmt] = []
    for allocation in allocations:
        buffer = allocation.buffer
        inits = [
            MbarrierInit(Region(buffer, (Const(k),), extent=(1,)), Const(count))
            for k, count in enumerate(allocation.arrivals)
        ]
        made += placed(inits, allocation)
    last = allocations[-1]
    if "tma" in context.machine.features:
        made += placed([FenceMbarrierInit()], last)
    group = ThreadGroup(0, 1, vars=(), body=tuple(made))
    return [group.at(last.place), SyncThreads(why=WHY, place=last.place)]
