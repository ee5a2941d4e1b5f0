"""Pipelined loops become plain ones around a ring of buffers, and what is in flight gets its waits.

`for k in T.Pipelined(n, plan=T.Plan(3))` -> a prologue that fills two versions, and
`for k in T.serial(n)`, which fills version `(k + 2) % 3` for a later step while it computes on
version `k % 3`. A loop of one stage becomes a serial loop.

Copies by an asynchronous instruction are issued under a token, one group a step, and a step begins by
waiting for its own group. A copy that passes through registers is loaded into a fragment in front of what
a step computes and stored behind that, so that nobody waits for memory. A version is filled again only
after what reads it is done: a synchronous reader by the barrier at the head of a step, an asynchronous one
by a wait for its token before that (`products_ahead`). Asynchronous work outside of a ring is waited for at
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import IRError
from ...ir import (
    ONE,
    ZERO,
    Buffer,
    Const,
    Expr,
    Function,
    If,
    OpStmt,
    Region,
    Stmt,
    Var,
    const_of,
    map_bodies,
    substitute,
)
from ...ir.names import Names
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import EVERYONE, PRODUCER, Instr
from ...language.lowered.tokens import BY_HAND, Commit, Wait
from ...language.memory import AllocFragment, AllocShared
from ...language.structure import KernelLaunch, Pipelined, Serial, Unroll
from ..analysis.stages import is_staged, items_of, opened, versions_of
from ..bounded.plan_pipeline import check_plans
from ..context import Context
from ..laid_out.choose_instructions import row_of, takes_instruction
from .carried_tiles import last_reader
from .copy_barriers import CopyBarriers, Filling, in_boxes
from .overlapped_ring import overlapped
from .products_ahead import ProductsAhead, ahead_of
from .role_ring import RoleRing, warps_that_compute
from .split_roles import has_producer, with_producer
from .staged_ring import StagedRing
from .turns import length_of
from .versions import at_version, waited, without_waits

NAME = "make_ring"
# Registers of a thread in which tiles may be on their way, of the 255 that there are.
MOST_REGISTERS = 32


def make_ring(function: Function, context: Context) -> Function:
    """The function without pipelined loops, in which everything asynchronous is waited for."""
    check_plans(function)
    rings = _Rings(function, context)
    return rings.with_versions(rings.statement(function))


@dataclass(frozen=True)
class _Ring:
    """One loop: its copies that run ahead, the buffers they fill, and the token of asynchronous ones."""

    loop: Pipelined
    copies: tuple[Copy, ...]
    stages: int
    token: str
    # Those of the copies, by identity, that are done only when they have been waited for.
    asynchronous: frozenset[int]
    # Those that are issued behind what a step computes.
    late: frozenset[int]
    # The fragment that each of the others is loaded into, by the identity of the copy.
    registers: dict[int, AllocFragment]
    products: ProductsAhead
    # Those that go in boxes, and their barriers.
    boxed: tuple[Copy, ...]
    filling: Filling | None

    def version(self, step: Expr) -> Expr:
        """The version of the tiles of a step, counted from the loop's first."""
        return step % self.stages if self.filling is None else self.filling.version(step)

    def fetch_boxes(self, index: Expr, step: Expr) -> tuple[Stmt, ...]:
        """The copies in boxes for an iteration, the step of that number."""
        if self.filling is None:
            return ()
        name = self.loop.vars[0].name
        copies = [substitute(copy, {name: index}) for copy in self.boxed]
        versions = [at_version(copy, self.buffers, self.version(step)) for copy in copies]
        return self.filling.issued(versions, step)

    @property
    def buffers(self) -> set[str]:
        return {copy.dst.buffer.name for copy in self.copies}

    @property
    def by(self) -> Instr:
        """The asynchronous instruction of copies that have one."""
        return next(Instr(copy.by.name) for copy in self.copies if copy.by and id(copy) in self.asynchronous)

    def fetch(self, step: Expr, version: Expr, last: bool | None = None) -> tuple[Stmt, ...]:
        """The copies of one step, into one version; or what of them comes last in a step, or the rest."""
        name = self.loop.vars[0].name
        own = [copy for copy in self.copies if not in_boxes(copy)]
        parts = [part for copy in own for part in self._parts(copy, last)]
        return tuple(at_version(substitute(part, {name: step}), self.buffers, version) for part in parts)

    def _parts(self, copy: Copy, last: bool | None) -> tuple[Copy, ...]:
        if id(copy) in self.registers and last is not None:
            fragment = self.registers[id(copy)].buffer
            whole = Region(fragment, (ZERO,) * fragment.rank, extent=fragment.extents)
            own: dict[str, Any] = {"by": Instr("ld.st"), "coalesced_width": copy.coalesced_width}
            return (copy.but(src=whole, src_within=None, **own) if last else copy.but(dst=whole, **own),)
        if last is not None and last != (id(copy) in self.late):
            return ()
        return (copy.but(token=self.token if id(copy) in self.asynchronous else ""),)

    def committed(self) -> tuple[Stmt, ...]:
        """What closes the group of one step."""
        return (Commit(self.token, by=self.by, place=self.loop.place),) if self.token else ()


class _Rings:
    def __init__(self, function: Function, context: Context) -> None:
        self.context = context
        self.names = Names(function)
        # How many versions each ringed buffer has.
        self.versions: dict[str, int] = {}
        self.barriers = CopyBarriers(self.names)
        # The statements around the one at hand, outermost first.
        self.path: list[Any] = []
        # What a producer does, by the variable of its loops and the identity of copies outside of them.
        self.brought: dict[str | int, tuple[Stmt, ...]] = {}
        # What stands behind the statements that read last what it brings outside of loops.
        self.behind: dict[int, tuple[Stmt, ...]] = {}

    def statement(self, node: Any) -> Any:
        done, behind = self.alone(node), self.behind.get(id(node))
        return done if behind is None else (*(done if isinstance(done, tuple) else (done,)), *behind)

    def alone(self, node: Any) -> Any:
        if in_boxes(node) and node.dst.buffer.scope == "shared":
            return self.in_boxes(node)
        if isinstance(node, OpStmt) and self.is_asynchronous(node):
            return node if getattr(node, "token", "") == BY_HAND else waited(node)
        if isinstance(node, Function):
            return map_bodies(node, self.statement)
        self.path.append(node)
        below = map_bodies(node, self.statement)
        self.path.pop()
        if isinstance(node, KernelLaunch):
            body = with_producer(node, below.body, self.brought)
            end = self.barriers.at_the_end(node.place)
            return below.but(body=(*self.barriers.statements(), *body, *end))
        return self.pipelined(below) if isinstance(node, Pipelined) else below

    def in_boxes(self, copy: Copy) -> tuple[Stmt, ...] | Copy:
        """A copy in boxes that is waited for at once; one of a ring is left to that."""
        if copy.at_stage is not None or copy.barrier is not None:
            return copy
        base, place = copy.dst.buffer.name, copy.place
        reader = last_reader(copy, self.path)
        readers = warps_that_compute(copy, (), self.path, self.context.machine) if reader is not None else 0
        filling = self.barriers.filling(base, 1, self.path, ONE, place, readers)
        issued, counted = filling.issued([copy], ZERO), filling.counted(ONE, place)
        if reader is None:
            return (*issued, filling.awaited(ZERO, place), *counted)
        self.brought[id(copy)] = (filling.await_release(ZERO, place), *issued, *counted)
        self.behind[id(reader)] = (filling.released(ZERO, place, relaxed=False),)
        return filling.awaited(ZERO, place), *counted

    def with_versions(self, node: Any) -> Any:
        """The function with its ringed buffers allocated as often as there are versions."""
        if isinstance(node, (AllocShared, AllocFragment)) and node.buffer.name in self.versions:
            return node.but(versions=self.versions[node.buffer.name])
        return map_bodies(node, self.with_versions)

    def is_asynchronous(self, statement: Any) -> bool:
        """Whether an operation's instruction is done only when it has been waited for."""
        if not takes_instruction(statement) or statement.by is None:
            return False
        rows = self.context.machine.instructions_for(statement.word)
        if all(not row.asynchronous for row in rows):
            return False
        return row_of(statement, self.context.machine).asynchronous

    # -- one loop
    def pipelined(self, loop: Pipelined) -> Any:
        plan = loop.plan
        if plan is not None and plan.roles not in (EVERYONE, PRODUCER):
            raise IRError(
                "a pipelined loop knows no roles {roles!r}", at=loop.place, roles=plan.roles,
                expected="roles={everyone!r} or {producer!r}", everyone=EVERYONE, producer=PRODUCER,
            )  # fmt: skip
        if is_staged(loop):
            return self.in_stages(loop)
        stages = plan.stages if plan else 1
        copies = tuple(
            statement
            for statement in loop.body
            if isinstance(statement, Copy) and statement.at_stage and statement.at_stage.number == 0
        )
        if stages < 2 or not copies:
            body = tuple(at_version(statement, set(), ZERO) for statement in loop.body)
            return Serial(
                loop.stop, loop.vars, body, start=loop.start, condition=loop.condition, place=loop.place
            )
        if has_producer(loop):
            return self.role_ring(loop, copies, stages)
        if loop.overlap:
            self.context.remark(NAME, "missed", "steps do not overlap: no producer brings the tiles", loop)
        return self.ring(loop, copies, stages)

    def role_ring(self, loop: Pipelined, copies: tuple[Copy, ...], stages: int) -> tuple[Stmt, ...]:
        """The loop of those who compute; that of the producer waits for its place."""
        readers = warps_that_compute(loop, copies, self.path, self.context.machine)
        base, steps = loop.vars[0].name, length_of(loop)
        blocks = max(copy.by.blocks for copy in copies if copy.by is not None)

        def filled(of: str) -> Filling:
            return self.barriers.filling(of, stages, self.path, steps, loop.place, readers, blocks)

        ring = overlapped(loop, copies, filled, self.names, self.context) if loop.overlap else None
        if ring is None:
            products = ahead_of(loop, {copy.dst.buffer.name for copy in copies}, self.names, self.context)
            ring = RoleRing(loop, copies, filled(base), products)
        self.brought[base] = ring.bring()
        for name in ring.buffers:
            self.versions[name] = max(stages, self.versions.get(name, 0))
        self.context.remark(
            NAME, "applied", f"{', '.join(sorted(ring.buffers))}: {stages} versions between two groups", loop,
            stages=stages, bytes=stages * sum(copy.dst.buffer.bytes for copy in copies),
        )  # fmt: skip
        return ring.compute()

    def in_stages(self, loop: Pipelined) -> tuple[Stmt, ...]:
        """The pipeline of a loop whose statements have stages of their own."""
        ahead = [s for s in opened(loop.body) if isinstance(s, Copy) and s.at_stage]
        boxed = [copy for copy in ahead if in_boxes(copy)]
        copies = [copy for copy in ahead if self.is_asynchronous(copy) and not in_boxes(copy)]
        token = self.names.fresh(loop.vars[0].name + "_ahead") if copies else ""
        by = Instr(copies[0].by.name) if copies and copies[0].by else None
        counts, steps = versions_of(items_of(loop)), length_of(loop)
        fillings: dict[str, Filling] = {}
        for copy in boxed:
            name = copy.dst.buffer.name
            fillings[name] = self.barriers.filling(name, counts.get(name, 1), self.path, steps, copy.place)
        ring = StagedRing(loop, token, by, frozenset([id(copy) for copy in copies]), fillings)
        for name, count in ring.versions.items():
            self.versions[name] = max(count, self.versions.get(name, 0))
        told = ", ".join(f"{name}: {count} versions" for name, count in sorted(ring.versions.items()))
        self.context.remark(NAME, "applied", told or "no tile needs versions", loop)
        counted = [s for filling in fillings.values() for s in filling.counted(steps, loop.place)]
        return (*ring.statements(), *counted)

    def ring(self, loop: Pipelined, copies: tuple[Copy, ...], stages: int) -> Any:
        # What is waited for already, because it stood in the loop, is issued without its wait here.
        boxed = tuple(copy for copy in copies if in_boxes(copy))
        alone = [copy for copy in copies if not in_boxes(copy)]
        asynchronous = frozenset([id(copy) for copy in alone if self.is_asynchronous(copy)])
        token = self.names.fresh(loop.vars[0].name + "_ahead") if asynchronous else ""
        registers = self._through_registers([copy for copy in alone if id(copy) not in asynchronous])
        products = ahead_of(loop, {copy.dst.buffer.name for copy in copies}, self.names, self.context)
        late = asynchronous
        if not products.products:
            late = frozenset([id(copy) for copy in copies if _is_late(copy, loop, stages, asynchronous)])
        filling, steps = None, length_of(loop)
        if boxed:
            filling = self.barriers.filling(loop.vars[0].name, stages, self.path, steps, loop.place)
        ring = _Ring(loop, copies, stages, token, asynchronous, late, registers, products, boxed, filling)
        for name in ring.buffers:
            # Loops in turn may share a buffer: it has the versions of the deepest.
            self.versions[name] = max(stages, self.versions.get(name, 0))
        # A ring outlives an iteration, so what is allocated inside moves in front of the prologue.
        allocated = tuple(
            statement
            for statement in loop.body
            if isinstance(statement, (AllocShared, AllocFragment)) and statement.buffer.name in ring.buffers
        )
        moved = {id(statement) for statement in (*copies, *allocated)}
        rest = [s for s in without_waits(loop.body) if id(s) not in moved]
        main = Serial(loop.stop, loop.vars, self._step(ring, rest), start=loop.start, place=loop.place)
        self.context.remark(
            NAME, "applied", f"{', '.join(sorted(ring.buffers))}: {stages} versions", loop, stages=stages,
            bytes=stages * sum(copy.dst.buffer.bytes for copy in copies),
        )  # fmt: skip
        # Groups that the last steps committed are empty, but a target may want them waited for.
        drained = (Wait(token, by=ring.by, place=loop.place),) if token else ()
        counted = filling.counted(steps, loop.place) if filling is not None else ()
        drained = (*products.drained(), *drained, *counted)
        return (*allocated, *registers.values(), *self._prologue(ring), main, *drained)

    def _through_registers(self, copies: Sequence[Copy]) -> dict[int, AllocFragment]:
        """A fragment for each copy that can be loaded early and stored late."""
        found: dict[int, AllocFragment] = {}
        left = MOST_REGISTERS
        for copy in copies:
            mapping, dtype = copy.map, copy.src.buffer.dtype
            if (copy.at_stage and copy.at_stage.last) or mapping is None or dtype.per_byte > 1:
                continue
            needed = -(-mapping.values * dtype.bits // 32)
            left -= needed
            name = copy.dst.buffer.name
            if left < 0:
                self.context.remark(
                    NAME,
                    "missed",
                    f"{name} is not loaded ahead into registers: more than {MOST_REGISTERS}",
                    copy,
                )
                break
            buffer = Buffer(self.names.fresh(f"{name}_next"), mapping.extents, dtype, "fragment")
            found[id(copy)] = AllocFragment(buffer, layout=mapping, place=copy.place)
            self.context.remark(
                NAME, "applied", f"{name} passes through registers: loaded in front of what a step computes, "
                "stored behind it", copy, registers=needed,
            )  # fmt: skip
        return found

    def _step(self, ring: _Ring, rest: Sequence[Stmt]) -> tuple[Stmt, ...]:
        loop, stages = ring.loop, ring.stages
        step = loop.vars[0] - loop.start
        ahead = loop.vars[0] + (stages - 1)
        head: list[Stmt] = []
        boxes = ring.fetch_boxes(ahead, step + (stages - 1))
        if boxes:
            boxes = (If(ahead.compare("<", loop.stop), boxes, (), place=loop.place),)
        # In front, where one thread holds nobody up; of a product that goes on, behind the wait for it.
        behind = boxes if ring.products.products else ()
        if ring.filling is not None:
            head += [*(() if behind else boxes), ring.filling.awaited(step, loop.place)]
        if ring.token:
            head.append(Wait(ring.token, pending=stages - 2, by=ring.by, place=loop.place))
        compute = tuple(
            at_version(statement, ring.buffers, ring.version(step))
            for statement in ring.products.issued(rest)
        )
        compute = (*compute, *ring.products.waited())
        parts = [ring.fetch(ahead, ring.version(step + (stages - 1)), last) for last in (False, True)]
        first, last = [
            (If(ahead.compare("<", loop.stop), part, (), place=loop.place),) if part else () for part in parts
        ]
        if last:
            return (*head, *first, *compute, *behind, *last, *ring.committed())
        return (*head, *first, *ring.committed(), *compute, *behind)

    def _prologue(self, ring: _Ring) -> tuple[Stmt, ...]:
        """The first `stages - 1` fills; fewer when the loop is shorter."""
        loop = ring.loop
        start, stop = const_of(loop.start), const_of(loop.stop)
        count = ring.stages - 1
        if start is not None and stop is not None and not ring.token:
            count = min(count, max(0, stop - start))
        if not count:
            return ()
        name = self.names.fresh(f"{loop.vars[0].name}_first")
        first = Var(name)
        index: Expr = loop.start + first
        version = first if ring.filling is None or ring.filling.before == ZERO else ring.version(first)
        body = (*ring.fetch_boxes(index, first), *ring.fetch(index, version))
        known = start is not None and stop is not None and stop - start >= count
        if not known:
            body = (If(index.compare("<", loop.stop), body, (), place=loop.place),)
        body = (*body, *ring.committed())
        if count == 1:
            return tuple(substitute(statement, {name: ZERO}) for statement in body)
        return (Unroll(Const(count), (first,), body, start=ZERO, step=ONE, place=loop.place),)


def _is_late(copy: Copy, loop: Pipelined, stages: int, asynchronous: frozenset[int]) -> bool:
    """Whether a copy that runs ahead is issued behind what a step computes.

    Where nobody says so: one that goes on by itself, in a step that multiplies tiles, if another step's is
    in flight meanwhile. Its addresses and issues stand between a barrier and the first products otherwise: a
    product of 8192 in float16 takes 2.50 ms on an H200 where it took 2.76, in tiles of 128x128x64.
    """
    told = copy.at_stage.last if copy.at_stage is not None else None
    if told is not None:
        return told
    multiplies = any(isinstance(statement, Gemm) for statement in loop.body)
    return id(copy) in asynchronous and stages > 2 and multiplies
