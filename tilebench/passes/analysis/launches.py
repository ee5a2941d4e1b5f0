"""The launches of a function, from `tile` to `threaded`: one after the other, in the order of its body.

A function of several is taken apart where one launch is looked at alone: each becomes a function of its own,
of which the memory that the call allocates is a parameter like the arrays it is passed. So no pass, renderer
or grid has to know that there are others.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InternalError
from ...ir import AllocStmt, Function, Stmt
from ...language.structure import KernelLaunch


def launches_of(function: Function) -> tuple[KernelLaunch, ...]:
    """Every `T.Kernel` of a function, in order. Raises `InternalError` when there is none."""
    found = tuple(statement for statement in function.body if isinstance(statement, KernelLaunch))
    if not found:
        raise InternalError("the function {name} launches no kernel", name=function.name)
    return found


def launch_of(function: Function) -> KernelLaunch:
    """The `T.Kernel` of a function that has one. Raises `InternalError` when there is none."""
    for statement in function.body:
        if isinstance(statement, KernelLaunch):
            return statement
    raise InternalError("the function {name} launches no kernel", name=function.name)


def is_program(function: Function) -> bool:
    """Whether a function is more than one launch on the arrays that it is passed."""
    return len(function.body) != 1


def parts_of(function: Function) -> tuple[Function, ...]:
    """A function for each launch, in order; one of a single launch is its own part.

    What the call allocates follows the parameters. Parts of several launches are named `main_1`, `main_2`.
    """
    if not is_program(function):
        return (function,)
    launches, params = launches_of(function), (*function.params, *function.workspaces)
    names = (
        [function.name] if len(launches) == 1 else [f"{function.name}_{k + 1}" for k in range(len(launches))]
    )
    return tuple(
        function.but(name=name, params=params, body=(launch,))
        for name, launch in zip(names, launches, strict=True)
    )


def joined(function: Function, parts: Sequence[Function]) -> Function:
    """The function whose launches became these parts, in the order of `parts_of`."""
    if not is_program(function):
        return parts[0]
    rest = iter(parts)
    body: list[Stmt] = []
    for statement in function.body:
        if isinstance(statement, AllocStmt):
            body.append(statement)
        else:
            body += next(rest).body
    return function.but(body=tuple(body), info=parts[0].info)


__all__ = ["is_program", "joined", "launch_of", "launches_of", "parts_of"]
