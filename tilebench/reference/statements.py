"""Statements as functions of the state: prepared once, run for every block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import IRError, LanguageError, Place
from ..ir import (
    AllocStmt,
    Const,
    If,
    Let,
    Load,
    LoopStmt,
    OpStmt,
    Region,
    Stmt,
    Store,
    While,
    WordStmt,
    region_written,
    regions_read,
    scalar_operands,
    walk,
)
from ..language.copy import Copy
from ..language.extern import ExternCall
from ..language.lowered.threads import SyncThreads, SyncWarp
from ..language.meanings.tiles import TileMeaning, meaning_of
from ..language.memory import AllocVar
from ..language.promises import Assume, SafeValue
from ..language.structure import (
    KernelLaunch,
    Parallel,
    Pipelined,
    Serial,
    StageGroup,
    ThreadGroup,
    Unroll,
    Vectorized,
)
from .boxes import read_box, write_box
from .expressions import too_late
from .extern import extern_call
from .orders import in_parts, is_free, ordered
from .own_memory import collapsed, copied, outer_locals
from .places import in_order
from .races import check, suspects
from .roles import SILENT, by_roles, is_by_hand
from .scope import LoopScope
from .state import Run, State
from .stores import StoreRunner


class StatementRunner(StoreRunner):
    """Prepares statements of one function for one kind of numbers."""

    def body(self, body: Sequence[Stmt]) -> Run:
        """The statements in order."""
        parts = [self.statement(stmt) for stmt in body]
        if len(parts) == 1:
            return parts[0]

        def run(state: State) -> None:
            for part in parts:
                part(state)

        return run

    def statement(self, stmt: Stmt) -> Run:
        match stmt:
            case Store():
                return self.store(stmt)
            case Let():
                return self.let(stmt)
            case If():
                return self.branch(stmt)
            case AllocStmt():
                return self.allocate(stmt)
            case KernelLaunch():
                return self.kernel(stmt)
            case ThreadGroup() | StageGroup():  # who does it, and when, changes nothing
                return self.body(stmt.body)
            case Parallel():
                return self.parallel(stmt)
            case SafeValue():
                name, value = stmt.of.name, self.prepare(stmt.value)
                return lambda state: state.safe.update({name: value(state)})
            case Assume():
                return self.promise(stmt)
            case _ if isinstance(stmt, SILENT):
                return lambda state: None
            case SyncThreads() | SyncWarp():  # done for all threads in turn
                return self.body(())
            case Serial() | Unroll() | Pipelined() | Vectorized():
                return self.loop(stmt)
            case While():
                return self.turning(stmt)
            case ExternCall():
                return extern_call(self, stmt)
            case OpStmt() if (meaning := meaning_of(type(stmt))) is not None:
                return self.tile(stmt, meaning)
            case _:
                word = stmt.spelling() if isinstance(stmt, WordStmt) else type(stmt).__name__
                raise too_late(f"T.{word}", stmt.place)

    # -- launch and loops
    def kernel(self, launch: KernelLaunch) -> Run:
        body = by_roles(self, launch) if is_by_hand(launch) else self.body(launch.body)
        names = [var.name for var in launch.vars]
        grid = (*launch.blocks, 1, 1, 1)[:3]

        def run(state: State) -> None:
            values = state.names
            state.safe.clear()
            for owners in state.owners.values():
                owners[...] = 0
            every = range(grid[0] * grid[1] * grid[2]) if state.only is None else sorted(state.only)
            for number in ordered(state.order, every):
                rest, x = divmod(number, grid[0])
                z, y = divmod(rest, grid[1])
                state.block = number + 1
                values.update(zip(names, (x, y, z), strict=False))
                body(state)

        return in_order(launch, run)

    def parallel(self, loop: Parallel) -> Run:
        if self.scope.parallel:
            raise LanguageError(
                "T.Parallel inside T.Parallel has no meaning", at=loop.place, hint="give one loop all extents"
            )
        before, self.scope = self.scope, self.scope_of(loop)
        watch, body = bool(self.scope.suspects), self.body(loop.body)
        self.scope = before
        extents, indices, own, numbers = loop.extents, indices_of(loop), outer_locals(loop), self.numbers
        free = any(map(is_free, walk(loop)))

        def run(state: State) -> None:
            state.names.update(indices)
            for buffer in own:
                value = state.names[buffer.name]
                if buffer.scope == "local":
                    state.names[buffer.name] = copied(
                        numbers.spread(value, extents + buffer.shape, buffer.dtype)
                    )
            state.box = extents
            in_parts(state, body) if free else body(state)
            if watch:
                check(state)
            state.box = ()
            for buffer in own:
                state.names[buffer.name] = collapsed(numbers, state.names[buffer.name], extents, buffer)

        return run

    def scope_of(self, loop: Parallel) -> LoopScope:
        """The names inside a parallel loop: its axes, its lets and those around it."""
        names = [var.name for var in loop.vars]
        axes = dict(zip(names, range(len(names)), strict=True))
        scope = LoopScope(axes, loop.extents, set(names), dict(self.scope.lets))
        for node in walk(loop):
            if isinstance(node, Let):
                scope.let(node.var.name, node.value)
        scope.suspects = suspects(loop, scope)
        return scope

    def loop(self, loop: Serial | Unroll | Pipelined | Vectorized) -> Run:
        name = loop.vars[0].name
        start = Const(0) if isinstance(loop, Vectorized) else loop.start
        stop = Const(loop.extent) if isinstance(loop, Vectorized) else loop.stop
        step = loop.step if isinstance(loop, (Serial, Unroll)) else Const(1)
        bounds = self.integers([start, stop, step])
        if self.scope.parallel and any(self.scope.varies(bound) for bound in (start, stop, step)):
            self.scope.varying.add(name)
        turn = self.turn(loop, self.body(loop.body))
        place = loop.place

        def run(state: State) -> None:
            first, last, by = bounds(state)
            if np.any(by == 0):
                raise LanguageError("the step of a loop is 0", at=place)
            if np.ndim(first) or np.ndim(last) or np.ndim(by):
                uneven(state, name, turn, first, last, by)
                return
            for index in range(int(first), int(last), int(by)):
                state.names[name] = index
                if not turn(state):
                    break

        return run

    def turn(self, loop: LoopStmt, body: Run) -> Callable[[State], bool]:
        """A turn of a loop for the elements whose condition holds: whether there were any."""
        if loop.condition is None:

            def plain(state: State) -> bool:
                body(state)
                return True

            return plain
        condition, numbers, place = self.prepare(loop.condition), self.numbers, loop.place

        def run(state: State) -> bool:
            test = condition(state)
            if np.ndim(getattr(test, "value", test)) == 0:
                numbers.may(test, place)
                if getattr(test, "value", test):
                    body(state)
                    return True
                return False
            yes, _, doubt = numbers.may(test, place)
            with state.narrowed(yes, doubt) as some:
                if some:
                    body(state)
                return some

        return run

    def turning(self, loop: While) -> Run:
        """Turns for as long as an element has its condition."""
        turn, condition, place = (
            self.turn(loop, self.body(loop.body)),
            self.prepare(loop.condition),
            loop.place,
        )

        def run(state: State) -> None:
            while True:
                # In doubt an element would go on for ever: what rounding decides is as true after the turn.
                refuse_doubt(condition(state), state.mask, place)
                if not turn(state):
                    return

        return run

    # -- names and memory
    def allocate(self, alloc: AllocStmt) -> Run:
        buffer, numbers = alloc.buffer, self.numbers
        name, dtype, shape = buffer.name, buffer.dtype, buffer.extents
        if getattr(alloc, "versions", 1) != 1:
            raise too_late(f"versions of {name}", alloc.place)
        if isinstance(alloc, AllocVar):
            init = self.prepare(alloc.init) if alloc.init is not None else None

            def make(state: State) -> None:
                new = numbers.new((), dtype)[()] if init is None else copied(init(state))
                state.names[name] = new if init is not None else numbers.kept(new, dtype)

            return make
        one_an_element, of_the_call = self.scope.parallel, buffer.scope == "global"

        def allocate(state: State) -> None:
            if of_the_call and state.owners:
                state.owners[name] = np.zeros(shape, np.int32)
            state.names[name] = numbers.new((*state.box, *shape) if one_an_element else shape, dtype)

        return allocate

    def let(self, let: Let) -> Run:
        value, name = self.prepare(let.value), let.var.name
        self.scope.let(name, let.value)
        if not any(isinstance(part, Load) for part in walk(let.value)):

            def plain(state: State) -> None:
                state.names[name] = value(state)

            return plain

        def run(state: State) -> None:
            state.names[name] = copied(value(state))

        return run

    def promise(self, assumption: Assume) -> Run:
        condition, place = self.prepare(assumption.condition), assumption.place

        def run(state: State) -> None:
            test = condition(state)
            broken = np.logical_not(getattr(test, "value", test))
            # What only rounding decides is not held against the kernel.
            broken = np.logical_and(broken, np.equal(getattr(test, "error", 0.0), 0))
            if np.any(broken if state.mask is None else np.logical_and(broken, state.mask)):
                raise LanguageError("what T.assume says does not hold", at=place)

        return run

    # -- branches
    def branch(self, branch: If) -> Run:
        condition, numbers, place = self.prepare(branch.condition), self.numbers, branch.place
        then, other = self.body(branch.then), self.body(branch.orelse)

        def run(state: State) -> None:
            test = condition(state)
            if np.ndim(getattr(test, "value", test)) == 0:
                numbers.may(test, place)
                (then if getattr(test, "value", test) else other)(state)
                return
            yes, no, doubt = numbers.may(test, place)
            with state.narrowed(yes, doubt) as some:
                if some:
                    then(state)
            if branch.orelse:
                # In doubt the reference takes the branch that the value says, here its opposite.
                turned = None if doubt is None else (doubt[0], np.logical_not(doubt[1]))
                with state.narrowed(no, turned) as some:
                    if some:
                        other(state)

        return run

    # -- tiles
    def tile(self, operation: Any, meaning: TileMeaning) -> Run:
        if self.scope.parallel:
            word = operation.spelling()
            text = "T.{word} works on whole tiles, not inside T.Parallel"
            raise LanguageError(text, word=word, at=operation.place)
        scalars = {name: self.prepare(operand) for name, operand in scalar_operands(operation).items()}
        target = region_written(operation)
        readers = {
            id(region): self.region(operation, region) for region in (*regions_read(operation), target)
        }
        apply, place, buffer = self.numbers.tile(meaning), operation.place, target.buffer
        start, extent = readers[id(target)]

        def run(state: State) -> None:
            given = {name: run_operand(state) for name, run_operand in scalars.items()}
            known = {name: getattr(value, "value", value) for name, value in given.items()}
            boxes: list[Any] = []
            for region in regions_read(operation, known):
                first, size = readers[id(region)]
                corner = [int(k) for k in first(state)]
                boxes.append(read_box(state, region.buffer, corner, size, state.mask, region.place or place))
            result = apply(operation, *given.values(), *boxes)
            if np.ndim(getattr(result, "value", result)):
                result = result.reshape(extent)
            write_box(state, buffer, [int(k) for k in start(state)], extent, result, None, None, place)

        return run

    def region(self, operation: Any, region: Region) -> tuple[Run, tuple[int, ...]]:
        """Start and extents of a box; a head address of a copy takes those of the other side."""
        if region.version is not None:
            raise too_late(f"versions of {region.buffer.name}", operation.place)
        extent = region.extent
        if extent is None and isinstance(operation, Copy):
            other = operation.dst if region is operation.src else operation.src
            extent = aligned(other.extent or (1,) * other.buffer.rank, region, operation)
        elif extent is None:
            raise IRError(
                "T.{word} of a head address has no extents", word=operation.spelling(), at=operation.place
            )
        return self.integers(region.start), extent


def indices_of(loop: Parallel) -> dict[str, Any]:
    """The index of each element of a parallel loop, an array along its own axis."""
    indices: dict[str, Any] = {}
    for k, (var, extent) in enumerate(zip(loop.vars, loop.extents, strict=True)):
        shape = tuple(extent if k == axis else 1 for axis in range(len(loop.extents)))
        indices[var.name] = np.arange(extent, dtype=var.type.numpy).reshape(shape)
    return indices


def aligned(extent: tuple[int, ...], head: Region, copy: Copy) -> tuple[int, ...]:
    """The extents of a head address: those of the other side, aligned to the right."""
    rank = head.buffer.rank
    extra = max(0, len(extent) - rank)
    if any(each != 1 for each in extent[:extra]):
        raise IRError(
            "a tile of extents {extent} does not fit {name}, which has rank {rank}", at=copy.place,
            extent=extent, name=head.buffer.name, rank=rank,
        )  # fmt: skip
    return (1,) * (rank - len(extent) + extra) + extent[extra:]


def refuse_doubt(test: Any, mask: Any, place: Place | None) -> None:
    """Raise `LanguageError` where rounding decides whether an active element takes another turn."""
    doubt = getattr(test, "error", None)
    if doubt is not None and np.any(doubt if mask is None else np.logical_and(doubt > 0, mask)):
        raise LanguageError(
            "how many turns this loop takes depends on rounding, so no bound of what follows can be given",
            at=place, hint="count turns in integers, or leave the loop after a number of them",
        )  # fmt: skip


def uneven(state: State, name: str, turn: Callable[[State], bool], first: Any, last: Any, by: Any) -> None:
    """A loop inside T.Parallel whose bounds differ between elements: each leaves when its own ends."""
    count = np.maximum(0, -((np.asarray(first) - last) // by))
    for trip in range(int(np.max(count, initial=0))):
        state.names[name] = first + trip * by
        with state.narrowed(count > trip) as some:
            if some:
                turn(state)
