"""What a diagnosis is made of, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...machine import Machine
from ...record import CompileRecord, PlaceRecord, Remark, RunRecord
from .observe import Observed

# What bounds a kernel.
CLASSES = ("memory", "compute", "latency", "launch", "schedule")


@dataclass(frozen=True)
class Evidence:
    """One figure: its name in words, and its value with a unit."""

    name: str
    value: str


@dataclass(frozen=True)
class Cause:
    """One cause. `kind` is one of `CLASSES`, `weight` its share of the time as far as it can be told, 0 to 1.

    `what` says what is so, `to_try` what to do about it; `line` is the user's line, 0 where there is none.
    """

    cause: str
    kind: str
    what: str
    to_try: str
    evidence: tuple[Evidence, ...] = ()
    weight: float = 0.0
    line: int = 0

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        figures = ", ".join(f"{each.name} {each.value}" for each in self.evidence)
        said = f"{self.what}{where}." + (f" Seen: {figures}." if figures else "")
        return f"{said} Try: {self.to_try}."


@dataclass(frozen=True)
class SwizzleTrade:
    """What a tile's swizzle does, over all accesses of a block to it: instructions and passes over the banks.

    `instructions` and `passes` are with it, `plain_instructions` and so on without; `width` and `plain_width`
    are bytes of an access at `line`, where it breaks vectors.
    """

    tile: str
    line: int
    width: int
    instructions: int
    passes: int
    plain_width: int
    plain_instructions: int
    plain_passes: int


@dataclass(frozen=True)
class Case:
    """All that is known of a kernel. `ceilings` are (FLOP/s, bytes/s) of the device, None where not measured.

    `runs` are those of this position, oldest first, `others` those of other positions of the same kernel.
    `checks` says by target whether results were right; a target that was not tried is not in it. `swizzles`
    are those that break vector accesses.
    """

    record: CompileRecord
    machine: Machine
    observed: Observed
    runs: Sequence[RunRecord] = ()
    others: Sequence[RunRecord] = ()
    ceilings: tuple[float | None, float | None] = (None, None)
    checks: Mapping[str, bool] = field(default_factory=dict[str, bool])
    swizzles: Sequence[SwizzleTrade] = ()

    @property
    def run(self) -> RunRecord | None:
        """The newest run that has a time."""
        return next((run for run in reversed(self.runs) if run.seconds), None)

    @property
    def blocks(self) -> int | None:
        """Blocks of the first launch; None where the grid is known only at a call."""
        total = 1
        for extent in self.record.grid:
            if not isinstance(extent, int):
                return None
            total *= extent
        return total

    def remarks(self, pass_name: str, kind: str = "") -> list[Remark]:
        """The remarks of a pass, of one kind where it is given."""
        return [r for r in self.record.remarks if r.pass_name == pass_name and kind in ("", r.kind)]


def line_of(place: PlaceRecord | None) -> int:
    """The line of a place, 0 for none."""
    return place.line if place is not None else 0
