"""Which schedule a problem gets on a machine: the first rule that holds of the operator's file.

`schedules/NAME.ARCH.toml` has the rules for the machines of one architecture, `schedules/NAME.HOST.toml` for
a target whose kernels work in the host's memory, and `schedules/NAME.toml` those for every other machine.
Conditions may name the sizes, options, `dtype` and `bits` of the problem, `target`, and `aligned`: whether
all arrays of a call start where whole vectors of the machine do. Code for any others takes more registers.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..errors import InternalError
from ..machine import Machine
from ..schedule import Schedule, ScheduleFile, load_schedule
from .definition import KernelStep, Operator, Problem

FOLDER = Path(__file__).parent / "schedules"


@cache
def schedule_file(operator: str, machine: str) -> ScheduleFile:
    """The rules of an operator for a machine by its name, as `TARGET:ARCH`."""
    target, _, arch = machine.partition(":")
    for word in (arch, target):
        path = FOLDER / f"{operator}.{word}.toml"
        if word.isidentifier() and path.is_file():
            return load_schedule(path)
    return load_schedule(FOLDER / f"{operator}.toml")


def schedule_for(
    operator: Operator | KernelStep, problem: Problem, machine: Machine, aligned: bool = True
) -> Schedule:
    """The schedule of a problem, for arrays that are `aligned` or start anywhere. Its origin says which rule
    of which file."""
    rules = schedule_file(operator.name, machine.name)
    found = rules.choose({**problem.values, "target": machine.name, "aligned": aligned})
    if found is None:
        raise InternalError("no rule of {file} holds for {problem}", file=rules.name, problem=problem)
    return found


__all__ = ["schedule_file", "schedule_for"]
