"""What a block does line by line, counted in the simulator: no card is needed, and the numbers are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...record import LineCounter
from ...targets import resolve_machine
from .measure import random_inputs
from .package import Package
from .simulated import simulate

if TYPE_CHECKING:
    from ...simulator import LineTally

BLOCK = (0, 0, 0)
_HOW = "Counted in the simulator, for block (0, 0, 0) of the grid"
# Name, title, what is counted, how it is read off a line.
_COUNTERS: tuple[tuple[str, str, str, Callable[[LineTally], int]], ...] = (
    (
        "sim_runs",
        "runs of a warp",
        "How often the warps of a block run a statement: each warp with an active thread, each time",
        lambda line: line.runs,
    ),
    (
        "sim_sectors",
        "global sectors",
        "Sectors of 32 bytes that warps move to and from global memory",
        lambda line: line.sectors.moved,
    ),
    (
        "sim_wasted",
        "wasted sectors",
        "Sectors of 32 bytes beyond the fewest that could hold what the threads of a warp ask for",
        lambda line: line.sectors.excess,
    ),
    (
        "sim_passes",
        "shared passes",
        "Passes over the banks of shared memory, without those of units that read or write it by themselves",
        lambda line: line.shared.wavefronts,
    ),
    (
        "sim_conflicts",
        "bank conflicts",
        "Passes over the banks of shared memory beyond the fewest: what conflicts cost",
        lambda line: line.shared.excess,
    ),
)


def count_simulated(package: Package, stage: str, seed: int = 0) -> tuple[LineCounter, ...]:
    """Run one block of a package's last stage, `stage`, in the simulator; the counters of its lines.

    The arrays are random from `seed`, as those of a check. Raises `SimulationError` at the statement that
    does what a card must not.
    """
    from ...simulator import Counters

    _, machine = resolve_machine(package.target)
    counters = Counters(machine.shared.banks, machine.shared.bank_bytes, machine.transaction_bytes)
    simulate(package, random_inputs(package, seed), [BLOCK], counters)
    return line_counters_of(counters.lines, stage, len(package.stage_text.splitlines()))


def line_counters_of(lines: Mapping[int, LineTally], stage: str, count: int) -> tuple[LineCounter, ...]:
    """What a simulation kept by line, as counters of a stage's text of `count` lines.

    Conflicts and wasted sectors stand there with a sum of 0 too, where such memory was accessed.
    """
    out: list[LineCounter] = []
    for name, title, says, read in _COUNTERS:
        values = [0.0] * count
        for line, tally in lines.items():
            if 0 < line <= count:
                values[line - 1] += read(tally)
        accessed = any(each.shared.instructions for each in lines.values())
        if any(values) or (name == "sim_conflicts" and accessed) or name == "sim_wasted":
            out.append(LineCounter(name, title, stage, tuple(values), "", f"{says}. {_HOW}."))
    return tuple(out)
