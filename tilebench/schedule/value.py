"""The schedule: what overrides a kernel's hints, as a value of its own.

A schedule is a set of directives. Each names a kind of thing (`kernel`, `loop`, `buffer`, `gemm`,
`copy`), the address of one, a choice and its value; and it knows its origin, so that the record
can say where each effective choice came from. `params` act before tracing: they are arguments of
the kernel function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ScheduleError, nearest
from .options import OPTIONS, check_option, offered


@dataclass(frozen=True)
class Origin:
    """Where a choice came from: `rule` of a file or `call`, and words that say which."""

    kind: str
    why: str = ""


@dataclass(frozen=True)
class Directive:
    """One choice about one thing."""

    kind: str
    address: str
    name: str
    value: Any
    origin: Origin

    def __str__(self) -> str:
        return f"{self.kind} {self.address} {self.name}".replace("  ", " ")


@dataclass(frozen=True)
class Schedule:
    """Directives and parameters. Later directives about the same thing win.

    Made by `Schedule.of(...)`, or by a rule of a schedule file.
    """

    directives: tuple[Directive, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    why: str = ""

    @staticmethod
    def of(
        *,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        order: Any = None,
        loop: Mapping[str, Mapping[str, Any]] | None = None,
        buffer: Mapping[str, Mapping[str, Any]] | None = None,
        gemm: Mapping[str, Mapping[str, Any]] | None = None,
        copy: Mapping[str, Mapping[str, Any]] | None = None,
        **unknown: Any,
    ) -> Schedule:
        """A schedule from Python: `Schedule.of(threads=256, loop={"ko": {"num_stages": 3}})`.

        `order` is `{"panels": 8, "axis": "row"}` or a number of panels. Addresses: a loop by its
        variable, a buffer by its name, a gemm by its accumulator or label, a copy by the buffer it
        fills; `name#2` is the second of that name. Raises `ScheduleError` for an unknown or illegal
        choice.
        """
        for name in unknown:
            if name not in OPTIONS["kernel"]:
                _unknown_option("kernel", name)
        raw = {"threads": threads, "order": order, **unknown}
        kernel = {name: value for name, value in raw.items() if value is not None}
        tables = {"loop": loop, "buffer": buffer, "gemm": gemm, "copy": copy}
        return from_tables(
            kernel, {k: v or {} for k, v in tables.items()}, params or {}, Origin("call", "given in the call")
        )

    def over(self, other: Schedule | None) -> Schedule:
        """This schedule with `other`'s choices under it."""
        if other is None:
            return self
        return Schedule(
            other.directives + self.directives, {**other.params, **self.params}, self.why or other.why
        )

    def find(self, kind: str) -> tuple[Directive, ...]:
        """The directives about one kind of thing."""
        return tuple(each for each in self.directives if each.kind == kind)

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable value that two schedules share exactly when they choose the same."""
        last = {(d.kind, d.address, d.name): repr(d.value) for d in self.directives}
        return (*sorted(last.items()), *sorted((k, repr(v)) for k, v in self.params.items()))


def from_tables(
    kernel: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]],
    params: Mapping[str, Any],
    origin: Origin,
) -> Schedule:
    """A schedule from plain tables. Raises `ScheduleError` for an option that there is not, or its value."""
    out = [_directive("kernel", "", name, value, origin) for name, value in kernel.items()]
    for kind, table in tables.items():
        for address, choices in table.items():
            given: Any = choices
            if not isinstance(given, Mapping):
                raise ScheduleError(
                    "{kind} {address} needs a table of choices", kind=kind, address=address,
                    found=repr(choices).replace("{", "{{").replace("}", "}}"),
                    hint="choices: " + ", ".join(offered(kind)),
                )  # fmt: skip
            out.extend(_directive(kind, address, name, value, origin) for name, value in choices.items())
    return Schedule(tuple(out), dict(params), origin.why)


def _directive(kind: str, address: str, name: str, value: Any, origin: Origin) -> Directive:
    if name not in OPTIONS[kind]:
        _unknown_option(kind, name)
    return Directive(kind, address, name, check_option(kind, name, value), origin)


def _unknown_option(kind: str, name: str) -> None:
    known = offered(kind) + (["params", "loop", "buffer", "gemm", "copy"] if kind == "kernel" else [])
    close = nearest(name, known)
    hint = (f"did you mean {close[0]}? " if close else "") + "choices: " + ", ".join(known)
    elsewhere = [other for other in OPTIONS if name in offered(other)]
    if elsewhere:
        other = elsewhere[0]
        of = "the whole kernel" if other == "kernel" else f"a {other}: [schedule.{other}.NAME]"
        hint = f"{name} is a choice of {of}"
    raise ScheduleError(
        "a schedule has no choice {name!r} for a {kind}", name=name, kind=kind, hint=hint,
    )  # fmt: skip
