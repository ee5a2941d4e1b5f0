"""Statements as functions of the state: prepared once, run for every block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import IRError, LanguageError
from ..ir import (
    AllocStmt,
    Const,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    WordStmt,
    region_written,
    regions_read,
    scalar_operands,
    walk,
)
from ..language.copy import Copy
from ..language.meanings.tiles import MEANINGS
from ..language.memory import AllocVar
from ..language.structure import (
    KernelLaunch,
    Parallel,
    Pipelined,
    Serial,
    ThreadGroup,
    Unroll,
    Vectorized,
)
from .boxes import read_box, scatter, within, write_box
from .expressions import ExpressionRunner, box_shape, too_late
from .own_memory import collapsed, copied, outer_locals, store_local, store_var
from .owners import claim
from .races import check, note, suspects
from .scope import LoopScope
from .state import Run, State, fail_outside


class StatementRunner(ExpressionRunner):
    """Prepares statements of one function for one kind of numbers."""

    def body(self, body: Sequence[Stmt]) -> Run:
        """The statements in order."""
        parts = [self.statement(each) for each in body]
        if len(parts) == 1:
            return parts[0]

        def run(state: State) -> None:
            for each in parts:
                each(state)

        return run

    def statement(self, at: Stmt) -> Run:
        match at:
            case Store():
                return self.store(at)
            case Let():
                return self.let(at)
            case If():
                return self.branch(at)
            case AllocStmt():
                return self.allocate(at)
            case KernelLaunch():
                return self.kernel(at)
            case ThreadGroup():
                # Who does it makes no difference to what is done.
                return self.body(at.body)
            case Parallel():
                return self.parallel(at)
            case Serial() | Unroll() | Pipelined() | Vectorized():
                return self.loop(at)
            case _ if type(at) in MEANINGS:
                return self.tile(at)
            case _:
                word = at.spelling() if isinstance(at, WordStmt) else type(at).__name__
                raise too_late(f"T.{word}", at.place)

    # -- launch and loops
    def kernel(self, at: KernelLaunch) -> Run:
        body = self.body(at.body)
        names = [each.name for each in at.vars]
        grid = (*at.blocks, 1, 1, 1)[:3]

        def run(state: State) -> None:
            held = state.names
            for each in state.owners.values():
                each[...] = 0
            for number in range(grid[0] * grid[1] * grid[2]) if state.only is None else sorted(state.only):
                rest, x = divmod(number, grid[0])
                z, y = divmod(rest, grid[1])
                state.block = number + 1
                held.update(zip(names, (x, y, z), strict=False))
                body(state)

        return run

    def parallel(self, at: Parallel) -> Run:
        if self.scope.parallel:
            raise LanguageError(
                "T.Parallel inside T.Parallel has no meaning", at=at.place, hint="give one loop all extents"
            )
        extents = at.extents
        before = self.scope
        names = [each.name for each in at.vars]
        axes = dict(zip(names, range(len(names)), strict=True))
        self.scope = LoopScope(axes, extents, set(names), dict(before.lets))
        for each in walk(at):
            if isinstance(each, Let):
                self.scope.let(each.var.name, each.value)
        self.scope.suspects = suspects(at, self.scope)
        watch = bool(self.scope.suspects)
        body = self.body(at.body)
        self.scope = before
        indices: dict[str, Any] = {}
        for k, (var, extent) in enumerate(zip(at.vars, extents, strict=True)):
            shape = tuple(extent if k == axis else 1 for axis in range(len(extents)))
            indices[var.name] = np.arange(extent, dtype=var.type.numpy).reshape(shape)
        own = outer_locals(at)
        numbers = self.numbers

        def run(state: State) -> None:
            state.names.update(indices)
            for each in own:
                held = state.names[each.name]
                if each.scope == "local":
                    state.names[each.name] = copied(numbers.spread(held, extents + each.shape, each.dtype))
            state.box = extents
            body(state)
            if watch:
                check(state)
            state.box = ()
            for each in own:
                state.names[each.name] = collapsed(numbers, state.names[each.name], extents, each)

        return run

    def loop(self, at: Serial | Unroll | Pipelined | Vectorized) -> Run:
        name = at.vars[0].name
        start = Const(0) if isinstance(at, Vectorized) else at.start
        stop = Const(at.extent) if isinstance(at, Vectorized) else at.stop
        step = at.step if isinstance(at, (Serial, Unroll)) else Const(1)
        bounds = self.integers([start, stop, step])
        if self.scope.parallel and any(self.scope.varies(each) for each in (start, stop, step)):
            self.scope.varying.add(name)
        body = self.body(at.body)
        place = at.place

        def run(state: State) -> None:
            first, last, by = bounds(state)
            if np.any(by == 0):
                raise LanguageError("the step of a loop is 0", at=place)
            if np.ndim(first) or np.ndim(last) or np.ndim(by):
                uneven(state, name, body, first, last, by)
                return
            for each in range(int(first), int(last), int(by)):
                state.names[name] = each
                body(state)

        return run

    # -- names and memory
    def allocate(self, at: AllocStmt) -> Run:
        buffer, numbers = at.buffer, self.numbers
        name, dtype, shape = buffer.name, buffer.dtype, buffer.extents
        if getattr(at, "versions", 1) != 1:
            raise too_late(f"versions of {name}", at.place)
        if isinstance(at, AllocVar):
            init = self.prepare(at.init) if at.init is not None else None

            def make(state: State) -> None:
                new = numbers.new((), dtype)[()] if init is None else copied(init(state))
                state.names[name] = new if init is not None else numbers.kept(new, dtype)

            return make
        each_own = self.scope.parallel

        def allocate(state: State) -> None:
            state.names[name] = numbers.new((*state.box, *shape) if each_own else shape, dtype)

        return allocate

    def let(self, at: Let) -> Run:
        value, name = self.prepare(at.value), at.var.name
        self.scope.let(name, at.value)
        if not any(isinstance(each, Load) for each in walk(at.value)):

            def plain(state: State) -> None:
                state.names[name] = value(state)

            return plain

        def run(state: State) -> None:
            state.names[name] = copied(value(state))

        return run

    # -- branches
    def branch(self, at: If) -> Run:
        condition, numbers, place = self.prepare(at.condition), self.numbers, at.place
        then, other = self.body(at.then), self.body(at.orelse)
        some_else = bool(at.orelse)

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
            if some_else:
                # In doubt the reference takes the branch that the value says, here its opposite.
                turned = None if doubt is None else (doubt[0], np.logical_not(doubt[1]))
                with state.narrowed(no, turned) as some:
                    if some:
                        other(state)

        return run

    # -- stores
    def store(self, at: Store) -> Run:
        buffer, place, numbers = at.buffer, at.place, self.numbers
        name, dtype, value = buffer.name, buffer.dtype, self.prepare(at.value)
        if at.version is not None:
            raise too_late(f"versions of {name}", place)
        if buffer.scope == "var":
            return lambda state: store_var(state, name, copied(value(state)), dtype)
        index = self.integers(at.index)
        if buffer.scope == "local":
            return lambda state: store_local(state, at, index(state), value(state))
        if not self.scope.parallel:

            def single(state: State) -> None:
                spot = tuple(int(each) for each in index(state))
                if within(buffer, spot):
                    new = value(state)
                    claim(state, buffer, spot, new, None, place)
                    numbers.put(state.names[name], spot, new, None, None, dtype)
                    state.touch(name, spot, None)
                elif buffer.scope != "global":
                    fail_outside(name, buffer.extents, spot, place)

            return single
        return self.store_parallel(at, index, value)

    def store_parallel(self, at: Store, index: Run, value: Run) -> Run:
        buffer, place, numbers = at.buffer, at.place, self.numbers
        box, plan = self.scope.extents, self.scope.box_of(at.index)
        if buffer.name in self.scope.suspects:
            return self.store_noted(at, index, value)
        general: Run = lambda state: scatter(state, buffer, index(state), value(state), place)  # noqa: E731
        if plan is None:
            return general
        extent, order, shape = box_shape(plan, box)
        if shape != box:  # an axis of the loop is in no index: several elements meet
            return general
        start = self.integers([each.start for each in plan])
        on_chip = buffer.scope != "global"
        plain = order == tuple(range(len(order))) and shape == extent
        axes = [each.axis for each in plan if each.axis is not None]
        axes += [k for k in range(len(box)) if k not in axes]
        inverse = tuple(axes)

        def turned(array: Any) -> Any:
            return np.broadcast_to(array, box).transpose(inverse).reshape(extent)

        def run(state: State) -> None:
            spot = [int(each) for each in start(state)]
            mask, doubt = state.mask, state.doubt
            if on_chip and mask is not None:
                general(state)
                return
            new = value(state)
            if not plain:
                new = numbers.spread(new, box, buffer.dtype).transpose(inverse).reshape(extent)
                mask = None if mask is None else turned(mask)
                doubt = None if doubt is None else (turned(doubt[0]), turned(doubt[1]))
            write_box(state, buffer, spot, extent, new, mask, doubt, place)

        return run

    def store_noted(self, at: Store, index: Run, value: Run) -> Run:
        """A store whose locations are compared with those of other statements of the loop."""
        buffer, place = at.buffer, at.place

        def run(state: State) -> None:
            new, where = copied(value(state)), index(state)
            note(state, buffer, where, new, place)
            scatter(state, buffer, where, new, place)

        return run

    # -- tiles
    def tile(self, at: Any) -> Run:
        meaning = MEANINGS[type(at)]
        if self.scope.parallel:
            word = at.spelling()
            text = "T.{word} works on whole tiles, not inside T.Parallel"
            raise LanguageError(text, word=word, at=at.place)
        scalars = {name: self.prepare(each) for name, each in scalar_operands(at).items()}
        target = region_written(at)
        readers = {id(each): self.region(at, each) for each in (*regions_read(at), target)}
        apply, place, buffer = self.numbers.tile(meaning), at.place, target.buffer
        start, extent = readers[id(target)]

        def run(state: State) -> None:
            given = {name: each(state) for name, each in scalars.items()}
            known = {name: getattr(each, "value", each) for name, each in given.items()}
            boxes: list[Any] = []
            for each in regions_read(at, known):
                first, size = readers[id(each)]
                corner = [int(k) for k in first(state)]
                boxes.append(read_box(state, each.buffer, corner, size, each.place or place))
            made = apply(at, *given.values(), *boxes)
            if np.ndim(getattr(made, "value", made)):
                made = made.reshape(extent)
            write_box(state, buffer, [int(k) for k in start(state)], extent, made, None, None, place)

        return run

    def region(self, at: Any, region: Region) -> tuple[Run, tuple[int, ...]]:
        """Start and extents of a box; a head address of a copy takes those of the other side."""
        if region.version is not None:
            raise too_late(f"versions of {region.buffer.name}", at.place)
        extent = region.extent
        if extent is None and isinstance(at, Copy):
            other = at.dst if region is at.src else at.src
            extent = aligned(other.extent or (1,) * other.buffer.rank, region, at)
        elif extent is None:
            raise IRError("T.{word} of a head address has no extents", word=at.spelling(), at=at.place)
        return self.integers(region.start), extent


def aligned(extent: tuple[int, ...], head: Region, at: Copy) -> tuple[int, ...]:
    """The extents of a head address: those of the other side, aligned to the right."""
    rank = head.buffer.rank
    extra = max(0, len(extent) - rank)
    if any(each != 1 for each in extent[:extra]):
        raise IRError(
            "a tile of extents {extent} does not fit {name}, which has rank {rank}", at=at.place,
            extent=extent, name=head.buffer.name, rank=rank,
        )  # fmt: skip
    return (1,) * (rank - len(extent) + extra) + extent[extra:]


def uneven(state: State, name: str, body: Run, first: Any, last: Any, by: Any) -> None:
    """A loop inside T.Parallel whose bounds differ between elements: each leaves when its own ends."""
    count = np.maximum(0, -((np.asarray(first) - last) // by))
    for trip in range(int(np.max(count, initial=0))):
        state.names[name] = first + trip * by
        with state.narrowed(count > trip) as some:
            if some:
                body(state)
