"""The kernel launch of a function: its one statement, from `tile` to `threaded`."""

from __future__ import annotations

from ...errors import InternalError
from ...ir import Function
from ...language.structure import KernelLaunch


def launch_of(function: Function) -> KernelLaunch:
    """The `T.Kernel` of a function. Raises `InternalError` when there is none."""
    for statement in function.body:
        if isinstance(statement, KernelLaunch):
            return statement
    raise InternalError("the function {name} launches no kernel", name=function.name)
