"""A kernel like another, from one stage's edited text on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..compiler import REFERENCE_STAGES, Compilation
from ..errors import OptionError, Place, remember_source
from ..ir import Function, Node, parse_function, rewrite, verify
from ..language.checks import check_iterations
from ..machine import Machine
from ..passes.pipeline import COMMON, TILE_FORMS
from ..record import EditRecord
from ..targets import Manifest, resolve_machine

if TYPE_CHECKING:
    from difflib import Match

    from .kernel import Kernel


def continued(like: Kernel, stage: str, text: str, machine: Machine | None = None) -> Kernel:
    """The kernel `like` with `text` at `stage`, compiled on from there; for another machine if one is given.

    The stages above are `like`'s, and lines that the text shares with its stage keep their places in the
    user's source. Raises as `compile_from` does.
    """
    manifest, machine = like.compilation.manifest, machine or like.compilation.machine
    refuse_start(stage, manifest, machine.name)
    make = _from_ir if stage in forms_of(manifest) else _from_emitted
    kernel = make(stage, text, like, machine)
    kernel.recipe = (_again, (like, stage, text, kernel.target))
    return kernel.at(like.sizes)


def _again(like: Kernel, stage: str, text: str, target: str) -> Kernel:
    """The kernel that comes out of a pickle."""
    return continued(like, stage, text, resolve_machine(target)[1])


def edited_file(stage: str) -> str:
    """The name under which errors quote a stage's edited text."""
    return f"<{stage} stage>"


def forms_of(manifest: Manifest) -> dict[str, Any]:
    """The legal forms of each IR stage of a target's road, in its order."""
    return {"tile": TILE_FORMS, **{row.name: row.forms for row in (*COMMON, *manifest.road)}}


def editable(manifest: Manifest) -> tuple[str, ...]:
    """The stages whose texts compile on: those of the IR, and the first text after them."""
    return (*forms_of(manifest), *[step.name for step in manifest.steps if step.tier == "text"][:1])


def refuse_start(stage: str, manifest: Manifest, target: str) -> None:
    """Raise `OptionError`, with those there are, for a stage where compilation cannot start."""
    starts = editable(manifest)
    if stage not in starts:
        raise OptionError(
            "compilation for {target} cannot start at {stage!r}", target=target, stage=stage,
            hint="it can at " + ", ".join(starts),
        )  # fmt: skip


def read_stage(stage: str, text: str, manifest: Manifest) -> Function:
    """The function that a stage's text says, unverified."""
    return parse_function(text, manifest.registry, edited_file(stage))


def check_stage(function: Function, stage: str, manifest: Manifest) -> None:
    """Raise the `TileError` of what a stage may not hold."""
    verify(function, forms_of(manifest)[stage])
    if stage in REFERENCE_STAGES:
        check_iterations(function)


def _from_ir(stage: str, text: str, like: Kernel, machine: Machine) -> Kernel:
    above = like.compilation
    function = read_stage(stage, text, above.manifest)
    above.reach(stage)
    function = _old_places(function, text, like, stage)
    check_stage(function, stage, above.manifest)
    traced = replace(above.traced, function=function, parameters=dict(above.traced.parameters))
    kernel = type(like)(
        traced, above.manifest, machine, like.schedule, out_idx=like.outputs, start=stage,
        meaning=like.meaning,
    )  # fmt: skip
    kernel.compilation.stand_below(above)
    if stage != "tile":
        # The text has the schedule's choices in it already; the record still says whose they were.
        kernel.compilation.context.choices.extend(above.context.choices)
    kernel.compilation.edits = _edits(above, stage, text, above.print(stage).text)
    return kernel


def _edits(above: Compilation, stage: str, text: str, now: str) -> tuple[EditRecord, ...]:
    """Which stages are edited once `text` stands at `stage`, where `now` stood: what was below is gone."""
    order = above.stage_names
    upper = tuple(edit for edit in above.edits if order.index(edit.stage) < order.index(stage))
    # Of a stage that was edited before, what the compiler had made.
    before = next((edit.before for edit in above.edits if edit.stage == stage), now)
    same = text.rstrip("\n") == before.rstrip("\n")
    return upper if same else (*upper, EditRecord(stage, before))


def _from_emitted(stage: str, text: str, like: Kernel, machine: Machine) -> Kernel:
    """The kernel `like` with its first emitted text replaced."""
    old = like.compilation
    old.reach(stage)
    kernel = type(like)(
        old.traced, old.manifest, machine, old.schedule, out_idx=like.outputs, start=old.start,
        meaning=old.meaning,
    )  # fmt: skip
    new = kernel.compilation
    if old.start != "tile":
        new.stand_below(old)
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
    new.edits = _edits(old, stage, text, old.build.texts[stage])
    if any(edit.stage == stage for edit in new.edits):
        file = edited_file(stage)
        remember_source(file, text)
        new.build.edited[stage] = file
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
