"""Compilation that starts from a stage's edited text."""

from __future__ import annotations

from ..errors import OptionError
from ..frontend import Traced
from ..machine import Machine
from ..record import EditRecord
from ..targets import resolve
from .continued import check_stage, continued, edited_file, forms_of, read_stage, refuse_start
from .kernel import Kernel


def compile_from(stage: str, text: str, *, target: str | None = None, like: Kernel | None = None) -> Kernel:
    """A kernel that starts at `stage` with `text`, and goes the rest of the road.

    `stage` is an IR stage of the target's road, or the first text after it (`cuda`), for which
    `like` gives the kernel that the text was edited from. With `like`, the stages above are that kernel's,
    and lines that the text shares with its stage keep their places in the user's source. The record's
    `edits` name the stage. Raises `IRError` at the line of the text that is wrong, `OptionError` for a
    stage where compilation cannot start.
    """
    if like is not None:
        return continued(like, stage, text, _machine_of_road(like, target))
    manifest, machine = resolve(target)
    refuse_start(stage, manifest, machine.name)
    if stage not in forms_of(manifest):
        raise OptionError(
            "the stage {stage} alone does not say how to launch it", stage=stage,
            hint="give the kernel it was edited from: compile_from(stage, text, like=kernel)",
        )  # fmt: skip
    function = read_stage(stage, text, manifest)
    check_stage(function, stage, manifest)
    file = edited_file(stage)
    places = {each.name: function.place for each in function.params if function.place is not None}
    traced = Traced(function, file, 1, text, {}, {}, function.name, places)
    kernel = Kernel(traced, manifest, machine, start=stage)
    kernel.compilation.edits = (EditRecord(stage),)
    kernel.recipe = (_again, (stage, text, kernel.target))
    return kernel


def _again(stage: str, text: str, target: str) -> Kernel:
    """The kernel that comes out of a pickle."""
    return compile_from(stage, text, target=target)


def _machine_of_road(like: Kernel, target: str | None) -> Machine | None:
    """The machine of a target on the same road; `OptionError` where it has another."""
    if target is None:
        return None
    manifest, machine = resolve(target)
    if like.compilation.manifest.name != manifest.name:
        raise OptionError(
            "the text was edited from a kernel for {other}, which has another road than {target}",
            other=like.target, target=machine.name, hint=f'leave target out, or give target="{like.target}"',
        )  # fmt: skip
    return machine
