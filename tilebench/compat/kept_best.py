"""The outcome of a tuning, kept in the compile cache: the next process takes the best and times nothing.

An entry is found by the text of every configuration's kernel, what they are timed on, and the device: what is
kept holds as long as all of that does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..errors import TileError
from ..runtime.cache import default_cache, key_of
from ..runtime.describe import describe
from .bench import Bench
from .trials import STATES, Trial, TuningReport

_FILE = "tuning.json"
# A list of configurations is thousands at most, and a reason a few lines.
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Kept:
    """An entry: what became of each configuration, the number of the best, the reference's time."""

    report: TuningReport
    best: int
    reference: float | None


def key_of_tuning(trials: Sequence[Trial], bench: Bench) -> str | None:
    """The key of these configurations' outcome; None where a kernel's text cannot be had."""
    texts: list[str] = []
    device: dict[str, Any] = {}
    try:
        for trial in trials:
            kernel = trial.kernel
            texts.append(trial.why if kernel is None else kernel.stage("tile"))
            if kernel is not None and not device:
                found = kernel.compilation
                device = {"machine": found.machine.name, "units": found.machine.units}
                device |= _fixed(found.manifest.environment())
        arrays = next((trial.arrays for trial in trials if trial.arrays), tuple(bench.given or ()))
        return key_of(
            kind="tuning", texts=texts, device=device, arrays=[_shape(array) for array in arrays],
            outputs=[list(t.kernel.outputs) if t.kernel else [] for t in trials],
            supply=str(bench.settings.get("supply_type")), compares=bench.compares,
        )  # fmt: skip
    except TileError:
        return None


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    """What says which device it is, and nothing of its state."""
    return {name: value for name, value in environment.items() if name.endswith("_name")}


def _shape(array: Any) -> object:
    if isinstance(array, (bool, int, float)):
        return array
    info = describe(array, "an input")
    return [list(info.shape), info.dtype.name, list(info.strides)]


def keep(key: str, report: TuningReport, reference: float | None) -> None:
    """Keep an outcome for those who come after."""
    rows = [[trial.state, trial.why, trial.milliseconds] for trial in report.trials]
    body = json.dumps({"rows": rows, "reference": reference}).encode()
    default_cache().put(key, {_FILE: body})


def kept(key: str, configs: Sequence[Mapping[str, Any]]) -> Kept | None:
    """The outcome that was kept under a key; None where there is none, or it is no outcome of these."""
    files = default_cache().get(key)
    body = None if files is None else files.get(_FILE)
    if body is None or len(body) > _MOST_BYTES:
        return None
    try:
        found: Any = json.loads(body)
        rows = cast("list[Any]", found["rows"])
        if len(rows) != len(configs):
            return None
        trials = tuple(_trial(config, row) for config, row in zip(configs, rows, strict=True))
        reference = None if found["reference"] is None else float(found["reference"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    report = TuningReport(trials)
    best = report.best
    if best is None:
        return None
    return Kept(report, next(k for k, trial in enumerate(trials) if trial is best), reference)


def _trial(config: Mapping[str, Any], row: Any) -> Trial:
    state, why, milliseconds = row
    if state not in STATES or not isinstance(why, str):
        raise ValueError(state)
    time = None if milliseconds is None else float(milliseconds)
    if state == "timed" and (time is None or not math.isfinite(time)):
        raise ValueError(time)
    return Trial(config, state, why, time)


__all__ = ["Kept", "keep", "kept", "key_of_tuning"]
