"""From tile statements to the code of one thread: `pipelined` -> `threaded`.

Control flow keeps its shape and is written here; every operation is lowered by its row in the table.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import TypeGuard

from ...errors import ResourceError
from ...ir import (
    AllocStmt,
    Call,
    Const,
    Expr,
    Function,
    If,
    Let,
    Stmt,
    Store,
    Var,
    While,
    all_of,
    substitute,
)
from ...ir.dtypes import int32
from ...ir.names import names_of
from ...language.lowered.launches import LaunchDependents, WaitForLaunches
from ...language.lowered.threads import NamedBarrierArrive, SyncThreads, SyncWarp
from ...language.memory import AllocFragment, AllocShared
from ...language.registers import SetMaxNreg
from ...language.scopes import entered, entry_facts
from ...language.structure import Serial, ThreadGroup, Unroll, Vectorized
from ..analysis.launches import launch_of
from ..analysis.thread_groups import Threads, barrier_numbers, threads_of_group
from ..context import Context
from .addresses import lower_expr
from .allocations import allocate
from .emitter import Emitter
from .lowering import Lowerings, built_in
from .places import placed
from .rasterize import block_order
from .scalars import condition_of, counted_loop, lower_one, written_out
from .tiles import NOWHERE
from .vector import fold_condition

# Statements whose bodies are lowered as blocks of their own.
NESTS = (If, Serial, Unroll, While, Vectorized, ThreadGroup)


def to_threads(function: Function, context: Context, lowerings: Lowerings | None = None) -> Function:
    """`T.copy(A[...], A_s, map=...)` -> loops, vector loads and stores, registers, tests of one thread."""
    launch = launch_of(function)
    machine = context.machine
    if launch.threads > machine.max_threads:
        raise ResourceError(
            "a block of {threads} threads is more than {machine} has", at=launch.place,
            threads=launch.threads, machine=machine.name, most=machine.max_threads, expected="at most {most}",
        )  # fmt: skip
    threads = Threads(0, launch.threads)
    emitter = Emitter(machine, threads, names_of(function), barrier_numbers(function, machine))
    emitter.sizes = frozenset([var.name for var in function.dimensions])
    for variable in (*function.params, *launch.vars):
        # What is bound around everything is no name for a coordinate.
        if isinstance(variable, Var):
            emitter.coordinate(variable.name)
    if launch.cluster:
        emitter.cluster = prod(launch.cluster)
        emitter.rank = launch.vars[0] % emitter.cluster
    entry = entered(launch, entry_facts(function))
    emitter.facts = entry.with_range(emitter.tid.name, 0, threads.count - 1)
    order, variables = block_order(emitter, launch)
    lowering = _Lowering(emitter, lowerings or built_in())
    body = lowering.block(launch.body)
    head: list[Stmt] = [Let(emitter.tid, Call("thread_id", (), type=int32)), *emitter.prologue, *order]
    lowered = launch.but(body=(*placed(head, launch), *body), vars=variables, order=None)
    return function.but(body=tuple(lowered if each is launch else each for each in function.body))


class _Lowering:
    def __init__(self, emitter: Emitter, lowerings: Lowerings) -> None:
        self.emitter = emitter
        self.lowerings = lowerings

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements of a block, each in the code of one thread, places kept."""
        lowered: list[Stmt] = []
        rest = list(body)
        while rest:
            statement = rest.pop(0)
            if isinstance(statement, Let):
                name = self.emitter.coordinate(statement.var.name)
                if name != statement.var.name:
                    renamed = Var(name, type=statement.var.type)
                    rest = [substitute(each, {statement.var.name: renamed}) for each in rest]
                    statement = statement.but(var=renamed)
            # An error without a place is about the statement that is being lowered.
            own = nullcontext() if isinstance(statement, Let) else self.emitter.statement()
            with own, statement.place or nullcontext():
                found = self.statement(statement)
                # What stands inside a branch, loop or group has its places already: it came through here.
                if isinstance(statement, NESTS):
                    lowered += [inner.at(inner.place or statement.place) for inner in found]
                else:
                    lowered += placed(found, statement)
        return tuple(joined_turns(lowered))

    def statement(self, statement: Stmt) -> list[Stmt]:
        before: list[Stmt] = []

        def value(expr: Expr) -> Expr:
            return lower_expr(self.emitter, expr, NOWHERE, before)

        match statement:
            case AllocShared() | AllocFragment():
                return [allocate(self.emitter, statement)]
            case If():
                return self.branch(statement)
            case ThreadGroup():
                return self.group(statement)
            case Serial() | Unroll():
                loop = counted_loop(self.emitter, statement, value, self.block)
                return [*before, loop]
            case While():
                condition = condition_of(statement, value)
                with self.emitter.scope():
                    return [statement.but(condition=condition, body=self.block(statement.body))]
            case Vectorized():
                return self.statement(written_out(statement))
            case Store() if statement.buffer.scope in ("global", "shared"):
                # A store of the block, not of an element: one thread does it.
                store = lower_one(self.emitter, statement, NOWHERE)
                return [*store[:-1], If(self.emitter.tid.compare("==", 0), (store[-1],), ())]
            case SyncThreads() | SyncWarp() | NamedBarrierArrive() | SetMaxNreg():
                return [statement]
            case LaunchDependents() | WaitForLaunches():
                return [statement]
            case _ if self.lowerings.has(statement) or not _is_scalar(statement):
                row = self.lowerings.find(statement, self.emitter.machine)
                return row.lower(self.emitter, statement)
            case _:
                return lower_one(self.emitter, statement, NOWHERE)

    def branch(self, statement: If) -> list[Stmt]:
        condition = fold_condition(self.emitter, statement.condition)
        before: list[Stmt] = []
        test = lower_expr(self.emitter, condition, NOWHERE, before)
        with self.emitter.scope():
            then = self.block(statement.then)
        with self.emitter.scope():
            orelse = self.block(statement.orelse)
        return [*before, If(test, then, orelse)]

    def group(self, group: ThreadGroup) -> list[Stmt]:
        """What some threads of the block do, with numbers of their own from 0."""
        around, tid = self.emitter.threads, self.emitter.tid
        threads = threads_of_group(group, around, self.emitter.machine)
        if threads.whole:
            return list(self.block(group.body))
        first = group.first - around.first
        tests = [tid.compare(">=", first)] if first else []
        if first + threads.count < around.count:
            tests.append(tid.compare("<", first + threads.count))
        with self.emitter.acting(threads, Const(first)) as head:
            body = self.block(group.body)
        return [If(all_of(tests), (*placed(list(head), group), *body), ())]


def joined_turns(body: list[Stmt]) -> list[Stmt]:
    """Statements with what one thread does for all, one after the other, under one condition."""
    out: list[Stmt] = []
    for statement in body:
        last = out[-1] if out else None
        if _is_for_all(statement) and _is_for_all(last) and last.condition == statement.condition:
            out[-1] = last.but(then=(*last.then, *statement.then))
        else:
            out.append(statement)
    return out


def _is_for_all(statement: Stmt | None) -> TypeGuard[If]:
    """Whether one thread tells a barrier, or an instruction that goes on by itself, what all of them want."""
    return (
        isinstance(statement, If)
        and not statement.orelse
        and all(getattr(part, "for_all", False) for part in statement.then)
    )


def _is_scalar(statement: Stmt) -> bool:
    """Whether a statement is of one thread already, and not an operation on tiles."""
    return isinstance(statement, (Let, Store, AllocStmt))
