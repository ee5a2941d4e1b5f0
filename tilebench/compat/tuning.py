"""`autotune`: the fastest of a list of configurations, found when a call leaves them open.

Configurations are compiled at the same time, then timed one after the other in the measuring child, so that
one that runs wild costs itself alone. What the compiler refuses is told apart from what failed.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from ..errors import ArgumentError, TileError
from ..kernel import JitFunction, Kernel
from ..kernel.measuring.measure import measure_kernel
from ..kernel.measuring.profiler import Profiler, TensorSupplyType, do_bench
from ..kernel.snapshot.exact import frozen
from ..profile.environment import allowed_cores
from .compiling import jit, target_of
from .trials import Trial, TuningReport, TuningResult

log = logging.getLogger("tilebench.compat")
Configs = Sequence[Mapping[str, Any]] | Callable[..., Sequence[Mapping[str, Any]]]
# Tensors of `set_autotune_inputs`, innermost last.
_inputs: list[tuple[Any, ...]] = []


@contextlib.contextmanager
def set_autotune_inputs(*tensors: Any) -> Generator[None]:
    """`with set_autotune_inputs(a, b):` configurations are timed on these tensors, not on random ones."""
    given = (
        cast("tuple[Any, ...]", tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        else tensors
    )
    _inputs.append(tuple(given))
    try:
        yield
    finally:
        _inputs.pop()


class Tuned:
    """A kernel function with configurations: a call that gives nothing of what they choose gets the fastest.

    `settings` are those of `autotune`.
    """

    def __init__(self, kernels: JitFunction, configs: Configs, settings: Mapping[str, Any]) -> None:
        self.kernels = kernels
        self.configs = configs
        self.settings = settings
        self.best: dict[Any, Kernel] = {}
        self.__name__, self.__doc__ = kernels.name, kernels.__doc__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernels, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As of the kernel function: its kernel, in the eager form what it returns for these arrays."""
        eager = self.kernels.eager
        configs = self.open_in(args, kwargs)
        if configs is None:
            return self.kernels(*args, **kwargs)
        if eager is None:
            return self.tuned(configs, lambda config: (self.kernels.kernel(args, {**kwargs, **config}), ()))
        chosen = self.tuned(configs, lambda config: self.split(args, {**kwargs, **config}))
        return chosen(*self.split(args, {**kwargs, **(chosen.config or {})})[1])

    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel for these parameters: with the fastest configuration where they leave it open."""
        configs = self.open_in(args, kwargs)
        if configs is None:
            return self.kernels.compile(*args, **kwargs)
        return self.tuned(configs, lambda config: (self.kernels.compile(*args, **kwargs, **config), ()))

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Kernel, Sequence[Any]]:
        """The kernel and the arrays of an eager call."""
        assert self.kernels.eager is not None  # its callers look
        compiled, arrays = self.kernels.eager.split(args, kwargs)
        return self.kernels.kernel((), compiled), arrays

    def open_in(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The configurations, where a call gives nothing of what they choose; else None."""
        given = self.configs(*args, **kwargs) if callable(self.configs) else self.configs
        configs = [{k: v for k, v in config.items() if k != "pass_configs"} for config in given]
        if not configs:
            raise ArgumentError("autotune has no configurations", at=self.kernels.place)
        names = list(inspect.signature(self.kernels.function).parameters)
        chosen = {*names[: len(args)], *kwargs}
        return None if any(name in chosen for config in configs for name in config) else configs

    def tuned(
        self, configs: list[dict[str, Any]], make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]]
    ) -> Kernel:
        """The fastest kernel of these configurations, kept for the next call of the same parameters."""
        rest: list[object] = []
        first = _first(configs, make)
        key = (
            None if first is None
            else frozen({k: v for k, v in first.parameters.items() if k not in configs[0]}, rest.append)
        )  # fmt: skip
        if key is None or rest or key not in self.best:
            found = tune(configs, make, self.settings)
            if key is None or rest:
                return found
            self.best[key] = found
        return self.best[key]


def _first(
    configs: Sequence[dict[str, Any]], make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]]
) -> Kernel | None:
    """The kernel of the first configuration that is legal."""
    for config in configs:
        with contextlib.suppress(TileError):
            return make(config)[0]
    return None


def tune(
    configs: Sequence[dict[str, Any]],
    make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]],
    settings: Mapping[str, Any],
) -> Kernel:
    """The fastest kernel of these configurations, with its `config`, `latency` and `tuning`.

    `make` gives the kernel of a configuration and the arrays to time it on; without arrays they are random.
    Raises `ArgumentError` with all reasons where none of them runs.
    """

    def compiled(config: dict[str, Any]) -> Trial:
        try:
            kernel, arrays = make(config)
            kernel.reach_code()
        except TileError as error:
            return Trial(config, "illegal", str(error.message))
        except Exception as error:
            return Trial(config, "failed", f"{type(error).__name__}: {error}")
        return Trial(config, "compiled", kernel=kernel, arrays=tuple(arrays))

    with ThreadPoolExecutor(allowed_cores()) as pool:
        trials = list(pool.map(compiled, configs))
    trials = [_timed(trial, settings) if trial.kernel is not None else trial for trial in trials]
    report = TuningReport(tuple(trials))
    best = report.best
    if best is None or best.kernel is None:
        raise ArgumentError("no configuration of autotune runs: {why}", why=report.summary)
    if len(report.of("timed")) < len(trials):
        log.warning("autotune: %s", report.summary)
    kernel = copy.copy(best.kernel)
    kernel.config, kernel.latency = best.config, best.milliseconds
    if settings.get("ref_prog") is not None:
        kernel.ref_latency = Profiler(kernel, settings.get("supply_type")).do_bench(
            settings["ref_prog"], settings.get("warmup", 25), settings.get("rep", 100)
        )
    kernel.tuning = report
    return kernel


def _timed(trial: Trial, settings: Mapping[str, Any]) -> Trial:
    """A compiled configuration with its time, or with why it has none."""
    kernel = trial.kernel
    assert kernel is not None  # its caller looks
    try:
        inputs = _supplied(trial, settings)
        seconds = max(1e-3, settings.get("rep", 100) / 1e3)
        arrays, timeout = _with_outputs(kernel, inputs), settings.get("timeout")
        record = measure_kernel(kernel, arrays, seconds=seconds, check=False, timeout=timeout)
        if record.seconds is None or record.failure:
            return trial.without(record.failure or "it was not measured")
        _compare(kernel, inputs, settings)
    except Exception as error:
        return trial.without(
            error.message if isinstance(error, TileError) else f"{type(error).__name__}: {error}"
        )
    return trial.timed(record.seconds * 1e3)


def _supplied(trial: Trial, settings: Mapping[str, Any]) -> list[Any]:
    """What one configuration is timed on."""
    kernel = trial.kernel
    assert kernel is not None  # its caller looks
    if trial.arrays:
        return list(trial.arrays)
    if _inputs:
        return list(_inputs[-1])
    if settings.get("supply_prog") is not None:
        return list(settings["supply_prog"](kernel.arguments))
    return Profiler(kernel, settings.get("supply_type")).inputs()


def _with_outputs(kernel: Kernel, inputs: Sequence[Any]) -> list[Any]:
    """All arguments, with arrays for what a call makes itself."""
    return list(kernel.with_outputs(inputs)[0]) if kernel.outputs or kernel.hidden else list(inputs)


def _compare(kernel: Kernel, inputs: Sequence[Any], settings: Mapping[str, Any]) -> None:
    reference = settings.get("ref_prog")
    if reference is None or settings.get("skip_check"):
        return
    ratio = settings.get("max_mismatched_ratio", 0.01)
    Profiler(kernel).assert_allclose(
        reference, inputs, settings.get("atol", 1e-2), settings.get("rtol", 1e-2), ratio
    )


# Options of `autotune` that mean something here, and those that are taken and choose nothing.
_OPTIONS = {
    "warmup", "rep", "timeout", "supply_type", "ref_prog", "supply_prog", "rtol", "atol", "skip_check",
    "max_mismatched_ratio", "manual_check_prog", "cache_input_tensors", "do_not_specialize", "early_stop",
    "early_stop_factor",
}  # fmt: skip


def autotune(func: Any = None, *, configs: Configs, **settings: Any) -> Any:
    """Above `@jit`: calls that leave open what `configs` choose get the fastest of them.

    `configs` is a list of dicts, or a function of the call's arguments that gives one. Raises `ArgumentError`
    for an option that TileLang has not.
    """
    unknown = sorted(set(settings) - _OPTIONS)
    if unknown:
        raise ArgumentError(
            "autotune has no option {name}", name=unknown[0], expected=", ".join(sorted(_OPTIONS))
        )

    def wrap(kernels: Any) -> Tuned:
        if not isinstance(kernels, JitFunction):
            raise ArgumentError(
                "autotune goes above @tilelang.jit, found {kind}", kind=type(kernels).__name__,
                hint="write @tilelang.autotune(configs=...) above @tilelang.jit",
            )  # fmt: skip
        return Tuned(kernels, configs, settings)

    return wrap if func is None else wrap(func)


class AutoTuner:
    """Tuning step by step: `AutoTuner.from_kernel(kernel, configs).set_compile_args(...).run()`."""

    def __init__(self, fn: Any, configs: Configs) -> None:
        self.function = fn
        self.configs = configs
        self.compile_args: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}

    @classmethod
    def from_kernel(cls, kernel: Any, configs: Configs) -> AutoTuner:
        """Of a function that returns a `@T.prim_func`, decorated or not."""
        return cls(kernel, configs)

    def set_compile_args(self, out_idx: Any = None, target: Any = None, **options: Any) -> AutoTuner:
        """How each configuration is compiled: as for `jit`."""
        self.compile_args = {"out_idx": out_idx, "target": target, **options}
        return self

    def set_profile_args(self, **settings: Any) -> AutoTuner:
        """How each is timed and compared: as for `autotune`."""
        self.settings = {**self.settings, **settings}
        return self

    def run(
        self, warmup: float = 25, rep: float = 100, timeout: float | None = None, **_: Any
    ) -> TuningResult:
        """Compile and time all configurations. Raises `ArgumentError` where none of them runs."""
        kernels = self.function if isinstance(self.function, JitFunction) else jit(self.function)
        chosen = {
            "out_idx": self.compile_args.get("out_idx") or kernels.out_idx,
            "target": target_of(self.compile_args.get("target")) or kernels.target,
        }
        tuned = Tuned(
            kernels.using(**chosen),
            self.configs,
            {**self.settings, "warmup": warmup, "rep": rep, "timeout": timeout},
        )
        kernel = tuned.compile()
        return TuningResult(
            kernel, kernel.latency, kernel.config, kernel.ref_latency, kernel.get_kernel_source()
        )


__all__ = ["AutoTuner", "TensorSupplyType", "autotune", "do_bench", "set_autotune_inputs", "tune"]
