"""Targets: finding a manifest by name, and the machine a target text means.

Built-in targets and plug-ins go through the same check; a plug-in is a package with an entry
point in the group `tilebench.targets`. A built-in is imported without scanning the installed
packages, because that scan alone costs more than compiling a kernel.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from .. import settings
from ..errors import TargetError, nearest
from ..machine import Machine
from ..record import LineCounter
from .build import Build, EmitStep, Executable
from .intrinsics import Intrinsic
from .manifest import Manifest

if TYPE_CHECKING:
    from .presentation import Language

BUILT_IN = {
    "cpu": "tilebench.targets.cpu:manifest",
    "cuda": "tilebench.targets.cuda:manifest",
    "null": "tilebench.targets.null:manifest",
}
GROUP = "tilebench.targets"
# The target text of whatever can run code here: a card where there is one, else the processor.
AUTO = "auto"


def _admit(name: str, value: str) -> Manifest:
    """Read a manifest off a module and check it. A module without one fails loudly."""
    module_name, _, attribute = value.partition(":")
    module = importlib.import_module(module_name)
    there: Any = getattr(module, attribute or "manifest", None)
    found: Any = there() if callable(there) and not isinstance(there, Manifest) else there
    if not isinstance(found, Manifest):
        raise TargetError("{where} holds no target manifest", where=value, found=type(found).__name__)
    if found.name != name:
        raise TargetError(
            "the entry point {name} leads to a target that calls itself {other}", name=name, other=found.name
        )
    return found


@cache
def _plug_ins() -> dict[str, str]:
    from importlib import metadata  # 26 ms, and only needed to look beyond the built-in targets

    found: dict[str, str] = {}
    for point in metadata.entry_points(group=GROUP):
        owner = BUILT_IN.get(point.name) or found.get(point.name)
        if owner is not None and owner != point.value:
            raise TargetError(
                "the target {name} is claimed twice", name=point.name, found=f"{owner} and {point.value}",
                hint="uninstall one of the two packages",
            )  # fmt: skip
        found[point.name] = point.value
    return found


@cache
def manifest(name: str) -> Manifest:
    """The manifest of a target by its plain name (`cuda`, `cpu`, ...). Raises `TargetError`."""
    if name in BUILT_IN:
        return _admit(name, BUILT_IN[name])
    plug_ins = _plug_ins()
    if name not in plug_ins:
        known = sorted({*BUILT_IN, *plug_ins})
        close = nearest(name, known)
        raise TargetError(
            "there is no target {name!r}", name=name,
            hint=("did you mean " + close[0] + "? " if close else "") + "known: " + ", ".join(known),
        )  # fmt: skip
    return _admit(name, plug_ins[name])


def names() -> tuple[str, ...]:
    """Every target there is, built-in ones and plug-ins."""
    return tuple(sorted({*BUILT_IN, *_plug_ins()}))


def resolve(text: str | None = None) -> tuple[Manifest, Machine]:
    """The manifest and machine that `cpu`, `cuda`, `cuda:sm_90a` or `auto` mean.

    `auto` (and None without `TILEBENCH_TARGET`) is CUDA where a GPU can run code, else the CPU.
    Raises `TargetError` with the names that exist.
    """
    wanted = text or settings.target()
    if not isinstance(wanted, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own value
        raise TargetError(
            "a target is a text", found="{wanted!r}", wanted=wanted,
            hint='such as "cpu", "cuda" or "cuda:sm_90a"',
        )  # fmt: skip
    if wanted == AUTO:
        cuda = manifest("cuda")
        wanted = "cuda" if cuda.available()[0] else "cpu"
    name, _, detail = wanted.partition(":")
    if name.startswith("sm_"):
        name, detail = "cuda", wanted
    found = manifest(name)
    return found, found.describe(detail or None)


def target_here(text: str | None = None) -> tuple[str, str]:
    """A target whose code runs here: the one that `text` means, else that of `auto`, with a sentence on it.

    The sentence is empty where the wished target runs. Raises `TargetError` for a target that there is not.
    """
    found, machine = resolve(text)
    runs, why = found.available()
    if runs:
        return text or AUTO, ""
    other = resolve(AUTO)[1].name
    return AUTO, f"{machine.name} cannot run here ({why}): check and time are those of {other}"


def resolve_machine(name: str) -> tuple[Manifest, Machine]:
    """The manifest and machine of a full machine name, as a record or package keeps it.

    A host's own machine is called after its processor, which is no variant a person can name.
    """
    found = manifest(name.partition(":")[0])
    own = found.describe(None)
    return (found, own) if own.name == name else resolve(name)


def stage_names() -> tuple[str, ...]:
    """Every stage that some target's road has beyond the common ones, in the order of targets and roads."""
    found = (row for name in names() for row in (*manifest(name).road, *manifest(name).steps))
    return tuple(dict.fromkeys(row.name for row in found))


def stage_owners() -> dict[str, tuple[str, ...]]:
    """For each of `stage_names`, the targets that have it and that people compile for."""
    owners: dict[str, tuple[str, ...]] = {}
    for name in names():
        found = manifest(name)
        if found.presentation.machines:
            for row in (*found.road, *found.steps):
                owners[row.name] = (*owners.get(row.name, ()), name)
    return owners


def language(target: str, name: str) -> Language:
    """How a language of a record's target is shown; as plain lines where the target is not installed."""
    owner = target.partition(":")[0]
    if owner not in BUILT_IN and owner not in _plug_ins():
        from .presentation import Language

        return Language(name, name)
    return manifest(owner).language(name)


def text_counters(target: str, stage: str, text: str) -> tuple[LineCounter, ...]:
    """What a record's target counts on the lines of a text of its own; nothing where it is not installed."""
    owner = target.partition(":")[0]
    if owner not in BUILT_IN and owner not in _plug_ins():
        return ()
    step = next((each for each in manifest(owner).steps if each.name == stage), None)
    return tuple(step.count(text)) if step is not None and step.count is not None else ()


__all__ = [
    "AUTO", "Build", "EmitStep", "Executable", "Intrinsic", "Manifest", "language", "manifest", "names",
    "resolve", "resolve_machine", "stage_names", "stage_owners", "target_here", "text_counters",
]  # fmt: skip
