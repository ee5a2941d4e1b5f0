"""The three plain-data values that everything outside the compiler reads.

`CompileRecord` is one compilation: stages with their texts and line maps, remarks, resources, the
schedule with origins. `RunRecord` is one measurement: configuration, samples, method, environment.
`SweepRecord` is the measurements of many configurations. All go to JSON and back without loss, in a
zip (`.tbz`), never pickle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FORMAT = 1
# The name under which a remark says why a record has no operations.
UNCOUNTED = "count_work"


@dataclass(frozen=True)
class PlaceRecord:
    """A place in the user's source: file, line from 1, column from 0, exclusive ends."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True)
class StageRecord:
    """One stage. `language` names a Pygments lexer (`python`, `tile-ir`, `cuda`, `ptx`, `nvsass`).

    `lines[k]` are the lines of the user's source that line k+1 of the text came from: where macros are
    inlined the kernel's own line first, then those of macros in the same file. `previous[k]` are the lines of
    the stage before. `seconds` is what making this stage took.
    `pending` says that the text is still being made in the background.
    Of a text that a target emits, `made_of` names the text above that its compiler got, and `made_lines[k]`
    are the lines of that one (none: `previous` has them). `beside[k]` is what stands beside line k+1 in the
    machine's own words, as the control codes of SASS do.
    `names` are those that the text defines at its head, with what each stands for, a sentence a line.
    """

    name: str
    language: str
    text: str
    lines: tuple[tuple[int, ...], ...] = ()
    previous: tuple[tuple[int, ...], ...] = ()
    seconds: float = 0.0
    pending: bool = False
    made_of: str = ""
    made_lines: tuple[tuple[int, ...], ...] = ()
    beside: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class LineCounter:
    """A figure of the lines of a stage's text: `values[k]` is that of line k+1, 0 where nothing was counted.

    `title` is how people call it, `unit` what it is in (empty for a count), `says` what was counted and how.
    `kinds[k]`, where there are any, is what stands on line k+1, in a word.
    """

    name: str
    title: str
    stage: str
    values: tuple[float, ...]
    unit: str = ""
    says: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remark:
    """What a pass did or could not do, with numbers. `kind` is `applied`, `missed` or `note`."""

    pass_name: str
    kind: str
    message: str
    place: PlaceRecord | None = None
    values: Mapping[str, float | int | str] = field(default_factory=dict[str, float | int | str])


@dataclass(frozen=True)
class Diagnostic:
    """An error or warning at a place in the user's source."""

    severity: str
    message: str
    place: PlaceRecord | None = None
    text: str = ""


@dataclass(frozen=True)
class Choice:
    """One effective scheduling choice and where it came from.

    `origin` is `kernel`, `rule`, `call` or `default`; `why` says it in words.
    """

    address: str
    name: str
    value: str
    origin: str
    why: str = ""


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel takes, for one block of `threads`; bytes unless said otherwise.

    `limits` is the number of blocks a multiprocessor could hold by each resource alone. Of several launches
    `launches` has what each takes, in order; the numbers beside it are the largest of each resource, and the
    least of blocks.
    """

    threads: int
    registers: int | None = None
    shared_bytes: int = 0
    local_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    barriers: int | None = None
    blocks_per_sm: int | None = None
    occupancy: float | None = None
    limited_by: str = ""
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    launches: tuple[Resources, ...] = ()


@dataclass(frozen=True)
class EditRecord:
    """A stage whose text a person wrote. `before` is what the compiler had made there.

    It is empty where the text did not start from a kernel's.
    """

    stage: str
    before: str = ""


@dataclass(frozen=True)
class ParamRecord:
    """One parameter of the compiled function, in the order it is passed.

    `strides` are in elements; empty means row-major. What is known only at a launch stands as text
    (`"m"`, `"m * 2"`). A scalar has no shape.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    written: bool = False
    read: bool = True
    strides: tuple[int | str, ...] = ()

    @property
    def is_scalar(self) -> bool:
        return not self.shape

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape as numbers; `ValueError` where a size is known only at a launch."""
        return _as_numbers(self.name, self.shape)

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides as numbers, in elements; `ValueError` where one is known only at a launch."""
        return _as_numbers(self.name, self.strides)


def _as_numbers(name: str, sizes: tuple[int | str, ...]) -> tuple[int, ...]:
    found = tuple(size for size in sizes if isinstance(size, int))
    if len(found) != len(sizes):
        raise ValueError(f"{name} has sizes that are known only at a launch: {sizes}")
    return found


@dataclass(frozen=True)
class CompileRecord:
    """One compilation, whole. `parameters` are the values the kernel function was called with.

    `variant` is what this one relies on (`aligned`, `general`), and `ran` names those that calls took.
    `grid` is that of the first launch; of several, `grids` has each. `edits` are the stages whose texts
    are not the compiler's, in the road's order: what stands below one follows from it. `counters` are figures
    of lines that were counted by running it, in the simulator or under a profiler.
    """

    kernel: str
    target: str
    parameters: Mapping[str, Any]
    arguments: tuple[ParamRecord, ...]
    stages: tuple[StageRecord, ...]
    grid: tuple[int | str, ...] = (1,)
    resources: Resources | None = None
    choices: tuple[Choice, ...] = ()
    remarks: tuple[Remark, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    source_file: str = ""
    source_first_line: int = 1
    seconds: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    variant: str = ""
    ran: tuple[str, ...] = ()
    grids: tuple[tuple[int | str, ...], ...] = ()
    edits: tuple[EditRecord, ...] = ()
    counters: tuple[LineCounter, ...] = ()

    def __repr__(self) -> str:
        """Short: the texts of all stages are tens of kilobytes."""
        given = "".join(f" {name}={value}" for name, value in self.parameters.items())
        stages = ", ".join(stage.name for stage in self.stages)
        return f"<CompileRecord {self.kernel}{given} for {self.target}: {stages or 'no stages'}>"

    def stage(self, name: str) -> StageRecord:
        """The stage of that name; `OptionError` with those there are."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        from .errors import OptionError

        raise OptionError(
            "there is no stage {name!r} in this compilation",
            name=name,
            hint="stages: " + ", ".join(stage.name for stage in self.stages),
        )


@dataclass(frozen=True)
class ClockEvent:
    """What a warp of a block did, by the clock of its multiprocessor, in cycles since its block began.

    `kind` is `block` (all of it; `iteration` is the multiprocessor, `since` nanoseconds after the first
    block), `load`, `wait`, `barrier`, `compute` or `store`; `name` says it in words, `line` is the user's.
    """

    block: int
    warp: int
    kind: str
    name: str
    iteration: int
    start: int
    end: int
    line: int = 0
    since: int = 0


@dataclass(frozen=True)
class RunRecord:
    """One measurement. `samples` are seconds a launch, each alone; `seconds` is their median.

    `error` and `bound` are the largest error against the reference and the bound at that element
    (None when not checked), `unwritten` how many elements of outputs were never written.
    `failure` is the message when there is no time to show.
    `operation` is what `flops` counts: `FLOP`, or `OP` where a kernel computes with integers alone.
    `events` are what clocks inside the kernel said of its first blocks, and `clocked_seconds` the median of
    the same kernel with them; `event_unit` is `cycles`, or `steps` of the simulator, which are no time.
    `edited` names the stages whose texts a person wrote; `rounds`, `budget` (seconds for all rounds) and
    `seed` are what it was asked for; without a seed it ran on the caller's arrays.
    """

    kernel: str
    target: str
    config: Mapping[str, Any]
    samples: tuple[float, ...] = ()
    method: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    flops: float = 0.0
    bytes: float = 0.0
    error: float | None = None
    bound: float | None = None
    failure: str = ""
    when: str = ""
    operation: str = "FLOP"
    unwritten: int = 0
    events: tuple[ClockEvent, ...] = ()
    clocked_seconds: float | None = None
    event_unit: str = "cycles"
    edited: tuple[str, ...] = ()
    rounds: int = 0
    budget: float = 0.0
    seed: int | None = None

    def __str__(self) -> str:
        """One line: time, rate, error; or why there is none. Units of the rates are decimal."""
        what = f"{self.kernel} on {self.target}"
        if self.edited:
            what += f", {' and '.join(self.edited)} edited by hand"
        if self.events and not self.samples and not self.failure:
            return f"{what}: {len(self.events)} events of its warps in {self.event_unit}, no time of a launch"
        if self.failure or self.seconds is None:
            return f"{what}: {self.failure or 'not measured'}"
        out = f"{what}: {self.seconds * 1e6:.4g} us (median of {len(self.samples)})"
        timed = 0 < self.seconds < math.inf
        if self.bytes and timed:
            out += f", {self.bytes / self.seconds / 1e9:.4g} GB/s"
        if self.flops and timed:
            out += f", {self.flops / self.seconds / 1e9:.4g} G{self.operation}/s"
        if self.error is not None and self.bound is not None:
            out += f", error {self.error:.3g} of {self.bound:.3g} allowed"
        if self.unwritten:
            out += f", {self.unwritten} elements never written"
        return out

    @cached_property
    def seconds(self) -> float | None:
        """Median of the samples, in seconds."""
        if not self.samples:
            return None
        ordered = sorted(self.samples)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True)
class SweepRow:
    """One configuration of a sweep and what came of it; `runs` are its measurements, oldest first.

    `state` is `waiting`, `compiled`, `timed`, `illegal` (the compiler refuses it) or `failed` (it does not
    run, or its result is wrong), `why` the reason. `code` is a hash of what was compiled, `seconds` what
    compiling took.
    """

    config: Mapping[str, Any]
    state: str = "waiting"
    why: str = ""
    runs: tuple[RunRecord, ...] = ()
    code: str = ""
    seconds: float | None = None

    def __str__(self) -> str:
        """One line: the configuration, the time of its last run, or why it has none."""
        where = " ".join(f"{name}={value}" for name, value in self.config.items())
        return f"{where}: {self.runs[-1] if self.runs else self.why or self.state}"


@dataclass(frozen=True)
class SweepRecord:
    """The measurements of many configurations of one kernel. `domains` has the values tried, by name.

    `repeats` is how many runs a complete row has, `checked` whether results were compared with the reference.
    `others` are runs of other implementations on the same arrays, by the same method. `best` is the
    compilation of the fastest row, `seconds` how long the sweep took. `limits` are measured ceilings of the
    machine by name (`flops`, `bytes`: a second), `machine` and `how` say of what and by which method.
    """

    kernel: str
    target: str
    domains: Mapping[str, tuple[Any, ...]]
    rows: tuple[SweepRow, ...]
    repeats: int = 1
    checked: bool = False
    others: tuple[RunRecord, ...] = ()
    best: CompileRecord | None = None
    seconds: float = 0.0
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    machine: str = ""
    how: str = ""

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """All runs of the kernel, by row."""
        return tuple(run for row in self.rows for run in row.runs)

    def of(self, state: str) -> tuple[SweepRow, ...]:
        """The rows of one state."""
        return tuple(row for row in self.rows if row.state == state)


@dataclass(frozen=True)
class BenchRecord:
    """A compilation with runs, as a bench saves them: each run says its own configuration."""

    compilation: CompileRecord
    runs: tuple[RunRecord, ...] = ()

    def __repr__(self) -> str:
        return f"<BenchRecord of {self.compilation!r} with {len(self.runs)} runs>"
