"""One kernel on its way from the last stage to code: what steps fill, and what running takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from ..ir import Function
from ..machine import Machine
from ..passes.context import Context
from ..record import LineCounter, Resources

if TYPE_CHECKING:
    pass


@dataclass
class Build:
    """One kernel being emitted. Steps read what earlier steps left and add their own.

    `lines[name][k]` are the lines of the stage before that line k+1 of stage `name` came from. `edited` has
    texts that a person wrote, by stage: the name under which errors quote their lines.
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
    # By the name of a text, what stands beside each of its lines (`StageRecord.beside`).
    beside: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    edited: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class EmitStep:
    """One step: it fills `build.texts[name]` and `build.lines[name]`.

    `tier` is `text` for what takes milliseconds, `code` for what a compiler of another maker does,
    `later` for what is made in the background and shown as pending. `lines_of` names the earlier
    text that its lines refer to, where that is not the one just before it. `begin` starts the work of
    a `later` step in the background; `run` then waits for what is left of it. `count` gives what can be
    counted on the lines of a text of this step alone.
    """

    name: str
    language: str
    run: Callable[[Build], None]
    tier: str = "text"
    lines_of: str = ""
    begin: Callable[[Build], None] | None = None
    count: Callable[[str], Sequence[LineCounter]] | None = None


@dataclass(frozen=True)
class ProgramForm:
    """How a target writes a kernel as a program of its own.

    `write` gives the text for the sizes and scalars of a call, a seed of its inputs, and lines of a title.
    `how` says in words what to do with the `{file}`, whose name ends in `suffix`; `{detail}` is the machine
    in the target's name, `{number}` what stands behind its `_`.
    """

    suffix: str
    how: str
    write: Callable[[Build, Mapping[str, Any], int, Sequence[str]], str]


def of_launches(found: Sequence[Resources]) -> Resources:
    """What the launches of a kernel take: of several the largest of each, with those of each beside it."""
    if len(found) == 1:
        return found[0]
    tightest = min(found, key=lambda each: each.occupancy if each.occupancy is not None else 1.0)

    def most(name: str) -> Any:
        numbers = [number for each in found if (number := getattr(each, name)) is not None]
        return max(numbers, default=None)

    largest = {name: most(name) for name in _LARGEST}
    return replace(tightest, **largest, launches=tuple(found))


_LARGEST = (
    "threads", "registers", "shared_bytes", "local_bytes", "spill_store_bytes", "spill_load_bytes",
    "barriers",
)  # fmt: skip


class Executable(Protocol):
    """Loaded code. Called with a described array or a number for each parameter; returns when launched."""

    def __call__(self, arguments: Sequence[Any], /) -> None: ...


class DeviceArrays(Protocol):
    """Loaded code with copies of some host arrays in a device's memory, for the timing method.

    `clock.time(run)` gives the seconds of one launch on the device; `flush()` leaves its caches cold.
    """

    @property
    def clock(self) -> Any: ...

    @property
    def flush(self) -> Any: ...

    def run(self) -> None:
        """Launch once on the copies."""
        ...

    def upload(self) -> None:
        """The host arrays into the copies."""
        ...

    def download(self) -> None:
        """What a launch may write into the host arrays, once the device is done."""
        ...

    def keep(self) -> None:
        """Remember on the device what a launch may write, as it is now."""
        ...

    def restore(self) -> None:
        """What `keep` last remembered, as it was then, without the host."""
        ...
