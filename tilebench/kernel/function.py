"""`@tilebench.jit`: a Python function that makes kernels."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from .. import settings
from ..errors import ArgumentError, Place, TileError, nearest
from ..frontend import trace
from ..frontend.eager import eager_form
from ..frontend.source import SourceFunction, source_of
from ..frontend.texts import texts_read
from ..frontend.trace import compile_parameters
from ..ir import Function
from ..language.knobs import Knob
from ..schedule import Schedule, ScheduleFile, as_given
from ..targets import resolve
from .calls.eager import EagerCalls
from .decorated import check_decorated
from .foreign import check_options, tell_options
from .kept import KeptKernels, quick_key
from .kernel import Kernel
from .pickled import reduce_function
from .saving.surroundings import MadeFrom
from .snapshot.exact import frozen
from .snapshot.outside import Outside

ScheduleLike = Schedule | ScheduleFile | str | Path | None


class JitFunction:
    """A kernel function. Calling it with its parameters gives a `Kernel`, made once for each set.

    One whose own body is the kernel is called with arrays, and gives what it returns for them.

    `out_idx` names parameters (by position, negative from the end) that the kernel allocates and
    returns. `target` is `auto`, `cpu`, `cuda`, `cuda:sm_90a`, ...; `schedule` a `Schedule`, a
    `ScheduleFile` or the path of one. `using(...)` gives the same function with other choices.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        target: str | None = None,
        schedule: ScheduleLike = None,
        out_idx: int | Sequence[int] | None = None,
        source: Mapping[str, Any] | None = None,
        texts: Sequence[Sequence[str]] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_decorated(function)
        functools.update_wrapper(self, function)
        self.function = function
        self.target = target
        self.schedule = as_given(schedule)
        self.out_idx = (out_idx,) if isinstance(out_idx, int) else tuple(out_idx or ())
        self.source = dict(source or {})
        # Of TileLang's decorator, told in the remarks of each kernel.
        self.options = dict(options or {})
        # What Python has just read: the text of this function, whatever is written to its file later.
        self.texts = texts_read(function) if texts is None else texts
        self._kept = KeptKernels()

    def __repr__(self) -> str:
        return f"<tilebench kernel function {self.name}{inspect.signature(self.function)}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return reduce_function(self)

    def __getattr__(self, name: str) -> Any:
        """`AttributeError`, that says where a word of a kernel is to be found."""
        said = f"a tilebench kernel function has no {name}"
        if hasattr(Kernel, name):
            said += f"; its kernels have: .compile(...).{name}, with parameters and sizes in compile"
        raise AttributeError(said, name=name, obj=self)

    def __copy__(self) -> JitFunction:
        return self

    def __deepcopy__(self, _: object) -> JitFunction:
        """Itself, as of any function."""
        return self

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def signature(self) -> inspect.Signature:
        """What a kernel is compiled for: in the eager form what no call passes, and the constants."""
        whole = inspect.signature(self.function)
        form = self.eager.form if self.eager is not None else None
        if form is None:
            return whole
        return whole.replace(parameters=list(compile_parameters(whole, form).values()))

    @functools.cached_property
    def eager(self) -> EagerCalls | None:
        """The calls of a function whose own body is the kernel; None where it returns a `@T.prim_func`."""
        try:
            form = eager_form(self.text.node)
        except TileError:
            return None  # no source: said where the kernel is made
        return EagerCalls(self, form) if form is not None else None

    @property
    def text(self) -> SourceFunction:
        """The function's own text. Raises `LanguageError` where it cannot be found."""
        given = {name: self.source[name] for name in ("text", "file", "first_line") if name in self.source}
        return source_of(self.function, **given, kept=self.texts)

    def outside(self) -> Outside:
        """What the function sees around itself now."""
        return self._kept.outside((self.function,))

    def completed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of parameters with their defaults, as far as there are any."""
        return {**self.defaults(), **given}

    @functools.cached_property
    def knobs(self) -> dict[str, Knob]:
        """The parameters that carry their own domain of values."""
        from ..frontend import knobs_of

        return knobs_of(self.function, kept=self.texts)

    def using(self, **changes: Any) -> JitFunction:
        """The same function with another `target`, `schedule`, `out_idx` or `source`."""
        now: dict[str, Any] = {
            "target": self.target,
            "schedule": self.schedule,
            "out_idx": self.out_idx,
            "source": self.source,
            "texts": self.texts,
            "options": self.options,
        }
        for name in changes:
            if name not in now:
                close = nearest(name, list(now))
                raise ArgumentError(
                    "using has no choice {name}", name=name, at=self.place,
                    hint=f"did you mean {close[0]}?" if close else "known: target, schedule, out_idx, source",
                )  # fmt: skip
        return JitFunction(self.function, **{**now, **changes})

    def __get__(self, instance: object, owner: type | None = None) -> JitFunction:
        """The function itself, as an attribute of a class. Through an object of it `ArgumentError`."""
        if instance is None:
            return self
        raise ArgumentError(
            "{name} is a kernel function and no method: {kind}.{name} does not pass the object on",
            name=self.name, kind=type(instance).__name__, at=self.place,
            hint="put @staticmethod above @tilebench.jit, and pass the object where it is needed",
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The `Kernel` for these parameters; in the eager form what it returns for these arrays."""
        return self.kernel(args, kwargs) if self.eager is None else self.eager(args, kwargs)

    def compile(
        self, *args: Any, target: str | None = None, schedule: ScheduleLike = None, **kwargs: Any
    ) -> Kernel:
        """The `Kernel` for these parameters, with a target or schedule for it alone."""
        own = target is None and schedule is None
        function = (
            self if own else self.using(target=target or self.target, schedule=schedule or self.schedule)
        )
        return function.kernel(*self._sized(args, kwargs))

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The text of the kernel for these parameters, or for these arrays: what its compiler gets."""
        return self.kernel(*self._sized(args, kwargs)).get_kernel_source()

    def get_tir(self, *args: Any, **kwargs: Any) -> Function:
        """The kernel for these parameters, or these arrays, in the stage `tile`."""
        return self.kernel(*self._sized(args, kwargs)).prim_func

    def _sized(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """What a kernel is compiled for: in the eager form also of arrays, or `T.Tensor` in their place."""
        if self.eager is None or not any(hasattr(arg, "shape") for arg in args):
            return args, kwargs
        return (), self.eager.split(args, kwargs)[0]

    def par_compile(
        self, configs: Sequence[Mapping[str, Any] | Sequence[Any]], num_workers: int | None = None, **_: Any
    ) -> list[Kernel]:
        """The kernels of several sets of parameters, each a mapping or a sequence, compiled at once."""
        from concurrent.futures import ThreadPoolExecutor

        def one(config: Mapping[str, Any] | Sequence[Any]) -> Kernel:
            named = isinstance(config, Mapping)
            kernel = self.kernel((), config) if named else self.kernel(tuple(config), {})
            kernel.reach_code()
            return kernel

        with ThreadPoolExecutor(num_workers) as pool:
            return list(pool.map(one, configs))

    def kernel(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Kernel:
        """The kernel for these parameters. Raises the `TileError` of whatever refuses them."""
        key = quick_key(args, kwargs, self.target or settings.target())
        found = self._kept.quick(key) if key is not None else None
        if found is not None:
            return found
        manifest, machine = resolve(self.target)
        values, schedule = self.parameters(args, kwargs, machine.name)
        rest: list[object] = []
        wanted = (frozen(values, rest.append), machine.name, schedule.key if schedule else ())
        outside = self._kept.outside((self.function, *rest))
        found = self._kept.find(wanted, outside)
        if found is None:
            traced = trace(self.function, values, kept=self.texts, **self.source)
            found = self._kept.like(wanted, traced)
            outputs = traced.outputs or self.out_idx
            if found is None:
                found = Kernel(traced, manifest, machine, schedule, out_idx=outputs)
                found.made_from = MadeFrom(self.function, self.texts, self.source, self.out_idx)
                tell_options(found, self.options)
        self._kept.keep(wanted, outside, found, quick=key if not rest else None)
        return found

    def parameters(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], target: str
    ) -> tuple[dict[str, Any], Schedule | None]:
        """The kernel function's arguments, and the schedule that applies to them.

        A call's own values come first, then the schedule's `params`, then the signature's defaults.
        """
        self._refuse_unknown(list(kwargs))
        try:
            bound = self.signature.bind_partial(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                "{name} cannot be called so: {why}", at=self.place, name=self.name, why=error,
                expected=f"{self.name}{self.signature}".replace("{", "{{").replace("}", "}}"),
            ) from None  # fmt: skip
        given = dict(bound.arguments)
        schedule = self.schedule
        if isinstance(schedule, ScheduleFile):
            schedule = schedule.choose({**self.defaults(), **given, "target": target})
        values = {**self.defaults(), **(schedule.params if schedule else {}), **given}
        self._refuse_unknown(list(values))
        missing = [name for name in self.signature.parameters if name not in values]
        if missing:
            what = f"needs {', '.join(missing)}"
            raise ArgumentError(
                "{name} {what}", at=self.place, name=self.name, what=what,
                expected=f"{self.name}{self.signature}".replace("{", "{{").replace("}", "}}"),
            )  # fmt: skip
        return {name: values[name] for name in self.signature.parameters}, schedule

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        """`ArgumentError`, with the nearest, for a name that is no parameter."""
        known = list(self.signature.parameters)
        for name in names:
            if name not in known:
                close = nearest(name, known)
                raise ArgumentError(
                    "{function} has no parameter {name}", at=self.place, function=self.name, name=name,
                    hint=f"did you mean {close[0]}?" if close else "known: " + ", ".join(known),
                )  # fmt: skip

    @property
    def place(self) -> Place | None:
        """Where the function stands; None where its source is gone."""
        try:
            source = source_of(self.function, kept=self.texts)
        except TileError:
            return None
        return source.place(source.node)

    def defaults(self) -> dict[str, Any]:
        """The values of parameters that have one: a knob's first, or the signature's default."""
        out: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if isinstance(parameter.default, Knob):
                out[name] = parameter.default.default
            elif parameter.default is not inspect.Parameter.empty:
                out[name] = parameter.default
            elif name in self.knobs:
                out[name] = self.knobs[name].default
        return out


@overload
def jit(function: Callable[..., Any], /) -> JitFunction: ...
@overload
def jit(
    *,
    target: str | None = None,
    schedule: ScheduleLike = None,
    out_idx: int | Sequence[int] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], JitFunction]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    target: str | None = None,
    schedule: ScheduleLike = None,
    out_idx: int | Sequence[int] | None = None,
    **options: Any,
) -> Any:
    """Make a kernel function of a Python function that returns a `@T.prim_func`, or whose body is the kernel.

        >>> import tilebench
        >>> import tilebench.language as T
        >>> @tilebench.jit
        ... def double(N, block):
        ...     @T.prim_func
        ...     def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        ...         with T.Kernel(T.ceildiv(N, block)) as bx:
        ...             for i in T.Parallel(block):
        ...                 B[bx * block + i] = A[bx * block + i] * 2.0
        ...     return main
        >>> import numpy as np
        >>> a, b = np.ones(1000, np.float32), np.empty(1000, np.float32)
        >>> double(1000, 128)(a, b)
        >>> float(b.sum())
        2000.0

    `double(1000, 128)` is a kernel; `double(1000, 128)(a, b)` runs it. A function whose own body opens
    `with T.Kernel(...)` is called with arrays and runs at once; `.compile(N=1000)` gives its kernel.
    Raises `ArgumentError` for an option that there is not.
    """
    check_options(options)

    def wrap(inner: Callable[..., Any]) -> JitFunction:
        return JitFunction(inner, target=target, schedule=schedule, out_idx=out_idx, options=options)

    return wrap if function is None else wrap(function)
