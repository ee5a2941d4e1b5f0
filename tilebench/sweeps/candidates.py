"""The configurations of a sweep: every combination of the values, each as a kernel that can be made."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import ArgumentError, OptionError, TileError, nearest
from ..kernel import JitFunction, Kernel
from ..kernel.elsewhere import kernel_for
from ..schedule import Schedule, ScheduleFile, as_given
from ..schedule.choices import AS_WRITTEN, choices_schedule, is_choice
from ..targets import resolve
from .engine import plain
from .prepare import SweepCandidate

# More than an afternoon on a card.
MOST = 10_000


class Making:
    """How kernels of one function, or of one kernel, are made for a configuration."""

    def __init__(
        self,
        kernel: JitFunction | Kernel,
        with_: Mapping[str, Any],
        target: str | None,
        schedule: Schedule | ScheduleFile | str | Path | None,
    ) -> None:
        # What a caller passes is known only now.
        if not isinstance(kernel, (JitFunction, Kernel)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                "a sweep is of a kernel", found="{kind}", kind=type(kernel).__name__,
                expected="a function with @tilebench.jit, or the kernel that it returns",
            )  # fmt: skip
        self.kernel = kernel
        self.given = dict(with_)
        self.target = target or kernel.target
        loaded = as_given(schedule)
        self.schedule: Any = loaded if loaded is not None else kernel.schedule
        self.manifest, self.machine = resolve(self.target)

    def is_parameter(self, name: str) -> bool:
        return name in self._parameters()

    def kernel_of(self, values: Mapping[str, Any]) -> Kernel:
        """The kernel where parameters, choices of the schedule and values of a call are these."""
        choices = {n: v for n, v in values.items() if not self.is_parameter(n) and is_choice(n)}
        sizes = {n: v for n, v in values.items() if not self.is_parameter(n) and not is_choice(n)}
        parameters = {n: v for n, v in values.items() if self.is_parameter(n)}
        schedule = self._schedule(choices, parameters)
        if isinstance(self.kernel, JitFunction):
            made = self.kernel.using(target=self.target, schedule=schedule).kernel((), parameters)
        else:
            made = kernel_for(self.kernel, self.manifest, self.machine, schedule)
        return made.at({**(self.kernel.sizes if isinstance(self.kernel, Kernel) else {}), **sizes})

    def refuse_unknown(self, values: Mapping[str, Any]) -> None:
        """`OptionError` for a name that no configuration can have: no parameter, choice, size or scalar.

        What else is wrong with these values is told of their configuration.
        """
        others = {n: v for n, v in values.items() if not self.is_parameter(n) and not is_choice(n)}
        if not others:
            return
        try:
            kernel = self.kernel_of({n: v for n, v in values.items() if n not in others})
        except TileError:
            return
        try:
            kernel.at(others)
        except OptionError:
            known = [*self._parameters(), *kernel.calls.binder.names]
            name = next(each for each in others if each not in known)
            close = nearest(name, known)
            raise OptionError(
                "{kernel} has no parameter, size or scalar {name}", kernel=kernel.name, name=name,
                hint=f"did you mean {close[0]}?" if close else "known: " + ", ".join(known),
            ) from None  # fmt: skip

    def _parameters(self) -> list[str]:
        return list(self.kernel.signature.parameters) if isinstance(self.kernel, JitFunction) else []

    def resolved(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter's value; `ArgumentError` where one has none."""
        if not isinstance(self.kernel, JitFunction):
            return dict(self.kernel.parameters)
        given = {name: value for name, value in values.items() if self.is_parameter(name)}
        return self.kernel.using(schedule=self.schedule).parameters((), given, self.machine.name)[0]

    def _schedule(self, choices: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
        if not any(value != AS_WRITTEN for value in choices.values()):
            return self.schedule
        under = self.schedule
        if isinstance(under, ScheduleFile):
            under = under.choose({**parameters, "target": self.machine.name})
        return choices_schedule(choices).over(under)


def candidates_of(making: Making, domains: Mapping[str, Sequence[Any]]) -> list[SweepCandidate]:
    """Every combination, the last name's values next to each other. `OptionError` for none or too many."""
    domains = _listed(domains)
    making.refuse_unknown({**making.given, **{name: values[0] for name, values in domains.items() if values}})
    count = 1
    for name, values in domains.items():
        count *= len(values)
        if not making.is_parameter(name) and is_choice(name):
            for value in values:
                choices_schedule({name: value})
    if not count or count > MOST:
        raise OptionError(
            "the sweep has {count} configurations", count=count, expected=f"1 to {MOST}",
        )  # fmt: skip
    return [
        _candidate(making, {**making.given, **dict(zip(domains, values, strict=True))})
        for values in itertools.product(*domains.values())
    ]


def _listed(domains: Any) -> dict[str, list[Any]]:
    """The values by name that a caller gave. `OptionError` for what are none."""
    if not isinstance(domains, Mapping):
        raise OptionError(
            "a sweep is over values by name", found="{kind}", kind=type(domains).__name__,
            expected="names with values, as {{'block_M': [64, 128]}}",
        )  # fmt: skip
    listed: dict[str, list[Any]] = {}
    for name, values in cast("Mapping[str, Any]", domains).items():
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise OptionError(
                "the values of {name} cannot be {value!r}", name=name, value=cast(Any, values),
                expected="a list of values, as [64, 128]",
            )  # fmt: skip
        listed[name] = list(cast("Iterable[Any]", values))
    return listed


def _candidate(making: Making, values: dict[str, Any]) -> SweepCandidate:
    whole = {**making.resolved(values), **values, "target": making.target or "auto"}
    config = {name: plain(value) for name, value in whole.items()}
    return SweepCandidate(config, lambda: making.kernel_of(values))
