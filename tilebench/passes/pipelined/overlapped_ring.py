"""A ring between two groups, in which a step's first product is issued before the step before is done.

Attention multiplies twice in a step, and the second product waits for what is made of the first. Each as it
stands, units that multiply have nothing to do meanwhile. With `overlap` a step begins with the first product
of the *next* iteration and issues the last one of its own behind it; what lies between the two, of the next
iteration, is done while the last one runs:

    gemm s(0); softmax(0)                              in front of the loop
    for k: gemm s(k + 1); gemm acc(k); softmax(k + 1)  what touches acc, or what its product reads, at the end
    gemm acc(last)                                     behind it

Tiles of the two products lie a step apart then, so that each has barriers of its own: a tile is released
behind the wait for the product that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import ONE, AllocStmt, Expr, If, Let, Stmt, const_of, names_read_and_written, substitute
from ...ir.dtypes import float32
from ...ir.names import Names
from ...language.accumulation import gemm_sum_dtype
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.settle import Settle
from ...language.lowered.tokens import Commit, Wait
from ...language.memory import AllocFragment, AllocShared
from ...language.reduce import Reduce
from ...language.structure import Pipelined, Serial
from ...machine import Machine
from ..context import Context
from ..laid_out.choose_instructions import row_of
from .copy_barriers import Filling
from .turns import length_of
from .versions import at_version, without_waits

# Parts of an iteration, in the order in which it goes through them.
FIRST, BETWEEN, LAST = range(3)


@dataclass(frozen=True)
class Parts:
    """An iteration in parts: up to its first product, what is done while the last one of the iteration before
    runs, what is done behind that, and the last one.
    """

    first: tuple[Stmt, ...]
    early: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    last: Gemm

    def only_multiplied(self, name: str) -> bool:
        """Whether no thread reads a tile itself, but the two products alone, which are waited for."""
        others = (*self.first[:-1], *self.early, *self.late)
        return name not in set().union(*names_read_and_written(others))

    def uses(self, name: str) -> list[int]:
        """The parts that use a tile."""
        parts = (self.first, (*self.early, *self.late), (self.last,))
        return [k for k, part in enumerate(parts) if name in set().union(*names_read_and_written(part))]


def parts_of(loop: Pipelined, copies: Sequence[Copy], machine: Machine) -> tuple[Parts | None, str]:
    """The parts of a loop's iteration without `copies`, or why it has none."""
    moved = {id(copy) for copy in copies}
    body = [s for s in without_waits(loop.body) if id(s) not in moved and not isinstance(s, _ALLOCATED)]
    products = [s for s in body if isinstance(s, Gemm) and row_of(s, machine).asynchronous]
    tokens = {product.token for product in products}
    body = [s for s in body if not (isinstance(s, (Commit, Wait)) and s.token in tokens)]
    if loop.condition is not None:
        return None, "the loop may be left before its end"
    if len(products) != 2 or body[-1] is not products[1]:
        return None, "an iteration has two products that go on by themselves, of which one is its end"
    if any(isinstance(s, (AllocStmt, Let)) for s in body):
        return None, "an iteration has a name of its own for a number"
    for product in products:
        if row_of(product, machine).exact_k and not product.fast_accum:
            return None, f"{product.c.buffer.name} is added up in ordinary registers"
        if gemm_sum_dtype(product.c.buffer.dtype) != product.c.buffer.dtype:
            return None, f"the sum {product.c.buffer.name} is rounded in each step"
    last, at = products[1], next(k for k, s in enumerate(body) if s is products[0])
    first, between = body[: at + 1], body[at + 1 : -1]
    if shared := _in_the_way(first, [last]):
        return None, f"both products use {', '.join(sorted(shared))}"
    early, late = _behind(between, last)
    return Parts(tuple(first), tuple(early), tuple(late), last), ""


_ALLOCATED = (AllocFragment, AllocShared)


def _in_the_way(some: Sequence[Stmt], others: Sequence[Stmt]) -> set[str]:
    """The buffers that statements use together, and one of them writes."""
    (read, written), (other_read, other_written) = (names_read_and_written(s) for s in (some, others))
    return written & (other_read | other_written) | read & other_written


def _behind(between: Sequence[Stmt], last: Gemm) -> tuple[list[Stmt], list[Stmt]]:
    """What may be done while a product runs, and what it, or something of that, keeps behind its end."""
    early: list[Stmt] = []
    late: list[Stmt] = []
    for statement in between:
        keeps = _in_the_way([statement], [last, *late])
        (late if keeps else early).append(statement)
    return early, late


def overlapped(
    loop: Pipelined, copies: Sequence[Copy], filled: Callable[[str], Filling], names: Names, context: Context
) -> OverlappedRing | None:
    """The ring of a loop whose schedule asks for it; None, with a remark, where there are no such parts.

    `filled` makes the barriers of tiles, by a name.
    """
    parts, why = parts_of(loop, copies, context.machine)
    if parts is None:
        context.remark("make_ring", "missed", f"steps do not overlap: {why}", loop)
        return None
    alike: dict[tuple[int, ...], list[Copy]] = {}
    for copy in copies:
        alike.setdefault(tuple(parts.uses(copy.dst.buffer.name)), []).append(copy)
    base, sums = loop.vars[0].name, parts.first[-1].c.buffer.name  # type: ignore[attr-defined]
    context.remark(
        "make_ring", "applied", f"steps overlap: the product into {sums} of the next iteration is issued in "
        f"front of the one into {parts.last.c.buffer.name}", loop,
    )  # fmt: skip
    fillings = tuple(
        (filled("_".join(copy.dst.buffer.name for copy in alike[uses])), tuple(alike[uses]))
        for uses in sorted(alike)
    )
    return OverlappedRing(loop, fillings, parts, names.fresh(f"{base}_products"))


@dataclass(frozen=True)
class OverlappedRing:
    """One loop, the copies that another group issues with the barriers of each, and its products' token."""

    loop: Pipelined
    fillings: tuple[tuple[Filling, tuple[Copy, ...]], ...]
    parts: Parts
    token: str

    @property
    def buffers(self) -> set[str]:
        return {copy.dst.buffer.name for _, copies in self.fillings for copy in copies}

    def bring(self) -> tuple[Stmt, ...]:
        """The loop of the group that fills."""
        body: list[Stmt] = []
        step, place = self._step(self._index), self.loop.place
        for filling, copies in self.fillings:
            moved = [self._pointed(copy, self._index) for copy in copies]
            body += [filling.await_release(step, place), *filling.issued(moved, step)]
        loop = self.loop
        serial = Serial(loop.stop, loop.vars, tuple(body), start=loop.start, place=place)
        return (serial, *self._counted())

    def compute(self) -> tuple[Stmt, ...]:
        """The loop of the group that computes, with what stands in front of it and behind it."""
        loop = self.loop
        allocated = tuple(s for s in loop.body if isinstance(s, _ALLOCATED))
        own, following = self._index, self._index + 1
        inside = (
            *self._moved(self.parts.first, following),
            self._commit(),
            *self._last(own),
            self._wait(pending=1),
            *self._released(FIRST, following),
            *self._part(BETWEEN, self.parts.early, following),
            # A compiler takes a wait in front of arithmetic that does not need it. What was computed stays
            # where it is: the sums of the first product are named again, what is made of a row of them is
            # settled, and waiting for tiles is a branch.
            self._wait(pending=1),
            *self._settled(),
            *self._ahead(following + 1),
            self._wait(),
            *self._released(LAST, own),
            *self._moved(self.parts.late, following),
            *self._released(BETWEEN, following),
        )
        body = (
            *self._begun(),
            *self._ahead(loop.start + 1),
            Serial(loop.stop - ONE, loop.vars, inside, start=loop.start, place=loop.place),
            *self._last(loop.stop - ONE),
            self._wait(),
            *self._released(LAST, loop.stop - ONE),
        )
        length = const_of(length_of(loop))
        if length is None:
            body = (If(loop.start.compare("<", loop.stop), body, (), place=loop.place),)
        return (*allocated, *(body if length != 0 else ()), *self._counted())

    def _settled(self) -> tuple[Stmt, ...]:
        """The last sums over rows of the first product, which all that is computed of it goes into."""
        first = self.parts.first[-1]
        rows = [
            s
            for s in self.parts.early
            if isinstance(s, Reduce) and s.src.buffer.name == first.c.buffer.name  # type: ignore[attr-defined]
        ]
        return tuple(Settle(s.dst, place=s.place) for s in rows[-1:] if s.dst.buffer.dtype == float32)

    def _ahead(self, index: Expr) -> tuple[Stmt, ...]:
        """The waits for the tiles of a first product, if there is one of that index."""
        waits = self._awaited(FIRST, index)
        return (If(index.compare("<", self.loop.stop), waits, (), place=self.loop.place),) if waits else ()

    def _begun(self) -> tuple[Stmt, ...]:
        """The first iteration up to its last product."""
        begin = self.loop.start
        return (
            *self._first(begin),
            self._wait(),
            *self._released(FIRST, begin),
            *self._part(BETWEEN, (*self.parts.early, *self.parts.late), begin),
            *self._released(BETWEEN, begin),
        )

    def _first(self, index: Expr) -> tuple[Stmt, ...]:
        return (*self._part(FIRST, self.parts.first, index), self._commit())

    def _last(self, index: Expr) -> tuple[Stmt, ...]:
        return (*self._part(LAST, (self.parts.last,), index), self._commit())

    # -- parts of an iteration, for one index
    def _part(self, part: int, statements: Sequence[Stmt], index: Expr) -> tuple[Stmt, ...]:
        """Statements behind the waits for the tiles that they are the first to use."""
        return (*self._awaited(part, index), *self._moved(statements, index))

    def _awaited(self, part: int, index: Expr) -> tuple[Stmt, ...]:
        """The waits for tiles of which a part is the first use."""
        return tuple(
            f.awaited(self._step(index), self.loop.place) for f, uses in self._uses() if uses[0] == part
        )

    def _released(self, part: int, index: Expr) -> tuple[Stmt, ...]:
        """What stands behind the last use of tiles in a part."""
        found: list[Stmt] = []
        for filling, copies in self.fillings:
            names = [copy.dst.buffer.name for copy in copies]
            if self.parts.uses(names[0])[-1] == part:
                relaxed = all(self.parts.only_multiplied(name) for name in names)
                found.append(filling.released(self._step(index), self.loop.place, relaxed=relaxed))
        return tuple(found)

    def _uses(self) -> list[tuple[Filling, list[int]]]:
        return [(filling, self.parts.uses(copies[0].dst.buffer.name)) for filling, copies in self.fillings]

    def _moved(self, statements: Sequence[Stmt], index: Expr) -> tuple[Stmt, ...]:
        return tuple(self._pointed(statement, index) for statement in statements)

    def _pointed(self, statement: Any, index: Expr) -> Any:
        """A statement for one index, on the versions of its tiles."""
        if isinstance(statement, Gemm) and statement.token:
            statement = statement.but(token=self.token)
        moved = substitute(statement, {self.loop.vars[0].name: index})
        for filling, copies in self.fillings:
            names = {copy.dst.buffer.name for copy in copies}
            moved = at_version(moved, names, filling.version(self._step(index)))
        return moved

    # -- small things
    @property
    def _index(self) -> Expr:
        return self.loop.vars[0]

    def _step(self, index: Expr) -> Expr:
        return index - self.loop.start

    def _commit(self) -> Stmt:
        return Commit(self.token, by=self.parts.last.by, place=self.loop.place)

    def _wait(self, pending: int = 0) -> Stmt:
        return Wait(self.token, pending=pending, by=self.parts.last.by, place=self.loop.place)

    def _counted(self) -> tuple[Stmt, ...]:
        steps = length_of(self.loop)
        return tuple(s for filling, _ in self.fillings for s in filling.counted(steps, self.loop.place))
