"""Names for what a pass adds: never one that the function already has, whatever it names there."""

from __future__ import annotations

from ..ir import AllocStmt, Function, Let, LoopStmt, WithStmt
from .fast_exprs import statements


def names_of(function: Function) -> set[str]:
    """Every name a function binds, its own included."""
    names = {variable.name for variable in function.params} | {function.name}
    for node in statements(function.body):
        match node:
            case AllocStmt():
                names.add(node.buffer.name)
            case Let():
                names.add(node.var.name)
            case LoopStmt() | WithStmt():
                names.update(variable.name for variable in node.vars)
            case _:
                pass
    return names


def fresh_name(name: str, taken: set[str]) -> str:
    """`name`, or `name__2`, `name__3`, ... where it is taken; from now on it is taken too."""
    fresh, number = name, 1
    while fresh in taken:
        number += 1
        fresh = f"{name}__{number}"
    taken.add(fresh)
    return fresh


class Names:
    """All names of a function, and new ones on request."""

    def __init__(self, function: Function) -> None:
        self.taken = names_of(function)

    def fresh(self, name: str) -> str:
        """`name`, or the next spelling of it that is free."""
        return fresh_name(name, self.taken)
