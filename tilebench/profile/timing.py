"""The timing method: how a number gets onto a chart, and the sentence that says so.

Warm-up; caches cold or warm as chosen; rounds in which every contender gets the same time, in
rotating order, so that drift of clock and power falls on all alike; every launch timed alone;
medians, quartiles, and an interval for each ratio; outputs poisoned before and checked after.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from ..errors import OptionError, TileError, seconds_option, whole_option
from ..record import RunRecord
from ..runtime.cancel import Cancelled
from ..runtime.job import in_child
from ..runtime.latest import RateLimit
from .flush import CpuFlush, child_flush
from .statistics import SEED, Ratio, Summary, ratio_of_medians, summarize

ROUNDS = 7
LEAST_ROUNDS = 5
LEAST_A_TURN = 3
# Samples kept of one turn. A launch of 10 us could give thousands; the median gains nothing by them.
MOST_A_TURN = 400
WARM_UP_LAUNCHES = 3
WARM_UP_S = 0.05
# Of a kernel that ran before, on a device that was busy until just now: its clock is up, its code is there.
WARM_AGAIN_S = 0.01
JUST_NOW_S = 0.5


class Clock(Protocol):
    """Times one launch. `name` goes into the method's text."""

    @property
    def name(self) -> str: ...

    def time(self, run: Callable[[], object]) -> float:
        """Seconds that `run` took, alone."""
        ...


class Flush(Protocol):
    """Empties caches before a launch. `text` says how, for the method's text."""

    @property
    def text(self) -> str: ...

    def __call__(self) -> None: ...


class CpuClock:
    """Wall time of a call that returns when its work is done."""

    name = "monotonic wall clock around each launch"

    def time(self, run: Callable[[], object]) -> float:
        start = time.perf_counter_ns()
        run()
        return (time.perf_counter_ns() - start) / 1e9

    def overhead(self) -> float:
        """Seconds it reads for a call that does nothing (least of 100); it is not subtracted."""
        return min(self.time(_nothing) for _ in range(100))


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Contender:
    """Something to time. `run` launches it and, for a CPU clock, waits for it.

    `poison` fills its outputs with what no right result holds; `check` returns "" when they are
    right and otherwise what is wrong.
    """

    name: str
    run: Callable[[], object]
    poison: Callable[[], object] | None = None
    check: Callable[[], str] | None = None


class Progress(NamedTuple):
    """How far a measurement is: launches timed so far of one contender, their median in seconds."""

    name: str
    round: int
    rounds: int
    samples: int
    median: float


@dataclass(frozen=True)
class Method:
    """How the numbers were made. `text` is the line that is printed with each of them."""

    clock: str
    cache: Literal["cold", "warm"]
    flush: str
    rounds: int
    seconds_a_turn: float
    contenders: int
    checked: bool
    overhead_s: float = 0.0
    seed: int = SEED

    @property
    def text(self) -> str:
        warm = "warm caches (one launch untimed before each turn)"
        cold = f"cold caches ({self.flush})" if self.cache == "cold" else warm
        others = (
            f"interleaved, {self.contenders} contenders in rotating order, " if self.contenders > 1 else ""
        )
        least = f", clock reads {self.overhead_s * 1e9:.0f} ns for nothing" if self.overhead_s else ""
        checked = "outputs poisoned before and checked after" if self.checked else "outputs not checked"
        return (
            f"median of single launches; {self.clock}{least}; {cold}; {self.rounds} rounds of "
            f"{self.seconds_a_turn * 1e3:.0f} ms each, {others}after warm-up; intervals: 95 % bootstrap over "
            f"rounds, seed {self.seed}; {checked}"
        )


@dataclass(frozen=True)
class Timing:
    """What was measured of one contender. `rounds` holds seconds a launch, by round.

    `failure` is why there are no or no trustworthy numbers: an error, or wrong output. `readings` are what
    was read of the machine at the end of each turn: clocks, power, temperature.
    """

    name: str
    rounds: tuple[tuple[float, ...], ...]
    failure: str = ""
    checked: bool = False
    readings: tuple[Mapping[str, str], ...] = ()

    @property
    def samples(self) -> tuple[float, ...]:
        return tuple(itertools.chain.from_iterable(self.rounds))

    @property
    def summary(self) -> Summary | None:
        return summarize(self.samples) if self.samples else None

    @property
    def seconds(self) -> float | None:
        """The median, unless the contender failed."""
        return None if self.failure or not self.samples else summarize(self.samples).median


@dataclass(frozen=True)
class Measurement:
    """All contenders of one run, and the method."""

    timings: tuple[Timing, ...]
    method: Method

    def __getitem__(self, name: str) -> Timing:
        for timing in self.timings:
            if timing.name == name:
                return timing
        raise OptionError(
            "nothing named {name!r} was measured",
            name=name,
            hint="measured: " + ", ".join(t.name for t in self.timings),
        )

    def speedup(self, of: str, over: str) -> Ratio | None:
        """How many times as fast `of` is as `over`, with its interval; None when either failed."""
        fast, slow = self[of], self[over]
        if fast.seconds is None or slow.seconds is None:
            return None
        return ratio_of_medians(slow.rounds, fast.rounds, seed=self.method.seed)

    def run_record(
        self,
        name: str,
        *,
        kernel: str,
        target: str,
        config: Mapping[str, Any],
        environment: Mapping[str, str],
        flops: float = 0.0,
        bytes: float = 0.0,
    ) -> RunRecord:
        """One contender as a `RunRecord`; a failed one has no samples."""
        timing = self[name]
        return RunRecord(
            kernel=kernel,
            target=target,
            config=dict(config),
            samples=() if timing.failure else timing.samples,
            method=self.method.text,
            environment={**environment, **spans(timing.readings)},
            flops=flops,
            bytes=bytes,
            failure=timing.failure,
            when=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        )


def spans(readings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What changed between readings, from the least to the greatest: `1755 to 1980 MHz`."""
    out: dict[str, str] = {}
    for name in readings[0] if readings else ():
        words = [reading[name].partition(" ") for reading in readings if name in reading]
        if len({number for number, _, _ in words}) > 1:
            with contextlib.suppress(ValueError):
                numbers = sorted((float(number), number) for number, _, _ in words)
                out[name] = f"{numbers[0][1]} to {numbers[-1][1]} {words[0][2]}".strip()
    return out


@dataclass
class _Turns:
    """What is collected of one contender while the measurement runs."""

    contender: Contender
    rounds: list[list[float]] = field(default_factory=list[list[float]])
    failure: str = ""
    readings: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])


def measure(
    contenders: Sequence[Contender],
    *,
    clock: Clock | None = None,
    cache: Literal["cold", "warm"] = "cold",
    flush: Flush | None = None,
    seconds: float = 0.5,
    rounds: int = ROUNDS,
    warm_up: float = WARM_UP_S,
    progress: Callable[[Progress], object] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    watch: Callable[[], Mapping[str, str]] | None = None,
) -> Measurement:
    """Time every contender by one method.

    `seconds` is what one contender gets over all rounds, flushing included, behind `warm_up` seconds; a turn
    makes three launches or more. `flush` defaults to `CpuFlush()` when `cache` is `"cold"`. `progress` is
    called ten times a second at most, `watch` at the end of each turn. A contender that raises is left out
    from then on. Raises `Cancelled`, and `OptionError` for too few rounds, no time, or names used twice.
    """
    _look_at(contenders, rounds, seconds, cache)
    clock = clock or CpuClock()
    if cache == "cold" and flush is None and in_child():
        flush = child_flush()
    own = CpuFlush() if cache == "cold" and flush is None else None
    empty: Flush | None = (flush or own) if cache == "cold" else None
    show = RateLimit(progress) if progress is not None else None
    turns = [_Turns(contender) for contender in contenders]
    length = seconds / rounds
    try:
        for turn in turns:
            _guarded(turn, lambda turn=turn: _warm_up(turn.contender, clock, warm_up, cancelled))
        for number in range(rounds):
            first = number % len(turns)
            for turn in turns[first:] + turns[:first]:
                _guarded(turn, lambda turn=turn: _turn(turn, clock, empty, length, cancelled))
                if watch is not None:
                    turn.readings.append(watch())
                if show is not None and turn.rounds:
                    show.offer(_progress(turn, number + 1, rounds))
        for turn in turns:
            _guarded(turn, lambda turn=turn: _check(turn))
        if show is not None:
            show.flush()
    finally:
        if own is not None:
            own.close()
    checked, how = all(contender.check for contender in contenders), empty.text if empty is not None else ""
    method = Method(clock.name, cache, how, rounds, length, len(turns), checked, _nothing_s(clock))
    return Measurement(tuple(_timing(turn) for turn in turns), method)


def _nothing_s(clock: Clock) -> float:
    """Seconds that a clock reads for nothing; zero where it does not say."""
    overhead: Any = getattr(clock, "overhead", None)
    return float(overhead()) if overhead is not None else 0.0


def _look_at(contenders: Sequence[Contender], rounds: int, seconds: float, cache: str) -> None:
    seconds_option("seconds", seconds)
    names = [contender.name for contender in contenders]
    if not names or len(set(names)) != len(names):
        raise OptionError(
            "contenders need names of their own", found="{names}", names=", ".join(names) or "none"
        )
    if whole_option("rounds", rounds, 0) < LEAST_ROUNDS:
        raise OptionError(
            "{rounds} rounds are too few to tell drift from difference",
            rounds=rounds,
            expected=f"{LEAST_ROUNDS} or more",
        )
    if cache not in ("cold", "warm"):
        raise OptionError("caches are {cache!r}", cache=cache, expected="'cold' or 'warm'")


def _guarded(turns: _Turns, step: Callable[[], None]) -> None:
    """Run a step of one contender; its error becomes its failure."""
    if turns.failure:
        return
    try:
        step()
    except Cancelled:
        raise
    except TileError as error:
        turns.failure = error.message
    except Exception as error:
        turns.failure = f"{type(error).__name__}: {error}"


def _stop_if(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise Cancelled("the measurement was stopped")


def _warm_up(contender: Contender, clock: Clock, seconds: float, cancelled: Callable[[], bool]) -> None:
    start = time.perf_counter()
    for launch in itertools.count(1):
        _stop_if(cancelled)
        clock.time(contender.run)
        if launch >= WARM_UP_LAUNCHES and time.perf_counter() - start >= seconds:
            return


def _turn(
    turns: _Turns, clock: Clock, flush: Flush | None, length: float, cancelled: Callable[[], bool]
) -> None:
    """One contender's turn in one round: launches until its time is used up."""
    contender = turns.contender
    if contender.poison is not None:
        contender.poison()
    if flush is None:
        clock.time(contender.run)  # warm again after the poison and the others' turns
    samples: list[float] = []
    end = time.perf_counter() + length
    while len(samples) < LEAST_A_TURN or time.perf_counter() < end:
        _stop_if(cancelled)
        if flush is not None:
            flush()
        took = clock.time(contender.run)
        # After enough samples the turn goes on unrecorded: a contender that idles early would
        # leave the next one a cooler machine.
        if len(samples) < MOST_A_TURN:
            samples.append(took)
    turns.rounds.append(samples)


def _check(turns: _Turns) -> None:
    if turns.contender.check is not None:
        turns.failure = turns.contender.check()


def _progress(turns: _Turns, number: int, rounds: int) -> Progress:
    samples = list(itertools.chain.from_iterable(turns.rounds))
    return Progress(turns.contender.name, number, rounds, len(samples), summarize(samples).median)


def _timing(turns: _Turns) -> Timing:
    kept = tuple(tuple(samples) for samples in turns.rounds)
    readings = tuple(turns.readings)
    if not turns.failure and not all(math.isfinite(s) and s >= 0 for samples in kept for s in samples):
        return Timing(turns.contender.name, kept, "the clock read a time that is not a number of seconds")
    return Timing(turns.contender.name, kept, turns.failure, turns.contender.check is not None, readings)
