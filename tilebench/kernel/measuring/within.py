"""A kernel within a longer program: its share of the time, and the most that making it faster can bring.

The program runs in the caller's own process, as it is. Runs of it alone and runs in which each launch of the
kernel is timed follow each other in turn, so that drift falls on both, and timing the launches does not
lengthen the run that they are a share of. What a faster kernel brings is Amdahl's law (AFIPS 1967).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, whole_option
from ...profile.figures import number, seconds_text
from ...profile.positions import median_interval
from ...profile.timing import CpuClock
from ...profile.torch_card import torch_clock
from ..calls.calling import Calls

LEAST_RUNS = 5


@dataclass(frozen=True)
class KernelShare:
    """How much of a program's time one kernel takes. `whole` and `inside` are seconds, one a run.

    `whole` are runs of the program alone, `inside` the kernel's launches of one run together.
    """

    kernel: str
    whole: tuple[float, ...]
    inside: tuple[float, ...]
    launches: int
    method: str

    @property
    def part(self) -> tuple[float, float, float]:
        """The share: the least and the greatest that the intervals allow, that of the medians between."""
        (low, mid, high), (least, middle, most) = _spread(self.inside), _spread(self.whole)
        return min(1.0, low / most), min(1.0, mid / middle), min(1.0, high / least)

    def speedup(self, times: float = float("inf")) -> tuple[float, float, float]:
        """How many times as fast the program is with a kernel so many times as fast: low, mid, high."""
        low, mid, high = (_amdahl(part, times) for part in self.part)
        return low, mid, high

    def __str__(self) -> str:
        low, mid, high = (f"{number(100 * part, 2)}" for part in self.part)
        whole = seconds_text(_spread(self.whole)[1])
        lines = [
            f"{self.kernel} is {mid} % ({low} to {high} %) of {whole}, in {self.launches} launches a run.",
            f"Twice as fast it makes the program {_times(self.speedup(2))} as fast.",
            f"However fast, at most {_times(self.speedup())}.",
            f"Method: {self.method}",
        ]
        return "\n".join(lines)


def _spread(values: tuple[float, ...]) -> tuple[float, float, float]:
    """The interval of the median, and the median between."""
    interval = median_interval(values) or (0.0, 0.0)
    ordered = sorted(values)
    return interval[0], ordered[len(ordered) // 2], interval[1]


def _amdahl(part: float, times: float) -> float:
    rest = 1 - part + part / times
    return float("inf") if rest <= 0 else 1 / rest


def _times(found: tuple[float, float, float]) -> str:
    low, mid, high = (number(value, 3) for value in found)
    return f"{mid} times ({low} to {high})" if low != high else f"{mid} times"


def share_within(kernel: Any, program: Callable[[], object], runs: int = 9) -> KernelShare:
    """The share of a kernel in a program that launches it, in this process; all its variants count.

    Raises `ArgumentError` where the program does not launch it, `OptionError` for fewer than five runs.
    """
    whole_option("runs", runs, LEAST_RUNS)
    # What the host takes is of the program too: the rest is what is not this kernel.
    clock = torch_clock() or CpuClock()
    wanted = _identity(kernel.calls)
    with _launches_timed(wanted, clock) as warm:
        program()  # compiles what it launches
    if not warm:
        raise ArgumentError(
            "the program does not launch {kernel}", kernel=kernel.name,
            hint="it has to call it in this process: kernel(a, b) or its function's eager form",
        )  # fmt: skip
    whole: list[float] = []
    inside: list[float] = []
    counts: list[int] = []
    for _ in range(runs):
        whole.append(clock.time(program))
        with _launches_timed(wanted, clock) as took:
            program()
        inside.append(sum(took))
        counts.append(len(took))
    method = (
        f"{runs} runs of the program and {runs} with each launch timed, in turn; {clock.name}; caches as the "
        "program leaves them; ranges: 95 % intervals of the medians, by order statistics"
    )
    return KernelShare(kernel.name, tuple(whole), tuple(inside), max(counts), method)


def _identity(calls: Calls) -> tuple[object, ...]:
    """What all kernels of one function have in common."""
    return calls.traced.name, calls.traced.file, calls.traced.first_line


@contextlib.contextmanager
def _launches_timed(wanted: tuple[object, ...], clock: Any) -> Generator[list[float]]:
    """In it each launch of these kernels is timed alone; gives the seconds as they come."""
    took: list[float] = []
    launch = Calls.run

    def timed(self: Calls, arguments: Any, load: Any) -> None:
        if _identity(self) == wanted:
            took.append(clock.time(lambda: launch(self, arguments, load)))
        else:
            launch(self, arguments, load)

    Calls.run = timed
    try:
        yield took
    finally:
        Calls.run = launch
