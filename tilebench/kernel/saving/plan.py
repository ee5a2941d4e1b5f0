"""What a kernel's file says: its definition, parameters, schedule and edits, checked to give the same
kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import TileError, remember_source
from ...schedule import Schedule, schedule_text
from ...targets.devices import HOST
from .surroundings import MadeFrom, literal_of, module_text

if TYPE_CHECKING:
    from ..kernel import Kernel


@dataclass(frozen=True)
class SavePlan:
    """A kernel as what stands in its files.

    `definition` is the text of a module that defines the kernel function `function`; where the function
    cannot be written, it is empty and `stage` with `text` stands for it, and `why` says why. `given` are
    parameters of the call, the rest stands in the schedule's. `edits` are stages with the texts that a
    person wrote.
    """

    name: str
    target: str
    definition: str = ""
    function: str = ""
    outputs: tuple[int, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    schedule: Schedule = field(default_factory=Schedule)
    stage: str = ""
    text: str = ""
    why: str = ""
    edits: tuple[tuple[str, str], ...] = ()


def plan_of(kernel: Kernel, tuned: Iterable[str] = ()) -> SavePlan:
    """The plan of a kernel. `tuned` are parameters that belong into the schedule file, besides those of its
    own.

    Where the function cannot be written, or what is written gives another kernel, the plan is of the first
    stage that has all choices in it.
    """
    root = _root(kernel)
    compilation = kernel.compilation
    edits = tuple((edit.stage, kernel.stage(edit.stage)) for edit in compilation.edits if root is not kernel)
    plan = SavePlan(kernel.name, _target_name(kernel), sizes=dict(kernel.sizes), edits=edits)
    if root.made_from is None:
        return _by_stage(plan, root, "its function is not known")
    try:
        return _by_function(plan, root, root.made_from, set(tuned))
    except TileError as error:
        return _by_stage(plan, root, error.message)


def _root(kernel: Kernel) -> Kernel:
    """The kernel that edits were made in."""
    while kernel.recipe is not None and hasattr(kernel.recipe[1][0], "recipe"):
        kernel = kernel.recipe[1][0]
    return kernel


def _target_name(kernel: Kernel) -> str:
    """The target as a person names it: a host's own machine has no such name."""
    manifest = kernel.compilation.manifest
    return manifest.name if manifest.device == HOST else kernel.target


def _by_function(plan: SavePlan, kernel: Kernel, made: MadeFrom, tuned: set[str]) -> SavePlan:
    from dataclasses import replace

    schedule = kernel.schedule or Schedule()
    tuned |= set(schedule.params)
    params = {k: v for k, v in kernel.parameters.items() if k in tuned and _in_file(v)}
    given = {k: v for k, v in kernel.parameters.items() if k not in params}
    for name, value in given.items():
        if literal_of(value) is None:
            raise TileError(
                "the parameter {name} is {what}, which no file can hold", name=name, what=repr(value)
            )
    plan = replace(
        plan, definition=module_text(made), function=made.function.__name__, outputs=made.outputs,
        given=given, schedule=Schedule(schedule.directives, params),
    )  # fmt: skip
    _check(plan, kernel)
    return plan


def _in_file(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str)) or (
        isinstance(value, (tuple, list)) and all(_in_file(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    )


def _check(plan: SavePlan, kernel: Kernel) -> None:
    """Raise `TileError` where the definition gives another kernel: a name outside has changed since."""
    file = f"<{plan.name}, as it would be saved>"
    remember_source(file, plan.definition)
    space: dict[str, Any] = {"__name__": "saved"}
    exec(compile(plan.definition, file, "exec"), space)  # noqa: S102 -- the user's own text
    values = {**plan.given, **plan.schedule.params}
    again = space[plan.function].using(target=plan.target).kernel((), values)
    if again.stage("tile") != kernel.stage("tile"):
        raise TileError("what its function sees around itself has changed since it was compiled")


def _by_stage(plan: SavePlan, kernel: Kernel, why: str) -> SavePlan:
    """A kernel that stands by its text in the stage that has the schedule's choices in it."""
    from dataclasses import replace

    names = kernel.compilation.stage_names
    stage = "scheduled" if "scheduled" in names else kernel.compilation.start
    return replace(plan, stage=stage, text=kernel.stage(stage), why=why)


def schedule_of(plan: SavePlan) -> str:
    """The schedule file of a plan; empty where it chooses nothing."""
    empty = not plan.schedule.directives and not plan.schedule.params
    return "" if empty else schedule_text(plan.schedule)
