"""How one tuning times its configurations: on which arrays, compared with what, and when one is given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import TileError
from ..kernel import Kernel
from ..kernel.measuring.measure import measure_kernel
from ..kernel.measuring.profiler import Profiler
from .trials import Trial

# The part of the time of a whole measurement that an estimate takes.
_ESTIMATE = 0.1


class Bench:
    """Times configurations one after the other. `settings` are those of `autotune`; `given` the tensors of
    `set_autotune_inputs`, if there are any."""

    def __init__(self, settings: Mapping[str, Any], given: Sequence[Any] | None = None) -> None:
        self.settings = settings
        self.given = given
        self.best: float | None = None
        # Inputs that are made once for all configurations with such arguments, where that is wanted.
        self.kept: dict[Any, list[Any]] = {}

    def timed(self, trial: Trial) -> Trial:
        """A compiled configuration with its time, or with why it has none."""
        kernel = trial.kernel
        assert kernel is not None  # its caller looks
        try:
            inputs = self.inputs(kernel, trial.arrays)
            arrays = list(kernel.with_outputs(inputs)[0]) if kernel.outputs else list(inputs)
            seconds = max(1e-3, self.settings.get("rep", 100) / 1e3)
            limit = self.limit()
            if limit is not None:
                estimate = self.measured(kernel, arrays, _ESTIMATE * seconds)
                if estimate > limit:
                    return trial.stopped(1e3 * estimate)
            found = self.measured(kernel, arrays, seconds)
            self.compare(kernel, inputs)
        except Exception as error:
            return trial.without(
                error.message if isinstance(error, TileError) else f"{type(error).__name__}: {error}"
            )
        self.best = found if self.best is None else min(self.best, found)
        return trial.timed(1e3 * found)

    def limit(self) -> float | None:
        """The seconds beyond which a configuration is not looked at closer; None without `early_stop`."""
        if not self.settings.get("early_stop") or self.best is None:
            return None
        return self.best * self.settings.get("early_stop_factor", 2.0)

    def measured(self, kernel: Kernel, arrays: Sequence[Any], seconds: float) -> float:
        """Seconds of a launch. Raises `RuntimeError` with the reason of the child where there are none."""
        record = measure_kernel(
            kernel, arrays, seconds=seconds, check=False, timeout=self.settings.get("timeout")
        )
        if record.seconds is None or record.failure:
            raise NotMeasured(record.failure or "it was not measured")
        return record.seconds

    def inputs(self, kernel: Kernel, arrays: Sequence[Any] = ()) -> list[Any]:
        """What a configuration is timed on: what its call brought, or was given, or random arrays."""
        if arrays:
            return list(arrays)
        if self.given is not None:
            return list(self.given)
        if not self.settings.get("cache_input_tensors"):
            return self.supplied(kernel)
        like = tuple((each.name, each.dtype, each.extents) for each in kernel.arguments)
        if like not in self.kept:
            self.kept[like] = self.supplied(kernel)
        return self.kept[like]

    def supplied(self, kernel: Kernel) -> list[Any]:
        """New inputs."""
        supply = self.settings.get("supply_prog")
        if supply is not None:
            return list(supply(kernel.arguments))
        return Profiler(kernel, self.settings.get("supply_type")).inputs()

    @property
    def compares(self) -> bool:
        """Whether results are compared with those of another program."""
        return self.settings.get("ref_prog") is not None and not self.settings.get("skip_check")

    def compare(self, kernel: Kernel, inputs: Sequence[Any]) -> None:
        """Raise `AssertionError`, or what `manual_check_prog` raises, where a kernel's results are wrong."""
        if not self.compares:
            return
        settings, reference = self.settings, self.settings["ref_prog"]
        check = settings.get("manual_check_prog")
        if check is not None:
            check(_listed(kernel(*inputs)), _listed(reference(*inputs)))
            return
        ratio = settings.get("max_mismatched_ratio", 0.01)
        Profiler(kernel).assert_allclose(
            reference, inputs, settings.get("atol", 1e-2), settings.get("rtol", 1e-2), ratio
        )

    def reference_time(self, kernel: Kernel) -> float | None:
        """Milliseconds of the program that results are compared with, on the kernel's inputs."""
        if self.settings.get("ref_prog") is None:
            return None
        return Profiler(kernel, self.settings.get("supply_type")).do_bench(
            self.settings["ref_prog"], self.settings.get("warmup", 25), self.settings.get("rep", 100)
        )


class NotMeasured(TileError):
    """A configuration that has no time, with the reason."""


def _listed(results: Any) -> list[Any]:
    """What a call returns, as a list of arrays."""
    if results is None:
        return []
    several = isinstance(results, (tuple, list))
    return list(cast("Sequence[Any]", results)) if several else [results]
