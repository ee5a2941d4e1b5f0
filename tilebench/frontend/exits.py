"""`break` and `continue`, taken apart as a loop is traced: what follows stands under a test, a flag ends it.

A body is gathered with `Exit` where the kernel leaves the turn. Behind it, `if c: continue` and the rest is
`if not c: rest`; `break` stores False in a flag, which is the condition of the loop. No stage has a jump: a
pass sees branches, stores and one more condition, and knows what to do with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LanguageError
from ..ir import FALSE, TRUE, Arith, Buffer, Expr, If, Load, Stmt, Store, attribute, node, walk
from ..ir.dtypes import boolean
from ..language.memory import AllocVar
from ..language.structure import Serial, ThreadGroup
from ..language.tracing.builder import Builder


@node
class Exit(Stmt):
    """Where a turn ends: with the loop (`break`) or before its next turn (`continue`)."""

    kind: str = attribute()


def leaves(body: Sequence[Stmt], kind: str = "") -> bool:
    """Whether some way through a body leaves the turn, by `kind` where one is given."""
    return any(
        (isinstance(each, Exit) and kind in ("", each.kind))
        or (isinstance(each, If) and (leaves(each.then, kind) or leaves(each.orelse, kind)))
        or (isinstance(each, ThreadGroup) and leaves(each.body, kind))
        for each in body
    )


def first_exit(body: Sequence[Stmt], kind: str = "") -> Exit | None:
    """The first place at which a body leaves its turn."""
    exits = (each for statement in body for each in walk(statement) if isinstance(each, Exit))
    return next((each for each in exits if kind in ("", each.kind)), None)


def flag(builder: Builder, name: str) -> Buffer:
    """A bool of each thread under a name that is free."""
    return Buffer(builder.unique(name), (), boolean, "var")


def holds(buffer: Buffer) -> Expr:
    """The value of a flag."""
    return Load(buffer, ())


class Exits:
    """The ways out of one loop. `going` is its flag, there when something breaks out of it."""

    def __init__(self, builder: Builder, body: tuple[Stmt, ...]) -> None:
        self.builder = builder
        self.going = flag(builder, "going") if leaves(body, "break") else None
        self.rest: Buffer | None = None
        # Behind a branch that may have left the turn by `continue` only a flag of the turn tells.
        if _parts(body, "continue"):
            self.rest = flag(builder, "rest")
        statements, _ = self.apart(body)
        head = () if self.rest is None else (AllocVar(self.rest, init=TRUE, place=builder.place),)
        self.body: tuple[Stmt, ...] = (*head, *statements)

    def apart(self, body: Sequence[Stmt]) -> tuple[tuple[Stmt, ...], bool]:
        """The body without exits, and whether every way through it leaves the turn."""
        for k, statement in enumerate(body):
            before, after = tuple(body[:k]), tuple(body[k + 1 :])
            if isinstance(statement, Exit):
                return (*before, *self.stores(statement)), True
            if isinstance(statement, ThreadGroup) and leaves((statement,)):
                _refuse_group(statement)
            if isinstance(statement, If) and leaves((statement,)):
                chosen, ends = self.branch(statement, after)
                return (*before, *chosen), ends
        return tuple(body), False

    def branch(self, branch: If, after: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], bool]:
        """A branch that leaves the turn on some way, and what follows where it has not."""
        sides = [(side, *self.apart(side)) for side in (branch.then, branch.orelse)]
        ends = [surely for _, _, surely in sides]
        rest, rest_ends = ((), True) if all(ends) else self.apart(after)
        if not any(ends):
            return (self.chosen(branch, sides[0][1], sides[1][1]), *self.unless_left(branch, rest)), False
        bodies = [
            done if surely else (*done, *(self.unless_left(branch, rest) if leaves(side) else rest))
            for side, done, surely in sides
        ]
        return (self.chosen(branch, *bodies),), rest_ends

    def chosen(self, branch: If, then: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> Stmt:
        """The branch, without a side that does nothing in front of the other."""
        if not then and orelse:
            return If(negated(branch.condition), orelse, (), place=branch.place)
        return If(branch.condition, then, orelse, place=branch.place)

    def unless_left(self, branch: If, rest: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """What runs behind a branch that may have left the turn."""
        if not rest:
            return ()
        told = self.rest if self.rest is not None else self.going
        assert told is not None
        return (If(holds(told), rest, (), place=branch.place),)

    def stores(self, leaving: Exit) -> tuple[Stmt, ...]:
        """What tells the loop, and the rest of the turn, that it has been left."""
        told = [self.rest, self.going if leaving.kind == "break" else None]
        return tuple(Store(each, (), FALSE, place=leaving.place) for each in told if each is not None)

    def around(self, loop: Any) -> tuple[Stmt, ...]:
        """The loop that goes on while nothing has broken out of it, all levels of a nest."""
        if self.going is None:
            return (loop,)
        return AllocVar(self.going, init=TRUE, place=loop.place), _while(loop, holds(self.going), self.body)


def _while(loop: Any, going: Expr, body: tuple[Stmt, ...]) -> Any:
    if loop.body is not body and len(loop.body) == 1 and isinstance(loop.body[0], Serial):
        loop = loop.but(body=(_while(loop.body[0], going, body),))
    return loop.but(condition=going)


def _parts(body: Sequence[Stmt], kind: str) -> bool:
    """Whether a branch may have left the turn by `kind` or not, with statements to come that ask for it."""
    for k, statement in enumerate(body):
        if not isinstance(statement, If):
            continue
        sides = statement.then, statement.orelse
        unsure = [side for side in sides if leaves(side) and not _surely(side)]
        more = bool(body[k + 1 :])
        if more and any(leaves(side, kind) for side in unsure):
            return True
        if any(_parts(side, kind) for side in sides):
            return True
    return False


def _surely(body: Sequence[Stmt]) -> bool:
    return any(
        isinstance(each, Exit) or (isinstance(each, If) and _surely(each.then) and _surely(each.orelse))
        for each in body
    )


# Of integers alone: no order of floats is the opposite of another where one of them is NaN.
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def negated(condition: Expr) -> Expr:
    """The opposite of a condition, as a person would write it."""
    if isinstance(condition, Arith) and condition.op in _OPPOSITE and condition.args[0].dtype.is_integer:
        return Arith(_OPPOSITE[condition.op], condition.args, place=condition.place)
    if isinstance(condition, Arith) and condition.op == "not":
        return condition.args[0]
    return Arith("not", (condition,), place=condition.place)


def _refuse_group(group: ThreadGroup) -> None:
    raise LanguageError(
        "some threads of the block would leave this loop, and others go on in it", at=group.place,
        expected="a condition that is the same for all threads of the block",
        hint="tile operations are done by all threads together: let every thread take the same turns",
    )  # fmt: skip
