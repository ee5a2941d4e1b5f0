"""`autotune`: the fastest of a list of configurations, found when a call leaves them open.

The engine of a sweep does it (`trying.py`): all are compiled at the same time, then timed in the measuring
child, so that one that runs wild costs itself alone; those that may be the best get more runs, in turns.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

from ..errors import ArgumentError, TileError
from ..kernel import JitFunction, Kernel
from ..kernel.foreign import tell_options
from ..kernel.measuring.profiler import TensorSupplyType, do_bench
from ..kernel.snapshot.exact import frozen
from .bench import Bench
from .compiling import jit, target_of
from .kept_best import keep, kept, key_of_tuning
from .trials import Trial, TuningReport, TuningResult
from .trying import tried

log = logging.getLogger("tilebench.compat")
Configs = Sequence[Mapping[str, Any]] | Callable[..., Sequence[Mapping[str, Any]]]
# A name of a configuration that is none of the function's parameters.
RESERVED = "pass_configs"
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
        config = {name: value for name, value in (chosen.config or {}).items() if name != RESERVED}
        return chosen(*self.split(args, {**kwargs, **config})[1])

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
        configs = [dict(config) for config in given]
        if not configs:
            raise ArgumentError("autotune has no configurations", at=self.kernels.place)
        names = list(inspect.signature(self.kernels.function).parameters)
        chosen = {*names[: len(args)], *kwargs}
        tunable = {name for config in configs for name in config if name != RESERVED}
        return None if tunable & chosen else configs

    def tuned(
        self, configs: list[dict[str, Any]], make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]]
    ) -> Kernel:
        """The fastest kernel of these configurations, kept for the next call of the same parameters."""
        rest: list[object] = []
        first = _first(configs, make)
        left_out = {*configs[0], *(self.settings.get("do_not_specialize") or ())}
        key = (
            None if first is None
            else frozen({k: v for k, v in first.parameters.items() if k not in left_out}, rest.append)
        )  # fmt: skip
        if key is None or rest:
            return tune(configs, make, self.settings)
        if key not in self.best:
            self.best[key] = tune(configs, make, self.settings)
        best = self.best[key]
        same = all(
            best.parameters[k] == v for k, v in (first or best).parameters.items() if k not in configs[0]
        )
        return best if same else self.again(best, make)

    def again(self, best: Kernel, make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]]) -> Kernel:
        """The kernel of other parameters by the configuration that was best for those that were timed."""
        config = dict(best.config or {})
        kernel = copy.copy(make({name: value for name, value in config.items() if name != RESERVED})[0])
        kernel.config, kernel.latency, kernel.tuning = config, best.latency, best.tuning
        return kernel


def _first(
    configs: Sequence[dict[str, Any]], make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]]
) -> Kernel | None:
    """The kernel of the first configuration that is legal."""
    for config in configs:
        with contextlib.suppress(TileError):
            return make({name: value for name, value in config.items() if name != RESERVED})[0]
    return None


def tune(
    configs: Sequence[dict[str, Any]],
    make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]],
    settings: Mapping[str, Any],
) -> Kernel:
    """The fastest kernel of these configurations, with its `config`, `latency` and `tuning`.

    `make` gives the kernel of a configuration and the arrays to time it on; without arrays they are random.
    What was found before, in this process or another, is taken from the compile cache. Raises `ArgumentError`
    with all reasons where none of them runs.
    """
    bench = Bench(settings, _inputs[-1] if _inputs else None)
    trials = [_made(config, make) for config in configs]
    key = key_of_tuning(trials, bench)
    known = None if key is None else kept(key, configs)
    if known is not None and _is_right(trials[known.best], bench):
        log.info("autotune: %s is the fastest by what was kept", dict(configs[known.best]))
        return _chosen(trials[known.best], known.report, known.reference)
    timed = tried(trials, bench)
    report = TuningReport(timed)
    best = report.best
    if best is None:
        raise ArgumentError(
            "no configuration of autotune runs: {why}", why=report.summary,
            hint="" if _inputs or not report.of("failed") else "`with set_autotune_inputs(...):` gives the "
            "arguments to time on, arrays and scalars; without it arrays are random",
        )  # fmt: skip
    if len(report.of("timed")) < len(timed):
        log.warning("autotune: %s", report.summary)
    kernel = _chosen(best, report, None)
    kernel.ref_latency = bench.reference_time(kernel)
    if key is not None:
        keep(key, report, kernel.ref_latency)
    return kernel


def _made(config: dict[str, Any], make: Callable[[dict[str, Any]], tuple[Kernel, Sequence[Any]]]) -> Trial:
    """A configuration with its kernel, not compiled yet, or with why it has none."""
    plain = {name: value for name, value in config.items() if name != RESERVED}
    try:
        kernel, arrays = make(plain)
    except TileError as error:
        return Trial(config, "illegal", str(error.message))
    except Exception as error:
        return Trial(config, "failed", f"{type(error).__name__}: {error}")
    return Trial(config, "compiled", kernel=kernel, arrays=tuple(arrays))


def _is_right(trial: Trial, bench: Bench) -> bool:
    """Whether the configuration that was kept as the best still runs, and right where that is known."""
    if trial.kernel is None:
        return False
    try:
        trial.kernel.reach_code()
        bench.compare(trial.kernel, bench.inputs(trial.kernel, trial.arrays))
    except Exception as error:
        log.warning("autotune: the configuration that was kept is timed again: %s", error)
        return False
    return True


def _chosen(trial: Trial, report: TuningReport, reference: float | None) -> Kernel:
    """The kernel of the best configuration, with what is known of it."""
    assert trial.kernel is not None  # its callers look
    kernel = copy.copy(trial.kernel)
    best = report.best
    kernel.config, kernel.latency = trial.config, best.milliseconds if best is not None else None
    kernel.ref_latency, kernel.tuning = reference, report
    if trial.config.get(RESERVED):
        tell_options(kernel, {RESERVED: trial.config[RESERVED]})
    return kernel


# Options of `autotune`.
_OPTIONS = {
    "warmup", "rep", "timeout", "supply_type", "ref_prog", "supply_prog", "rtol", "atol", "skip_check",
    "max_mismatched_ratio", "manual_check_prog", "cache_input_tensors", "do_not_specialize", "early_stop",
    "early_stop_factor",
}  # fmt: skip


def autotune(func: Any = None, *, configs: Configs, **settings: Any) -> Any:
    """Above `@jit`: calls that leave open what `configs` choose get the fastest of them.

    `configs` is a list of dicts, or a function of the call's arguments that gives one. The options are
    TileLang's: `warmup` and `rep` (milliseconds), `timeout` (seconds of one measurement), `supply_type`,
    `supply_prog` and `cache_input_tensors` (the inputs, and whether they are made once for all
    configurations), `ref_prog` with `rtol`, `atol`, `max_mismatched_ratio`, `manual_check_prog(ours, theirs)`
    and `skip_check`, `do_not_specialize` (parameters for whose values nothing is timed anew), `early_stop`
    and `early_stop_factor` (configurations whose estimate is so many times the best are given up). Raises
    `ArgumentError` for an option that TileLang has not, and a factor below one.
    """
    unknown = sorted(set(settings) - _OPTIONS)
    if unknown:
        raise ArgumentError(
            "autotune has no option {name}", name=unknown[0], expected=", ".join(sorted(_OPTIONS))
        )

    _check_settings(settings)

    def wrap(kernels: Any) -> Tuned:
        if not isinstance(kernels, JitFunction):
            raise ArgumentError(
                "autotune goes above @tilelang.jit, found {kind}", kind=type(kernels).__name__,
                hint="write @tilelang.autotune(configs=...) above @tilelang.jit",
            )  # fmt: skip
        return Tuned(kernels, configs, settings)

    return wrap if func is None else wrap(func)


def _check_settings(settings: Mapping[str, Any]) -> None:
    factor = settings.get("early_stop_factor", 2.0)
    if settings.get("early_stop") and factor < 1:
        raise ArgumentError("early_stop_factor is {factor}", factor=factor, expected="1 or more")


def _tell_unused(options: Mapping[str, Any]) -> None:
    """A warning that names options which choose nothing here."""
    given = sorted(name for name, value in options.items() if value is not None)
    if given:
        log.warning("autotune: options that choose nothing here: %s", ", ".join(given))


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
        """How each is timed and compared: as for `autotune`; what has no meaning here is told."""
        _tell_unused({name: value for name, value in settings.items() if name not in _OPTIONS})
        self.settings |= {name: value for name, value in settings.items() if name in _OPTIONS}
        return self

    def run(
        self, warmup: float = 25, rep: float = 100, timeout: float | None = None, **options: Any
    ) -> TuningResult:
        """Compile and time all configurations. Raises `ArgumentError` where none of them runs."""
        self.set_profile_args(**options)
        _check_settings(self.settings)
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
        tell_options(
            kernel, {k: v for k, v in self.compile_args.items() if k in ("pass_configs", "compile_flags")}
        )
        return TuningResult(
            kernel, kernel.latency, kernel.config, kernel.ref_latency, kernel.get_kernel_source()
        )


__all__ = ["AutoTuner", "TensorSupplyType", "autotune", "do_bench", "set_autotune_inputs", "tune"]
