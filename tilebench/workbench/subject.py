"""What a workbench looks at: a kernel function with its parameters, sliders and schedule choices."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import ArgumentError, OptionError, nearest
from ..schedule import Schedule, ScheduleFile
from ..schedule.choices import AS_WRITTEN, choices_schedule
from .edits import edited_kernel
from .launch import launch_names, launch_sliders
from .options import checked_domain
from .slider import Slider
from .wish import KeptEdit, Wish

if TYPE_CHECKING:
    from ..kernel import JitFunction, Kernel

# Values offered for a parameter that has a default and one of these names, where nobody gave others:
# powers of two around what kernels use. A knob or a sweep replaces them.
USUAL: Mapping[str, tuple[int, ...]] = {
    "block_M": (16, 32, 64, 128, 256),
    "block_N": (16, 32, 64, 128, 256),
    "block_K": (16, 32, 64, 128),
    "num_stages": (1, 2, 3, 4),
    "threads": (64, 128, 256, 512),
}
# Which schedule choices get a control of their own without being asked for, and their values.
OFFERED: Mapping[tuple[str, str], tuple[Any, ...]] = {
    ("kernel", "threads"): (64, 128, 256, 512),
    ("kernel", "order"): (0, 2, 4, 8, 16),
    ("kernel", "persistent"): (False, True),
    ("loop", "num_stages"): (0, 1, 2, 3, 4),
    ("buffer", "swizzle"): (False, True),
    ("gemm", "policy"): ("square", "full_row", "full_col"),
}
MOST_OFFERED = 12


class Subject:
    """A kernel function (or one kernel, whose parameters are then fixed) as a maker of kernels."""

    def __init__(
        self,
        kernel: JitFunction | Kernel,
        values: Mapping[str, Any] | None = None,
        sweep: Mapping[str, Sequence[Any]] | None = None,
        schedule: Any = None,
        target: str | None = None,
    ) -> None:
        from ..kernel import JitFunction, Kernel

        # What a notebook passes is known only now.
        if not isinstance(kernel, (JitFunction, Kernel)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                "a workbench shows a kernel", found="{kind}", kind=type(kernel).__name__,
                expected="a function with @tilebench.jit, or the kernel that it returns",
            )  # fmt: skip
        self.kernel = kernel
        self.name = kernel.name
        self.signature = None if isinstance(kernel, Kernel) else kernel.signature
        self.schedule: Any = schedule if schedule is not None else kernel.schedule
        self._made: dict[Any, JitFunction | Kernel] = {}
        self._edits: dict[Any, Kernel] = {}
        self.target = target or kernel.target
        # What a sweep was asked for, by name in the order of the line.
        self.sweep = {name: tuple(choices) for name, choices in (sweep or {}).items()}
        self._making = threading.Lock()
        given, swept = dict(values or {}), dict(sweep or {})
        self.given = {name: value for name, value in given.items() if self._is_parameter(name)}
        first = {name: choices[0] for name, choices in swept.items() if self._is_parameter(name) and choices}
        others = {name: value for name, value in given.items() if name not in self.given}
        missing = self._missing(first)
        # What else is given are values of a call, if the kernel has such: that shows when it is made.
        self.values = {} if missing else self._resolved(first)
        names = () if missing else launch_names(lambda: self.make(Wish(self.values, target=self.target)))
        names = tuple(name for name in names if not self._is_parameter(name))
        if not missing or self._near_parameter(others):
            self._check_names([name for name in others if name not in names], names)
        self._need_all(missing)
        called = {name: checked_domain(name, choices) for name, choices in swept.items() if name in names}
        self.launch = launch_sliders(names, others, called)
        self.knobs = self._knobs({name: tuple(c) for name, c in swept.items() if name not in called})
        self.knobs += self.launch

    @property
    def is_function(self) -> bool:
        """Whether parameters can change."""
        return self.signature is not None

    def first_wish(self, stages: Sequence[str], run: bool, check: bool) -> Wish:
        """Where the controls stand at the beginning."""
        choices = {knob.name: knob.value for knob in self.knobs if knob.choice and knob.value != AS_WRITTEN}
        sizes = {knob.name: knob.value for knob in self.launch if knob.value is not None}
        return Wish(self.values, choices, sizes, self.target, tuple(stages), run, check)

    def _resolved(self, first: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter's first value: given, else the default, else the first of its sweep.

        A schedule file's rules have their say where a call would let them.
        """
        from ..kernel import JitFunction
        from ..targets import resolve

        machine = resolve(self.target)[1]
        if not isinstance(self.kernel, JitFunction):
            return dict(self.kernel.parameters)
        start = {k: v for k, v in first.items() if k not in self._defaults()} | self.given
        return self.kernel.using(schedule=self.schedule).parameters((), start, machine.name)[0]

    def make(self, wish: Wish) -> Kernel:
        """The kernel of a wish. Raises the `TileError` of whatever refuses it."""
        from ..kernel import Kernel

        if wish.edit is not None:
            return self._edited(wish, wish.edit)
        schedule = self.schedule_of(wish)
        key = (wish.target, schedule.key if isinstance(schedule, Schedule) else id(schedule))
        with self._making:  # a sweep compiles beside the controls
            made = self._made.pop(key, None) or self._under(wish.target, schedule)
            # The newest 32: each holds the kernels of its own, and a walk seldom leaves a few schedules.
            self._made[key] = made
            while len(self._made) > 32:
                del self._made[next(iter(self._made))]
        kernel = made if isinstance(made, Kernel) else made.kernel((), dict(wish.values))
        return kernel.at(wish.sizes)

    def _under(self, target: str | None, schedule: Any) -> JitFunction | Kernel:
        """The function, or the one kernel, for a target and a schedule."""
        from ..kernel import Kernel
        from ..kernel.elsewhere import kernel_for
        from ..targets import resolve

        if isinstance(self.kernel, Kernel):
            return kernel_for(self.kernel, *resolve(target), schedule)
        return self.kernel.using(target=target, schedule=schedule)

    def _edited(self, wish: Wish, edit: KeptEdit) -> Kernel:
        """The kernel of an edit at its position; the newest few are kept."""
        key = (edit.number, edit.stages)
        with self._making:
            found = self._edits.get(key)
        if found is None:
            found = edited_kernel(self.make(replace(wish, edit=None)), edit)
            with self._making:
                self._edits[key] = found
                while len(self._edits) > 8:
                    del self._edits[next(iter(self._edits))]
        return found

    def schedule_of(self, wish: Wish) -> Any:
        """The schedule that a wish comes to: its choices over the one the workbench was opened with."""
        if not wish.choices:
            return self.schedule
        over = choices_schedule(wish.choices)
        under = self.schedule
        if isinstance(under, ScheduleFile):
            from ..targets import resolve

            under = under.choose({**wish.values, "target": resolve(wish.target)[1].name})
        return over.over(under)

    def offered(self, kernel: Kernel) -> list[Slider]:
        """Choices of the schedule that this kernel has and that no knob covers, as written."""
        from ..schedule import candidates

        function = kernel.compilation.traced.function
        taken = {knob.name for knob in self.knobs} | set(self.values)
        out: list[Slider] = []
        for (kind, option), values in OFFERED.items():
            names = (
                [""] if kind == "kernel" else [c.address for c in _fitting(candidates(function, kind), kind)]
            )
            for address in names:
                name = f"{address}.{option}" if address else option
                # `threads=threads` and `num_stages=num_stages` are parameters already.
                if name not in taken and option not in taken:
                    out.append(Slider(name, (AS_WRITTEN, *values), AS_WRITTEN, choice=True))
        return out[:MOST_OFFERED]

    # -- parameters
    def _is_parameter(self, name: str) -> bool:
        return self.signature is not None and name in self.signature.parameters

    def _defaults(self) -> dict[str, Any]:
        from ..kernel import JitFunction

        return (
            self.kernel.defaults() if isinstance(self.kernel, JitFunction) else dict(self.kernel.parameters)
        )

    def _check_names(self, unknown: Sequence[str], launch: Sequence[str]) -> None:
        for name in unknown:
            if not self.is_function and not launch:
                raise ArgumentError(
                    "the parameters of {kernel} are fixed", kernel=self.name, found=f"{name}=...",
                    hint="give the function with @tilebench.jit instead of the kernel it returned",
                )  # fmt: skip
            parameters = [] if self.signature is None else list(self.signature.parameters)
            close = nearest(name, [*parameters, *launch], limit=1)
            calls = f"; a call of it gives {', '.join(launch)}" if launch else ""
            raise ArgumentError(
                "{kernel} has no parameter {name}", kernel=self.name, name=name, expected="{form}",
                form=self.form() + calls, hint=f"did you mean {close[0]}?" if close else "",
            )  # fmt: skip

    def form(self) -> str:
        """The signature as a person wrote it."""
        return f"{self.name}{self.signature}" if self.signature is not None else self.name

    def _near_parameter(self, names: Mapping[str, Any]) -> bool:
        """Whether one of the names is a slip of the pen for a parameter."""
        known = [] if self.signature is None else list(self.signature.parameters)
        return any(nearest(name, known, limit=1) for name in names)

    def _missing(self, swept: Mapping[str, Any]) -> list[str]:
        """The parameters that have no value."""
        if self.signature is None:
            return []
        have = {**self._defaults(), **self.given, **swept}
        if isinstance(self.schedule, Schedule):
            have |= self.schedule.params
        elif isinstance(self.schedule, ScheduleFile):
            for rule in self.schedule.rules:
                have |= rule.schedule.params
        return [name for name in self.signature.parameters if name not in have]

    def _need_all(self, missing: Sequence[str]) -> None:
        """Raise, with the signature and an example, when a parameter has no value."""
        if missing:
            raise ArgumentError(
                "{kernel} needs a value for {missing}", kernel=self.name, missing=", ".join(missing),
                expected="{form}", form=self.form(),
                hint="for example --with {example}   (or with_={{...}} in Python)", example=example(missing),
            )  # fmt: skip

    # -- knobs
    def _knobs(self, sweep: dict[str, tuple[Any, ...]]) -> list[Slider]:
        own: dict[str, Slider] = {}
        for name, values in sweep.items():
            own[name] = self._swept(name, checked_domain(name, values))
        if self.signature is None:
            return list(own.values())
        from ..kernel import JitFunction

        domains = self.kernel.knobs if isinstance(self.kernel, JitFunction) else {}
        out: list[Slider] = []
        for name, value in self.values.items():
            if name in own:
                out.append(own.pop(name))
            elif name in domains:
                out.append(Slider(name, _with(domains[name].values, value), value))
            elif name in USUAL and type(value) is int:
                out.append(Slider(name, _with(USUAL[name], value), value))
        return out + list(own.values())

    def _refuse_kinds(self, name: str, values: Sequence[Any]) -> None:
        """Raise `OptionError` for a sweep of several kinds, or of another than the parameter's default."""
        default = self._defaults().get(name)
        first = next((value for value in (default, *values) if value is not None), None)
        for value in values:
            if _kind(value) not in ("", _kind(first)):
                raise OptionError(
                    "the sweep of {name} cannot hold {value}", name=name, value=repr(value),
                    found="{kind}", kind=_kind(value), expected="{other}, as {first}", other=_kind(first),
                    first=repr(first),
                )  # fmt: skip

    def _swept(self, name: str, values: tuple[Any, ...]) -> Slider:
        if self._is_parameter(name):
            self._refuse_kinds(name, values)
            # A default outside the sweep is no position of its slider, unless it was asked for.
            value = self.values[name]
            if name in self.given or value in values:
                return Slider(name, _with(values, value), value)
            self.values[name] = values[0]
            return Slider(name, values, values[0])
        known = list(self.signature.parameters) if self.signature else []
        for wished in values:
            choices_schedule({name: wished}, known)
        return Slider(name, _with(values, AS_WRITTEN), values[0], choice=True)


def _kind(value: Any) -> str:
    """What sort of value it is, as people call it; nothing for None, which goes with any."""
    if value is None:
        return ""
    names: tuple[tuple[Any, str], ...] = (
        ((bool, int, float), "a number"), (str, "a word"), ((tuple, list), "a tuple"),
    )  # fmt: skip
    other = type(cast(object, value)).__name__
    return next((told for kinds, told in names if isinstance(value, kinds)), other)


def _with(values: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """The values with `value` among them: in its order where all are numbers, else in front."""
    if value in values:
        return tuple(values)
    every = [value, *values]
    ascending = list(values) == sorted(values, key=_rank) and all(
        type(number) in (int, float) for number in every
    )
    return tuple(sorted(every)) if ascending else tuple(every)


def _rank(value: Any) -> float:
    return value if type(value) in (int, float) else 0.0


def _fitting(found: Sequence[Any], kind: str) -> list[Any]:
    """The candidates to which the offered option of their kind applies."""
    from ..language.memory import AllocShared
    from ..language.structure import Pipelined

    wanted = {"loop": Pipelined, "buffer": AllocShared}.get(kind)
    return [candidate for candidate in found if wanted is None or isinstance(candidate.node, wanted)]


def example(names: Sequence[str]) -> str:
    """Values that a person could give for parameters of these names."""
    usual = {"block_M": 64, "block_N": 64, "block_K": 32, "threads": 128, "num_stages": 2, "dtype": "float16"}
    return " ".join(f"{name}={usual.get(name, 64 if 'block' in name else 1024)}" for name in names)
