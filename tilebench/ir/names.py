"""Names for what a pass or the text of a stage adds: never one that the function already has."""

from __future__ import annotations

from functools import cache, cached_property

from .node import BINDER, RESULT
from .stmt import Function, Stmt, statements


def names_of(function: Function) -> set[str]:
    """Every name a function binds, its own included. What binds one is said by the marks of a statement."""
    names = {parameter.name for parameter in function.params} | {function.name}
    for statement in statements(function.body):
        for field, several in _binding(type(statement)):
            bound = getattr(statement, field)
            names.update([variable.name for variable in bound] if several else [bound.name])
    return names


@cache
def _binding(cls: type[Stmt]) -> tuple[tuple[str, bool], ...]:
    """The fields of a class that bind names, each with whether it binds several."""
    return tuple((mark.name, mark.mark == BINDER) for mark in cls.marks if mark.mark in (BINDER, RESULT))


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
        self._function = function
        self._counts: dict[str, int] = {}

    @cached_property
    def taken(self) -> set[str]:
        """The names that there are, found when a new one is first asked for: most passes need none."""
        return names_of(self._function)

    def fresh(self, name: str) -> str:
        """`name`, or the next spelling of it that is free."""
        fresh, number = name, self._counts.get(name, 1)
        while fresh in self.taken:
            number += 1
            fresh = f"{name}__{number}"
        self.taken.add(fresh)
        self._counts[name] = number
        return fresh
