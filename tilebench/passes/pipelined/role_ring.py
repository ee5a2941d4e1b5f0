"""A ring between two groups of threads: one fills versions of tiles, the other computes on them.

    for ko in T.serial(64):                               for ko in T.serial(64):
        T.mbarrier_wait(ko_empty.version(ko % 4), ...)        T.mbarrier_wait(ko_full.version(ko % 4), ...)
        T.expect_copies(ko_full.version(ko % 4), n)           T.gemm(A_s.version(ko % 4), ...)
        T.copy(A[...], A_s.version(ko % 4), ...)              T.release_tiles(ko_empty.version(ko % 4))

Neither has a prologue: whoever fills is ahead by as many steps as there are versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import IRError, ScheduleError
from ...ir import AllocStmt, Expr, If, Stmt, effects_in
from ...language.copy import Copy
from ...language.structure import Pipelined, Serial, ThreadGroup
from ...machine import Machine
from .copy_barriers import Filling, in_boxes
from .products_ahead import ProductsAhead
from .turns import length_of
from .versions import at_version, without_waits


@dataclass(frozen=True)
class RoleRing:
    """One loop, the copies of it that another group issues, and the barriers between the groups."""

    loop: Pipelined
    copies: tuple[Copy, ...]
    filling: Filling
    products: ProductsAhead

    @property
    def buffers(self) -> set[str]:
        return {copy.dst.buffer.name for copy in self.copies}

    @property
    def allocated(self) -> tuple[Stmt, ...]:
        """What the loop allocates of the ring, which outlives an iteration."""
        loop = self.loop
        return tuple(s for s in loop.body if isinstance(s, AllocStmt) and s.buffer.name in self.buffers)

    def bring(self) -> tuple[Stmt, ...]:
        """The loop of the group that fills."""
        step, place = self._step, self.loop.place
        moved = [at_version(copy, self.buffers, self.filling.version(step)) for copy in self.copies]
        body = (self.filling.await_release(step, place), *self.filling.issued(moved, step))
        return (self._serial(body), *self._counted())

    def compute(self) -> tuple[Stmt, ...]:
        """The loop of the group that computes.

        What a product that goes on reads is released in the next step, behind the wait for it.
        """
        step, place, filling = self._step, self.loop.place, self.filling
        moved_out = {id(statement) for statement in (*self.copies, *self.allocated)}
        rest = [s for s in without_waits(self.loop.body) if id(s) not in moved_out]
        issued = self.products.issued(rest)
        moved = [at_version(statement, self.buffers, filling.version(step)) for statement in issued]
        body: tuple[Stmt, ...] = (filling.awaited(step, place), *moved, *self.products.waited())
        behind: tuple[Stmt, ...] = ()
        if self.products.products:
            relaxed = not self._read_by_threads(rest)
            last = filling.released(step - 1, place, relaxed=relaxed)
            body = (*body, If(self.loop.start.compare("<", self.loop.vars[0]), (last,), (), place=place))
            final = filling.released(length_of(self.loop) - 1, place, relaxed=relaxed)
            behind = self.products.drained(final)
        else:
            body = (*body, filling.released(step, place, relaxed=False))
        return (*self.allocated, self._serial(body), *behind, *self._counted())

    def _read_by_threads(self, body: Sequence[Stmt]) -> bool:
        """Whether something else than products that go on reads the tiles."""
        own = {id(product) for product in self.products.products}
        effects = [effect for s in body if id(s) not in own for effect in effects_in(s)]
        return any(effect.reads and effect.buffer.name in self.buffers for effect in effects)

    @property
    def _step(self) -> Expr:
        return self.loop.vars[0] - self.loop.start

    def _serial(self, body: tuple[Stmt, ...]) -> Stmt:
        loop = self.loop
        return Serial(loop.stop, loop.vars, body, start=loop.start, place=loop.place)

    def _counted(self) -> tuple[Stmt, ...]:
        return self.filling.counted(length_of(self.loop), self.loop.place)


def warps_that_compute(reader: Stmt, copies: Sequence[Copy], path: Sequence[Stmt], machine: Machine) -> int:
    """How many warps read what is brought. Refuses a producer for a copy that completes on no barrier."""
    for copy in copies:
        if not in_boxes(copy):
            name = copy.by.name if copy.by is not None else ""
            raise ScheduleError(
                "no warps can be set apart to bring {tile}: {name} copies it, which completes on no barrier",
                at=copy.place, tile=copy.dst.buffer.name, name=name,
                hint="the remarks say why it does not go in boxes; leave warp_specialize out, or mend that",
            )  # fmt: skip
    group = next((s for s in reversed(path) if isinstance(s, ThreadGroup)), None)
    if group is None or group.count is None:
        raise IRError("tiles that a producer brings are read in the group that computes", at=reader.place)
    return group.count // machine.warp
