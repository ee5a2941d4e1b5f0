"""What a target is to the rest: one frozen manifest, checked as it is made.

A target describes its machines, names the stages its road has after `bounded`, and the steps that
turn the last of them into text and code. Emitting is apart from running: `load` is only called
where the code can run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from ..errors import TargetError
from ..ir import Function, Registry, ScalarFunction, Word
from ..language.words import registry
from ..machine import Machine
from ..passes.context import Context, StageRow
from ..record import Resources


@dataclass
class Build:
    """One kernel being emitted. Steps read what earlier steps left and add their own.

    `lines[name][k]` are the lines of the stage before that line k+1 of stage `name` came from.
    """

    function: Function
    machine: Machine
    context: Context
    texts: dict[str, str] = field(default_factory=dict[str, str])
    lines: dict[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], ...]]
    )
    code: bytes = b""
    resources: Resources | None = None
    data: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class EmitStep:
    """One step: it fills `build.texts[name]` and `build.lines[name]`.

    `tier` is `text` for what takes milliseconds, `code` for what a compiler of another maker does,
    `later` for what is made in the background and shown as pending. `lines_of` names the earlier
    text that its lines refer to, where that is not the one just before it. `begin` starts the work of
    a `later` step in the background; `run` then waits for what is left of it.
    """

    name: str
    language: str
    run: Callable[[Build], None]
    tier: str = "text"
    lines_of: str = ""
    begin: Callable[[Build], None] | None = None


class Executable(Protocol):
    """Loaded code. Called with array descriptions in parameter order; returns when launched."""

    def __call__(self, arrays: Sequence[Any]) -> None: ...


@dataclass(frozen=True)
class Manifest:
    """A target. `describe` turns `cuda:sm_90a` into a machine, `None` into this host's own.

    `available` says whether code can run here, and why not. `versions` names what code depends on
    besides our own version, for the cache key. `device` is the kind of memory its kernels work on, as
    torch and DLPack name it: `cpu` is the host's. `rehearse` says that wrong code
    can end the process.
    `words`, `functions` and `values` are what its own stages are written in besides the language.
    `ceilings` is the `module:function` that measures a device's ceilings in the child; empty: the host's.
    """

    name: str
    describe: Callable[[str | None], Machine]
    road: tuple[StageRow, ...]
    steps: tuple[EmitStep, ...]
    load: Callable[[Build], Executable]
    available: Callable[[], tuple[bool, str]]
    versions: Callable[[], dict[str, str]] = field(default=dict[str, str])
    examples: tuple[str, ...] = ()
    device: str = "cpu"
    rehearse: bool = False
    ceilings: str = ""
    words: tuple[tuple[str, Word], ...] = ()
    functions: tuple[ScalarFunction, ...] = ()
    values: tuple[type, ...] = ()

    @cached_property
    def registry(self) -> Registry:
        """The words of the language and those that the stages of this target add."""
        return registry().extended(self.words, self.functions, self.values)

    def __post_init__(self) -> None:
        names = [row.name for row in self.road] + [step.name for step in self.steps]
        if not self.name.isidentifier():
            raise TargetError("a target's name is an identifier, found {name!r}", name=self.name)
        if len(set(names)) != len(names) or not self.steps:
            raise TargetError(
                "target {name} must name each stage once and have a step",
                name=self.name,
                found=", ".join(names),
            )
