"""A step of a ring fetches the first operands of the next one before its own last products.

`wait, barrier, copies, for k1: fetch(k1); multiply(k1)` -> with two sets of operand registers, the wait and
the barrier of the next step stand in front of this one's last products, and its first fetch too:

    wait, barrier, fetch(0)
    for ko: fetch(1), copies, multiply(0), ..., wait, barrier, fetch(0) of the next, multiply(last)

So the tensor cores have work while threads meet and shared memory answers. Measured on an H200, products
of 8192x8192x8192 in steps of 64, beside the same in steps of 32: 1 to 6 % for two stages, which it is for.
Deeper rings issue their copies behind the products, which takes the same stall away (1 to 2 % would be left,
for twice the time of the compiler); in steps of 32, of two parts, it loses 4 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir import (
    TRUE,
    Arith,
    Buffer,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    effects_in,
    map_bodies,
    rewrite,
    substitute,
)
from ...ir.expr_walks import mentions
from ...ir.names import Names
from ...ir.stmt import statements
from ...language.lowered.mbarriers import MbarrierWait
from ...language.lowered.threads import SyncThreads
from ...language.memory import AllocLocal
from ...language.structure import Serial, Unroll
from ..context import Context

NAME = "rotate_steps"
# Parts of a step with which it pays, and registers that sums and two sets of operands may take together.
PARTS = 4
MOST_REGISTERS = 192
# A loop of so many steps has filled every version of its ring.
SURELY_FILLED = 16


def rotate_steps(function: Function, context: Context) -> Function:
    """The function whose rings of products fetch ahead over the end of a step."""
    names = Names(function)
    sizes = {
        s.buffer.name: s.buffer.size * s.buffer.dtype.bits // 32
        for s in statements(function.body)
        if isinstance(s, AllocLocal)
    }

    def step(node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node
        node = map_bodies(node, step)
        found = _matched(node, sizes) if isinstance(node, Serial) else None
        if found is None:
            return node
        said = "the first operands of a step are fetched in front of the last products of the step before"
        context.remark(NAME, "applied", said, node)
        return _with_fresh_names(found, names).rotated(names)

    return step(function)


@dataclass(frozen=True)
class _Step:
    """A loop over steps: what it waits for, its copies, names and registers, and the parts of its product."""

    loop: Serial
    waits: tuple[Stmt, ...]
    copies: tuple[Stmt, ...]
    named: tuple[Stmt, ...]
    parts: Unroll
    fetch: tuple[Stmt, ...]
    multiply: tuple[Stmt, ...]

    def rotated(self, names: Names) -> tuple[Stmt, ...]:
        """What stands in place of the loop."""
        loop, count = self.loop, const_of(self.parts.stop) or 0
        own = _written(self.fetch)
        second = {name: Buffer(names.fresh(name), b.shape, b.dtype, b.scope) for name, b in own.items()}
        ko = loop.vars[0]
        first = tuple(substitute(s, {ko.name: loop.start}) for s in (*self.waits, *self.fetch_of(0, {})))
        following = tuple(substitute(s, {ko.name: ko + 1}) for s in self.fetch_of(0, {}))
        body: list[Stmt] = []
        for part in range(count):
            if part + 1 < count:
                body += self.fetch_of(part + 1, second if part % 2 == 0 else {})
            if part == 0:
                body += self.copies
            if part + 1 == count:
                body += self.waits
                body += following if self._surely() else _if_more(loop, following)
            body += self._part(self.multiply, part, second if part % 2 else {})
        allocs = tuple(AllocLocal(buffer, place=loop.place) for buffer in second.values())
        head: tuple[Stmt, ...] = (*self.named, *allocs)
        if not self._surely():
            first = (*first[: len(self.waits)], *_guarded(loop, first[len(self.waits) :]))
        return (*head, *first, loop.but(body=tuple(body)))

    def fetch_of(self, part: int, second: dict[str, Buffer]) -> list[Stmt]:
        """The operands of a part, into one of the two sets of registers."""
        return self._part(self.fetch, part, second)

    def _part(self, body: Sequence[Stmt], part: int, second: dict[str, Buffer]) -> list[Stmt]:
        own = [_folded(substitute(s, {self.parts.vars[0].name: Const(part)})) for s in body]
        return [_renamed(s, second) for s in own] if second else own

    def _surely(self) -> bool:
        """Whether the loop has steps enough for each version of its ring to have been filled."""
        start, stop = const_of(self.loop.start), const_of(self.loop.stop)
        return start is not None and stop is not None and stop - start >= SURELY_FILLED


def _with_fresh_names(step: _Step, names: Names) -> _Step:
    """The same, whose names may stand in front of the loop: what is inside may use theirs again."""
    new: dict[str, Expr] = {}
    named: list[Stmt] = []
    for statement in step.named:
        moved = substitute(statement, new) if new else statement
        if isinstance(moved, Let):
            variable = Var(names.fresh(moved.var.name), type=moved.var.type)
            new[moved.var.name] = variable
            moved = moved.but(var=variable)
        named.append(moved)
    fetch, multiply = (tuple(substitute(s, new) for s in part) for part in (step.fetch, step.multiply))
    return replace(step, named=tuple(named), fetch=fetch, multiply=multiply)


def _if_more(loop: Serial, body: Sequence[Stmt]) -> list[Stmt]:
    return [If((loop.vars[0] + 1).compare("<", loop.stop), tuple(body), (), place=loop.place)]


def _guarded(loop: Serial, body: Sequence[Stmt]) -> list[Stmt]:
    some = loop.start.compare("<", loop.stop)
    return list(body) if some == TRUE else [If(some, tuple(body), (), place=loop.place)]


def _folded(statement: Stmt) -> Stmt:
    """The statement without terms of the first part, which are zero."""

    def change(node: Any) -> Any:
        zero = isinstance(node, Arith) and node.op == "^" and node.args[1] == Const(0)
        return node.args[0] if zero else node

    return rewrite(statement, change)


def _renamed(statement: Stmt, new: dict[str, Buffer]) -> Stmt:
    def change(node: Any) -> Any:
        if isinstance(node, (Region, Load, Store)) and node.buffer.name in new:
            return node.but(buffer=new[node.buffer.name])
        return node

    return rewrite(statement, change)


def _written(body: Sequence[Stmt]) -> dict[str, Buffer]:
    return {e.buffer.name: e.buffer for s in body for e in effects_in(s) if e.writes}


def _matched(loop: Serial, sizes: dict[str, int]) -> _Step | None:
    """A loop that is a ring of products alone, and worth it."""
    meets = [k for k, s in enumerate(loop.body) if isinstance(s, SyncThreads)]
    parts = loop.body[-1] if loop.body else None
    if len(meets) != 1 or not isinstance(parts, Unroll) or const_of(loop.step) != 1 or loop.condition:
        return None
    if any(isinstance(s, MbarrierWait) for s in statements(loop.body)):
        return None  # a step's tiles are there behind its own barrier alone
    waits, rest = loop.body[: meets[0] + 1], loop.body[meets[0] + 1 : -1]
    named = tuple(s for s in rest if isinstance(s, (Let, AllocLocal)))
    copies = tuple(s for s in rest if not isinstance(s, (Let, AllocLocal)))
    count = const_of(parts.stop)
    if not copies or count is None or count != PARTS or const_of(parts.start) != 0:
        return None
    reads = [k for k, s in enumerate(parts.body) if any(e.buffer.scope == "shared" for e in effects_in(s))]
    if not reads:
        return None
    fetch, multiply = parts.body[: reads[-1] + 1], parts.body[reads[-1] + 1 :]
    step = _Step(loop, waits, copies, named, parts, fetch, multiply)
    return step if _is_sound(step, sizes) else None


def _is_sound(step: _Step, sizes: dict[str, int]) -> bool:
    """Whether the parts may change places, and their registers are there."""
    fetched, summed = _written(step.fetch), _written(step.multiply)
    own = {s.buffer.name for s in step.named if isinstance(s, AllocLocal)}
    if not step.multiply or not set(fetched) <= own or set(fetched) & set(summed):
        return False
    loop, ko = step.loop, step.loop.vars[0].name
    quiet = all(not list(effects_in(s)) for s in step.waits)
    apart = all(e.buffer.scope in ("shared", "global") for s in step.copies for e in effects_in(s))
    # Names of a step are made in front of the loop.
    outside = all(_says_nothing_of(s, ko) for s in step.named if isinstance(s, Let))
    needed = sum(sizes.get(name, 0) for name in {*summed}) + 2 * sum(sizes.get(name, 0) for name in fetched)
    inner = any(isinstance(s, (Let, AllocLocal)) for s in (*step.fetch, *step.multiply))
    return quiet and apart and outside and not inner and needed <= MOST_REGISTERS and loop.condition is None


def _says_nothing_of(statement: Let, name: str) -> bool:
    return not mentions(statement.value, name) and not list(effects_in(statement))
