"""A launch that may begin early waits for the one before it in front of its first access to global memory.

`T.Kernel(64, dependent_launch=True)` -> the same, with `T.launch_dependents()` at its head, so that the next
launch begins when the last of these blocks has, and `T.wait_for_launches()` where all threads still are
together, before anything is read that another kernel may have written, or written that it may read.
"""

from __future__ import annotations

from ...errors import ScheduleError
from ...ir import Function, Stmt, effects_in
from ...language.lowered.launches import LaunchDependents, WaitForLaunches
from ..analysis.launches import launch_of
from ..context import Context

NAME = "wait_for_launch"


def wait_for_launch(function: Function, context: Context) -> Function:
    """The function whose launch waits where it has to. Raises `ScheduleError` where none begins early."""
    launch = launch_of(function)
    if not launch.dependent_launch:
        return function
    if "dependent-launch" not in context.machine.features:
        raise ScheduleError(
            "{machine} begins no launch before the one in front of it has ended", at=launch.place,
            machine=context.machine.name, hint="leave the schedule's dependent_launch out",
        )  # fmt: skip
    place, body = launch.place, launch.body
    first = next((k for k, statement in enumerate(body) if _touches_memory(statement)), len(body))
    context.remark(
        NAME, "applied", "its blocks begin while the launch before it ends, and wait for that behind"
        f" {first} statements", launch, statements=first,
    )  # fmt: skip
    head, wait = LaunchDependents(place=place), WaitForLaunches(place=place)
    waiting = launch.but(body=(head, *body[:first], wait, *body[first:]))
    return function.but(body=tuple(waiting if part is launch else part for part in function.body))


def _touches_memory(statement: Stmt) -> bool:
    """Whether a statement reads or writes what other kernels may write or read."""
    return any(effect.buffer.scope == "global" for effect in effects_in(statement))
