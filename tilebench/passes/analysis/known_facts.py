"""What is known at statements of a stage, for passes that have to prove something of a few of them."""

from __future__ import annotations

from collections.abc import Collection

from ...ir import Expr, Function, If, Let, Load, Stmt, walk
from ...ir.facts import Facts, conjuncts
from ...language.scopes import entered, entry_facts


def facts_at(function: Function, wanted: Collection[int]) -> dict[int, Facts]:
    """The facts at each statement whose identity is wanted.

    Conditions around it hold there, but for those that read memory, which something may have written since.
    """
    found: dict[int, Facts] = {}

    def visit(body: tuple[Stmt, ...], facts: Facts) -> None:
        for statement in body:
            if id(statement) in wanted:
                found[id(statement)] = facts
            if isinstance(statement, Let):
                facts = facts.with_let(statement.var, statement.value)
            elif isinstance(statement, If):
                visit(statement.then, facts.assuming(*_lasting(statement)))
                visit(statement.orelse, facts)
            else:
                inside = entered(statement, facts)
                for name in statement.bodies:
                    visit(getattr(statement, name), inside)

    if wanted:
        visit(function.body, entry_facts(function))
    return found


def _lasting(branch: If) -> list[Expr]:
    parts = conjuncts(branch.condition)
    return [part for part in parts if not any(isinstance(node, Load) for node in walk(part))]
