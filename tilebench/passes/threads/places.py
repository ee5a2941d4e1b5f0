"""Places of what a lowering makes: those of the statements it was made from."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from ...ir import Node, Stmt


def placed(body: Iterable[Stmt], source: Node) -> list[Stmt]:
    """Statements, and those inside them, with the place of the node they were made from."""
    return [_place(statement, source) for statement in body]


def _place(statement: Stmt, source: Node) -> Stmt:
    changes: dict[str, object] = {}
    for name in statement.bodies:
        body: tuple[Stmt, ...] = getattr(statement, name)
        named = tuple([_place(inner, source) for inner in body])
        # What a block inside has lowered has its places: nothing of it is made again.
        if not all(map(operator.is_, named, body)):
            changes[name] = named
    if statement.place is None:
        changes["place"] = source.place
    return statement.but(**changes) if changes else statement
