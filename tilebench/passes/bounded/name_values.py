"""A variable of one element becomes names for the values that it takes: `v = x; if c: v = y` is a choice.

A body without variables is carried out a vector at a time; with one, its elements go one by one. Assignments
that stand under loops, or under a condition together with other statements, are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir import Call, Expr, Function, If, Let, Load, Stmt, Store, Var, effects_in, map_bodies
from ...ir.expr import Const
from ...ir.facts import is_small
from ...ir.names import Names
from ...ir.rewrite import rewrite
from ...ir.stmt import statements
from ...language.memory import AllocVar
from ...language.structure import Parallel
from ..context import Context

Values = Mapping[str, Expr]


def name_values(function: Function, context: Context) -> Function:
    """The function with the variables of parallel bodies named, where each assignment can be followed."""
    if not any(isinstance(statement, AllocVar) for statement in statements(function.body)):
        return function
    names = Names(function)

    def step(node: Any) -> Any:
        if isinstance(node, Parallel):
            return node.but(body=_named(node.body, names))
        return map_bodies(node, step)

    return step(function)


def _named(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """One element's statements, with the variables that can be followed."""
    variables = _followed(body)
    if not variables:
        return body
    try:
        return tuple(_Naming(variables, names).body(body))
    except _Unnamed:
        return body


def _followed(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The variables that statements of the body assign, and branches that do nothing else."""
    found = frozenset(s.buffer.name for s in body if isinstance(s, AllocVar))
    while found:
        lost = {name for statement in body for name in _lost(statement, found)}
        if not lost:
            break
        found -= lost
    return found


def _lost(statement: Stmt, variables: frozenset[str]) -> set[str]:
    """The variables whose values cannot be followed because of how a statement assigns them."""
    found = statement.found if isinstance(statement, Store) else None
    if found is not None:
        return {found.name} & variables
    if isinstance(statement, (AllocVar, Store)) or _only_assigns(statement, variables):
        return set()
    return {effect.buffer.name for effect in effects_in(statement) if effect.writes} & variables


def _only_assigns(statement: Stmt, variables: frozenset[str]) -> bool:
    """Whether a branch does nothing but give values to such variables."""
    return isinstance(statement, If) and all(
        (isinstance(inner, Store) and inner.buffer.name in variables) or _only_assigns(inner, variables)
        for inner in (*statement.then, *statement.orelse)
    )


class _Unnamed(Exception):
    """A value is too long to spell as a choice, or a variable is read that has none on some way there."""


class _Naming:
    """The walk over one body: what each variable is worth at a statement."""

    def __init__(self, variables: frozenset[str], names: Names) -> None:
        self.variables = variables
        self.names = names

    def body(self, body: tuple[Stmt, ...]) -> list[Stmt]:
        """The statements with values for variables. `_Unnamed` where one cannot be spelled."""
        values: dict[str, Expr] = {}
        out: list[Stmt] = []
        for statement in body:
            if isinstance(statement, AllocVar) and statement.buffer.name in self.variables:
                if statement.init is not None:
                    value = self.read(statement.init, values)
                    self._name(statement, statement.buffer.name, value, values, out)
            elif isinstance(statement, Store) and statement.buffer.name in self.variables:
                value = self.read(statement.value, values)
                self._name(statement, statement.buffer.name, value, values, out)
            elif _only_assigns(statement, self.variables):
                assert isinstance(statement, If)
                for name, value in self.chosen(statement, values).items():
                    if value is not values.get(name):
                        self._name(statement, name, value, values, out)
            else:
                out.append(self.read(statement, values))
        return out

    def _name(
        self, statement: Stmt, variable: str, value: Expr, values: dict[str, Expr], out: list[Stmt]
    ) -> None:
        if not isinstance(value, (Const, Var)):
            name = Var(self.names.fresh(f"{variable}_is"), type=value.dtype)
            out.append(Let(name, value, place=statement.place))
            value = name
        values[variable] = value

    def chosen(self, branch: If, values: Values) -> dict[str, Expr]:
        """The values behind a branch that only assigns, as choices by its condition."""
        condition = self.read(branch.condition, values)
        yes, no = self.assigned(branch.then, values), self.assigned(branch.orelse, values)
        out = dict(values)
        # What only one side assigns has no value behind it.
        for name in [name for name in yes if name in no and yes[name] is not no[name]]:
            arguments = (condition, yes[name], no[name])
            out[name] = Call("if_then_else", arguments, type=yes[name].dtype, place=branch.place)
        return out

    def assigned(self, body: tuple[Stmt, ...], values: Values) -> dict[str, Expr]:
        """The values behind one side of a branch."""
        out = dict(values)
        for statement in body:
            if isinstance(statement, Store):
                value = out[statement.buffer.name] = self.read(statement.value, out)
                if not is_small(value):
                    raise _Unnamed
            elif isinstance(statement, If):
                out = self.chosen(statement, out)
        return out

    def read(self, node: Any, values: Values) -> Any:
        """An expression or statement that reads values where variables stood."""

        def change(part: Any) -> Any:
            if not isinstance(part, Load) or part.buffer.name not in self.variables:
                return part
            if part.buffer.name not in values:
                raise _Unnamed
            return values[part.buffer.name]

        return rewrite(node, change)
