"""A sweep as a value: its rows, the best of them, a table, and a file."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path

from ..errors import OptionError
from ..profile.positions import Fastest, Position, fastest
from ..record import RunRecord, SweepRecord, SweepRow
from ..record_files import load, save
from .table import table_of


class Sweep:
    """What a sweep measured. Printed it is its table; `record` is the plain data that `save` writes."""

    def __init__(self, record: SweepRecord) -> None:
        self.record = record

    @property
    def kernel(self) -> str:
        return self.record.kernel

    @property
    def rows(self) -> tuple[SweepRow, ...]:
        """Every configuration, in the order in which they were tried."""
        return self.record.rows

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """All runs of the kernel, by row."""
        return self.record.runs

    @property
    def best(self) -> SweepRow | None:
        """The row with the least time; None where none has one."""
        leader = self.leader
        return leader[0] if leader is not None else None

    @cached_property
    def leader(self) -> tuple[SweepRow, Fastest] | None:
        """The best row, and whether what runs differ by could explain that it is."""
        timed = self.record.of("timed")
        found = fastest([Position(row.runs) for row in timed])
        return (timed[found.number], found) if found is not None else None

    @property
    def complete(self) -> bool:
        """Whether every row has all its runs, or says why it has none."""
        return not any(_is_open(row, self.record.repeats) for row in self.rows)

    def table(self) -> str:
        """A line a configuration, the fastest first; then what failed and what was refused, with reasons."""
        return table_of(self.record, self.leader, self.summary)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write it as a file (.tbz), which `tilebench.open_sweep` reads; gives the path.

        Raises `OptionError` where a file is there already, unless `overwrite`.
        """
        save(self.record, path, overwrite=overwrite)
        return Path(path)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<sweep of {self.kernel} on {self.record.target}: {self.summary}>"

    @property
    def summary(self) -> str:
        """How many rows there are of each state."""
        counts = Counter("open" if _is_open(row, self.record.repeats) else row.state for row in self.rows)
        names = ("timed", "compiled", "illegal", "failed", "open")
        parts = [f"{counts[name]} {name}" for name in names if counts[name]]
        count = f"{len(self.rows)} configuration{'s' * (len(self.rows) != 1)}"
        return f"{count}: " + (", ".join(parts) or "none tried")


def _is_open(row: SweepRow, repeats: int) -> bool:
    return row.state == "waiting" or (row.state == "timed" and len(row.runs) < repeats)


def open_record(path: str | Path) -> SweepRecord:
    """The record of a sweep's file. `OptionError` for a file of another kind."""
    found = load(path)
    if not isinstance(found, SweepRecord):
        raise OptionError(
            "{path} holds no sweep", path=path, found="{kind}", kind=type(found).__name__,
            expected="a file that Sweep.save wrote",
        )  # fmt: skip
    return found
