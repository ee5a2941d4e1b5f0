"""One work, in the measuring child: every contender on the same arrays, interleaved, checked, as records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import TileError
from ...profile.environment import environment
from ...profile.statistics import Ratio
from ...profile.timing import Contender, Measurement, measure
from ...profile.torch_card import torch_card
from ...record import RunRecord
from ...runtime.job import cancelled
from ...targets import resolve
from ..calls import call
from .arrays import Found, compared, made, poison, result_of, space_on
from .peers import Run, Setup, peers_named
from .works import BenchWork

OURS = "tilebench"
# A peer may round on its way; what it gives is that operation's result up to this, by the norm.
PEER_ERROR = 1e-2


@dataclass(frozen=True)
class BenchMethod:
    """What a run was asked for. `configs` are peers' configurations by the names of their rows."""

    rounds: int = 7
    seconds: float = 0.5
    seed: int = 0
    configs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class BenchRow:
    """One contender at one work: its record, and its time as a multiple of ours, None where one failed."""

    record: RunRecord
    ratio: Ratio | None = None


class _Runner:
    """A contender with its last result, which is poisoned before each turn and compared at the end."""

    def __init__(self, name: str, run: Run, setup: Setup) -> None:
        self.name, self.run, self.setup = name, run, setup
        self.result: Any = None
        self.found: Found | None = None

    def __call__(self) -> None:
        self.result = self.run()

    def poison(self) -> None:
        poison(self.result)

    def check(self) -> str:
        """What is wrong with the last result, or nothing."""
        of_torch = type(self.result).__module__.partition(".")[0] == "torch"
        values = self.result.numpy() if of_torch and self.setup.space.on_host else self.result
        found = self.found = compared(self.setup.space, self.setup.work, self.setup.arrays, values)
        if self.name == OURS and not found.ok:
            return f"wrong result: an error of {found.error:.3g} where {found.bound:.3g} is allowed"
        return "" if found.relative <= PEER_ERROR else f"wrong result: {found.relative:.2g} off by the norm"


def measure_work(
    work: BenchWork, target: str | None, against: tuple[str, ...], method: BenchMethod
) -> list[BenchRow]:
    """The rows of one work: ours first, then one for each peer. A failure stands in its record."""
    manifest, machine = resolve(target)
    space = space_on(manifest.device)
    setup = Setup(work, space, made(space, work, method.seed), method.configs)
    runners, failures = _prepared(setup, against)
    found: Measurement | None = None
    if runners:
        clock, flush = (None if space.on_host else torch_card()) or (None, None)
        found = measure(
            [Contender(name, run, run.poison, run.check) for name, run in runners.items()],
            clock=clock, flush=flush, rounds=method.rounds, seconds=method.seconds, cancelled=cancelled,
            watch=None if space.on_host else manifest.environment,
        )  # fmt: skip
    where = environment(manifest.environment())
    rows: list[BenchRow] = []
    for name in (OURS, *against):
        if found is None or name not in runners:
            record = failed(work, name, machine.name, failures.get(name, ""), where)
        else:
            record = _record(found, runners[name], machine.name, where)
        rows.append(BenchRow(record, _ratio(record, name, found)))
    return rows


def _prepared(setup: Setup, against: tuple[str, ...]) -> tuple[dict[str, _Runner], dict[str, str]]:
    """Who can run, each having run once, which compiles it; and why the others cannot."""
    work = setup.work
    given = [setup[argument.name] for argument in work.operator.arguments]
    out = result_of(setup.space, work)

    def ours() -> Any:
        return call(work.operator, *given, out=out, **work.passed)

    runners: dict[str, _Runner] = {}
    failures: dict[str, str] = {}
    for name in (OURS, *against):
        try:
            run = ours if name == OURS else peers_named((name,))[0].runner(setup)
            if run is None:
                failures[name] = "has no such operation"
                continue
            runner = _Runner(name, run, setup)
            runner()
            runners[name] = runner
        except TileError as error:
            failures[name] = error.message
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return runners, failures


def _config(work: BenchWork, name: str) -> dict[str, Any]:
    return {"work": work.name, "by": name, **work.sizes, "dtype": work.dtype}


def failed(work: BenchWork, name: str, target: str, why: str, where: Mapping[str, str]) -> RunRecord:
    """The record of a contender that has no times."""
    return RunRecord(
        f"{work.name} by {name}", target, _config(work, name), environment=dict(where),
        failure=why or "nothing was measured", when=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    )  # fmt: skip


def _record(found: Measurement, runner: _Runner, target: str, where: Mapping[str, str]) -> RunRecord:
    work = runner.setup.work
    effort = work.operator.effort(work.problem)
    record = found.run_record(
        runner.name, kernel=f"{work.name} by {runner.name}", target=target, config=_config(work, runner.name),
        environment=where, flops=effort.flops, bytes=effort.bytes,
    )  # fmt: skip
    if runner.found is None:
        return record
    return replace(record, error=runner.found.error, bound=runner.found.bound)


def _ratio(record: RunRecord, name: str, found: Measurement | None) -> Ratio | None:
    """The time as a multiple of ours, with its interval."""
    if record.seconds is None or name == OURS or found is None:
        return None
    return found.speedup(OURS, name) if OURS in [each.name for each in found.timings] else None
