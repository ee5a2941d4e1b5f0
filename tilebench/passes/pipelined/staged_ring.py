"""The pipeline of a loop whose statements have stages of their own: prologue, steps, and versions of tiles.

With stages 0, 1 and 2 a step for iteration `k` runs what has stage 2 for `k`, stage 1 for `k + 1` and stage 0
for `k + 2`, in the order that the kernel gave. In front of the loop stand the steps in which the first
iterations fill it; where there is no such iteration any more, a statement is passed by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import FALSE, TRUE, AllocStmt, Const, Expr, If, Let, Stmt, substitute
from ...language.copy import Copy
from ...language.lowered.decisions import Instr
from ...language.lowered.tokens import Commit, Wait
from ...language.structure import Pipelined, Serial
from ..analysis.stages import Item, items_of, versions_of
from .copy_barriers import Filling, in_boxes
from .versions import at_version, without_waits


@dataclass(frozen=True)
class StagedRing:
    """One loop. `asynchronous` are copies, by identity, issued under `token` by the instruction `by`.

    `fillings` are the barriers of tiles, by their names, that copies in boxes fill.
    """

    loop: Pipelined
    token: str
    by: Instr | None
    asynchronous: frozenset[int]
    fillings: Mapping[str, Filling]

    @property
    def items(self) -> list[Item]:
        return sorted(items_of(self.loop), key=lambda item: item.order)

    @property
    def versions(self) -> dict[str, int]:
        return versions_of(self.items)

    def statements(self) -> tuple[Stmt, ...]:
        """What stands in place of the loop."""
        loop, last = self.loop, max(item.stage for item in self.items)
        allocated = [statement for statement in loop.body if isinstance(statement, AllocStmt)]
        filling = [statement for turn in range(last) for statement in self._filling(turn)]
        body: list[Stmt] = self._waits(self.items)
        for item in self._issued_last(self.items):
            if item is None:
                body.append(Commit(self.token, by=self.by, place=loop.place))
                continue
            body += self._run(item, loop.vars[0] + (last - item.stage), always=item.stage == last)
        main = Serial(loop.stop, loop.vars, tuple(body), start=loop.start, place=loop.place)
        drained = (Wait(self.token, by=self.by, place=loop.place),) if self.token else ()
        return (*allocated, *filling, main, *drained)

    def _filling(self, turn: int) -> list[Stmt]:
        """A step in front of the loop: stages up to `turn`, each for its iteration."""
        active = [item for item in self.items if item.stage <= turn]
        body = self._waits(active)
        for item in self._issued_last(active):
            if item is None:
                body.append(Commit(self.token, by=self.by, place=self.loop.place))
            else:
                body += self._run(item, self.loop.start + (turn - item.stage))
        return body

    def _run(self, item: Item, iteration: Expr, always: bool = False) -> list[Stmt]:
        """A statement for one iteration, unless there is none."""
        loop, step = self.loop, iteration - self.loop.start
        body: tuple[Any, ...] = without_waits(item.body)
        if self._has_copy(item):
            body = tuple(s.but(token=self.token) if id(s) in self.asynchronous else s for s in body)
        names: dict[str, Expr] = {}
        for statement in loop.body:
            if isinstance(statement, Let):
                names[statement.var.name] = substitute(statement.value, names) if names else statement.value
        moved = [substitute(s, names) if names else s for s in body]
        moved = [substitute(s, {loop.vars[0].name: iteration}) for s in moved]
        moved = [at_version(s, set(), Const(0)) for s in moved]
        for name, count in self.versions.items():
            filling = self.fillings.get(name)
            version = step % count if filling is None else filling.version(step)
            moved = [at_version(s, {name}, version) for s in moved]
        moved = self._on_barriers(item, moved, step)
        exists = iteration.compare("<", loop.stop)
        if always or exists == TRUE:
            return moved
        return [] if exists == FALSE else [If(exists, tuple(moved), (), place=item.body[0].place)]

    def _on_barriers(self, item: Item, body: Sequence[Any], step: Expr) -> list[Stmt]:
        """Copies in boxes on their barriers, and in front of what uses their tiles the wait for those."""
        filled = {s.dst.buffer.name for s in body if in_boxes(s)}
        place = item.body[0].place
        used = [name for name in self.fillings if name in item.touches and name not in filled]
        out: list[Stmt] = [self.fillings[name].awaited(step, place) for name in used]
        for statement in body:
            name = statement.dst.buffer.name if in_boxes(statement) else ""
            out += self.fillings[name].issued([statement], step) if name else [statement]
        return out

    # -- what is in flight
    def _has_copy(self, item: Item) -> bool:
        return any(id(statement) in self.asynchronous for statement in item.body)

    def _issued_last(self, items: Sequence[Item]) -> list[Item | None]:
        """The items with a None behind the last of them that issues something."""
        issuing = [k for k, item in enumerate(items) if self._has_copy(item)]
        if not issuing:
            return list(items)
        return [*items[: issuing[-1] + 1], None, *items[issuing[-1] + 1 :]]

    def _waits(self, active: Sequence[Item]) -> list[Stmt]:
        """The wait at the head of a step: groups may be left of which nobody of the step reads yet."""
        ahead: list[int] = []
        for item in self.items:
            for copy in item.body if self._has_copy(item) else ():
                if isinstance(copy, Copy) and id(copy) in self.asynchronous:
                    name = copy.dst.buffer.name
                    readers = [o.stage for o in active if name in o.touches and o.stage > item.stage]
                    ahead += [stage - item.stage for stage in readers]
        if not ahead:
            return []
        return [Wait(self.token, pending=min(ahead) - 1, by=self.by, place=self.loop.place)]
