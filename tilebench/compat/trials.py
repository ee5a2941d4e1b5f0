"""What became of each configuration that was tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..kernel import Kernel

State = Literal["compiled", "timed", "illegal", "failed", "stopped"]
STATES: tuple[State, ...] = ("compiled", "timed", "illegal", "failed", "stopped")


@dataclass(frozen=True)
class Trial:
    """One configuration. `illegal`: the compiler refuses it; `failed`: it does not run, or runs wrong.
    `stopped`: it was given up after an estimate, its `milliseconds`."""

    config: Mapping[str, Any]
    state: State
    why: str = ""
    milliseconds: float | None = None
    kernel: Kernel | None = None
    arrays: tuple[Any, ...] = ()

    def without(self, state: State, why: str) -> Trial:
        """The same, which has no time for a reason."""
        return replace(self, state=state, why=why, kernel=None, arrays=())

    def stopped(self, why: str, milliseconds: float) -> Trial:
        """The same, given up after an estimate."""
        return replace(self.without("stopped", why), milliseconds=milliseconds)

    def timed(self, milliseconds: float) -> Trial:
        """The same with its time."""
        return replace(self, state="timed", milliseconds=milliseconds, arrays=())


@dataclass(frozen=True)
class TuningReport:
    """All configurations in the order of their list."""

    trials: tuple[Trial, ...]

    def of(self, state: State) -> list[Trial]:
        return [trial for trial in self.trials if trial.state == state]

    @property
    def best(self) -> Trial | None:
        """The fastest; None where none has a time."""
        return min(self.of("timed"), key=lambda trial: trial.milliseconds or 0.0, default=None)

    @property
    def summary(self) -> str:
        """How many were timed, and each reason of the others with its number."""
        parts = [f"{len(self.of('timed'))} of {len(self.trials)} configurations were timed"]
        for state in ("illegal", "failed", "stopped"):
            reasons = Counter(trial.why for trial in self.of(state))
            parts += [f"{count} {state}: {why}" for why, count in reasons.most_common()]
        return "; ".join(parts)

    def __str__(self) -> str:
        """A line for each, the fastest first."""
        rows = sorted(self.trials, key=lambda trial: (trial.milliseconds is None, trial.milliseconds or 0.0))
        return "\n".join(
            f"{f'{row.milliseconds:.4g} ms' if row.milliseconds is not None else f'{row.state}: {row.why}'}"
            f"  {dict(row.config)}"
            for row in rows
        )


@dataclass(frozen=True)
class TuningResult:
    """What `AutoTuner.run` gives: the fastest kernel, its milliseconds and the reference's, its text."""

    kernel: Kernel
    latency: float | None
    config: Mapping[str, Any] | None
    ref_latency: float | None
    libcode: str
