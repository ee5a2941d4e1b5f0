"""Compilation that starts from a stage's edited text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..compiler import REFERENCE_STAGES
from ..errors import OptionError, Place
from ..frontend import Traced
from ..ir import Function, Node, parse_function, rewrite, verify
from ..language.checks import check_iterations
from ..passes.pipeline import COMMON, TILE_FORMS
from ..targets import resolve
from .kernel import Kernel

if TYPE_CHECKING:
    from difflib import Match


def compile_from(stage: str, text: str, *, target: str | None = None, like: Kernel | None = None) -> Kernel:
    """A kernel that starts at `stage` with `text`, and goes the rest of the road.

    `stage` is an IR stage of the target's road, or the first text after it (`cuda`), for which
    `like` gives the kernel that the text was edited from. With `like`, lines that it shares with
    that kernel's stage keep their places in the user's source. Raises `IRError` at the line of the
    text that is wrong, `OptionError` for a stage where compilation cannot start.
    """
    kernel = _compiled(stage, text, target, like)
    kernel.recipe = (_again, (stage, text, kernel.target, like))
    return kernel


def _again(stage: str, text: str, target: str, like: Kernel | None) -> Kernel:
    """The kernel that comes out of a pickle."""
    return compile_from(stage, text, target=None if like is not None else target, like=like)


def _compiled(stage: str, text: str, target: str | None, like: Kernel | None) -> Kernel:
    if target is None and like is not None:
        manifest, machine = like.compilation.manifest, like.compilation.machine
    else:
        manifest, machine = resolve(target)
    emitted = [step.name for step in manifest.steps if step.tier == "text"][:1]
    row_forms = {"tile": TILE_FORMS, **{row.name: row.forms for row in _rows(manifest)}}
    if stage not in (*row_forms, *emitted):
        raise OptionError(
            "compilation for {target} cannot start at {stage!r}", target=machine.name, stage=stage,
            hint="it can at " + ", ".join([*row_forms, *emitted]),
        )  # fmt: skip
    if like is not None and like.compilation.manifest.name != manifest.name:
        raise OptionError(
            "the text was edited from a kernel for {other}, which has another road than {target}",
            other=like.target, target=machine.name, hint=f'leave target out, or give target="{like.target}"',
        )  # fmt: skip
    if stage in emitted:
        return _from_emitted(stage, text, like)
    file = f"<{stage} stage>"
    function = parse_function(text, manifest.registry, file)
    if like is not None:
        like.compilation.reach(stage)
        function = _old_places(function, text, like, stage)
    verify(function, row_forms[stage])
    if stage in REFERENCE_STAGES:
        check_iterations(function)
    if like is not None:
        old = like.compilation.traced
        traced = replace(old, function=function, parameters=dict(old.parameters))
    else:
        places = {each.name: function.place for each in function.params if function.place is not None}
        traced = Traced(function, file, 1, text, {}, {}, function.name, places)
    if like is None:
        return Kernel(traced, manifest, machine, start=stage)
    kernel = Kernel(
        traced, manifest, machine, like.schedule, out_idx=like.outputs, start=stage, meaning=like.meaning
    )
    if stage != "tile":
        # The text has the schedule's choices in it already; the record still says whose they were.
        kernel.compilation.context.choices.extend(like.compilation.context.choices)
    return kernel


def _rows(manifest: Any) -> tuple[Any, ...]:
    return (*COMMON, *manifest.road)


def _from_emitted(stage: str, text: str, like: Kernel | None) -> Kernel:
    """The kernel `like` with its first emitted text replaced."""
    if like is None:
        raise OptionError(
            "the stage {stage} alone does not say how to launch it", stage=stage,
            hint="give the kernel it was edited from: compile_from(stage, text, like=kernel)",
        )  # fmt: skip
    old = like.compilation
    old.reach(stage)
    kernel = Kernel(
        old.traced, old.manifest, old.machine, old.schedule, out_idx=like.outputs, start=old.start,
        meaning=old.meaning,
    )  # fmt: skip
    new = kernel.compilation
    new.reach(stage)
    assert new.build is not None  # reach made both
    assert old.build is not None
    before = old.build.texts[stage].splitlines()
    matches = _matching_lines(before, text.splitlines())
    lines: list[tuple[int, ...]] = [()] * len(text.splitlines())
    for block in matches:
        for k in range(block.size):
            lines[block.b + k] = old.build.lines[stage][block.a + k]
    new.build.texts[stage] = text
    new.build.lines[stage] = tuple(lines)
    return kernel


def _matching_lines(before: list[str], after: list[str]) -> list[Match]:
    """The runs of lines that an edit left alone: `a` where they were, `b` where they are, `size` lines."""
    import difflib

    return difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()


def _old_places(function: Function, text: str, like: Kernel, stage: str) -> Function:
    """Places of the user's source for the lines that the edit left alone."""
    printed = like.compilation.print(stage)
    before = printed.text.splitlines()
    places = printed.places
    found: dict[int, Place | None] = {}
    matches = _matching_lines(before, text.splitlines())
    for block in matches:
        for k in range(block.size):
            found[block.b + k + 1] = places[block.a + k]

    def move(node: Any) -> Any:
        if isinstance(node, Node) and node.place is not None:
            old = found.get(node.place.line)
            return node.at(old) if old is not None else node
        return node

    return rewrite(function, move)
