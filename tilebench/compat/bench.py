"""How a tuning times a configuration: on which arrays, compared with what, and when it is given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import TileError
from ..kernel import Kernel
from ..kernel.measuring.measure import measure_kernel
from ..kernel.measuring.profiler import Profiler
from ..record import RunRecord

# The part of the time of a whole measurement that an estimate takes.
_ESTIMATE = 0.1
# Runs of a configuration that may be the best, with those of all others between them.
RUNS = 3


class Bench:
    """What a sweep's engine calls for each run. `settings` are those of `autotune`; `given` the tensors of
    `set_autotune_inputs`, if there are any."""

    def __init__(self, settings: Mapping[str, Any], given: Sequence[Any] | None = None) -> None:
        self.settings = settings
        self.given = given
        self.best: float | None = None
        # Inputs that are made once for all configurations with such arguments, where that is wanted.
        self.kept: dict[Any, list[Any]] = {}
        # Kernels that had their first run, in which they are estimated and compared.
        self._begun: list[Kernel] = []

    @property
    def seconds(self) -> float:
        """The time of one run: all of a configuration take what `rep` says."""
        return max(1e-3, self.settings.get("rep", 100) / 1e3) / RUNS

    def run(self, kernel: Kernel, arrays: Sequence[Any], timeout: float | None = None) -> RunRecord:
        """One run of a compiled configuration, the first with a comparison.

        Raises `NotMeasured` with why there is none, `GivenUp` after an estimate.
        """
        try:
            return self._run(kernel, arrays, self.settings.get("timeout") or timeout)
        except TileError:
            raise
        except Exception as error:
            raise NotMeasured("{kind}: {why}", kind=type(error).__name__, why=str(error)) from error

    def _run(self, kernel: Kernel, arrays: Sequence[Any], timeout: float | None) -> RunRecord:
        first = not any(kernel is one for one in self._begun)
        self._begun += [kernel] if first else []
        inputs = self.inputs(kernel, arrays)
        passed = list(kernel.with_outputs(inputs)[0]) if kernel.outputs else list(inputs)
        limit = self.limit() if first else None
        if limit is not None:
            estimate = self.measured(kernel, passed, _ESTIMATE * self.seconds, timeout).seconds or 0.0
            if estimate > limit:
                raise GivenUp(estimate)
        found = self.measured(kernel, passed, self.seconds, timeout)
        if first:
            self.compare(kernel, inputs)
        assert found.seconds is not None  # `measured` looks
        self.best = found.seconds if self.best is None else min(self.best, found.seconds)
        return found

    def limit(self) -> float | None:
        """The seconds beyond which a configuration is not looked at closer; None without `early_stop`."""
        if not self.settings.get("early_stop") or self.best is None:
            return None
        return self.best * self.settings.get("early_stop_factor", 2.0)

    def measured(
        self, kernel: Kernel, arrays: Sequence[Any], seconds: float, timeout: float | None
    ) -> RunRecord:
        """A run of so many seconds. Raises `NotMeasured`, with the child's reason, where it has no time."""
        record = measure_kernel(kernel, arrays, seconds=seconds, check=False, timeout=timeout)
        if record.seconds is None or record.failure:
            raise NotMeasured("{why}", why=record.failure or "it was not measured")
        return record

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


class GivenUp(NotMeasured):
    """A configuration whose estimate is too far from the best; `seconds` is what was estimated."""

    def __init__(self, seconds: float) -> None:
        super().__init__("slower than the best by more than early_stop_factor")
        self.seconds = seconds


def _listed(results: Any) -> list[Any]:
    """What a call returns, as a list of arrays."""
    if results is None:
        return []
    several = isinstance(results, (tuple, list))
    return list(cast("Sequence[Any]", results)) if several else [results]
