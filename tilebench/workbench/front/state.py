"""What the front end draws beside a record, as plain data: `extension/src/bench/state.ts` is made from this.

Everything is text and numbers; no field is markup. What a figure means, how it is rounded and which words say
it is decided here, once for all forms; the front end decides where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .block_data import TabData


@dataclass(frozen=True)
class Chip:
    """A small figure. `tone` is empty, or `good`, `bad`, `warn`, `quiet`, `on`; so everywhere below."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class StatusData:
    """What is going on. `elapsed` in seconds, None while nothing runs; `part` done, 0 to 1, or None."""

    phase: str
    text: str
    tone: str = ""
    elapsed: float | None = None
    part: float | None = None


@dataclass(frozen=True)
class ControlData:
    """One control. `labels` are its values in order, `index` the one of now; without labels it is typed.

    `kind` is `knob`, `choice` (of the schedule) or `launch` (a value of the call).
    """

    name: str
    labels: tuple[str, ...]
    index: int
    text: str
    kind: str


@dataclass(frozen=True)
class PointData:
    """One measured position. Times in seconds, rates in units a second; `values` are those that vary.

    `intensity` is FLOP a byte of compulsory traffic, `flops` FLOP a second: its place under a roof. `edited`
    says that a person wrote a stage of it. `step` is how far it stands from the fastest: 0 the fastest and
    what cannot be told apart from it, 1 to 4 further and further, -1 where nothing can be said; `to_best`
    says it in words.
    """

    number: int
    label: str
    seconds: float | None
    low: float | None
    high: float | None
    time: str
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    rate_text: str
    failure: str
    flagged: str
    runs: str = ""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    intensity: float | None = None
    flops: float | None = None
    edited: bool = False
    step: int = -1
    to_best: str = ""


@dataclass(frozen=True)
class RefusedData:
    """A position of a sweep without a time: its values among those that vary, `illegal` or `failed`, why."""

    label: str
    values: Mapping[str, str]
    state: str
    why: str


@dataclass(frozen=True)
class OtherData:
    """Another implementation on the same arrays; `to_best` is its time beside the fastest position's."""

    name: str
    seconds: float | None
    low: float | None
    high: float | None
    time: str
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    rate_text: str
    to_best: str = ""
    failure: str = ""


@dataclass(frozen=True)
class ChartData:
    """The measured positions. `leader` is the fastest's number, `decided` whether noise cannot explain it.

    `alike` says that all compute as much, so that their times can be compared; `swept` are the names of a
    sweep, the first two those of a map.
    `roof_flops` and `roof_bytes` are measured ceilings a second; a roofline is drawn where both are known.
    """

    points: tuple[PointData, ...]
    unit: str
    ceiling: float | None
    ceiling_text: str
    varied: tuple[str, ...]
    leader: int | None
    decided: bool
    method: tuple[str, ...]
    target: str
    roof_flops: float | None = None
    roof_bytes: float | None = None
    alike: bool = True
    swept: tuple[str, ...] = ()
    refused: tuple[RefusedData, ...] = ()
    others: tuple[OtherData, ...] = ()


@dataclass(frozen=True)
class SweepData:
    """The sweep that a bench was opened with. `state` is empty before it has begun.

    `text` says how far it is, `part` (0 to 1) too while it runs; `button` is what its button says, `title`
    what that does.
    """

    state: str
    text: str
    tone: str
    part: float | None
    button: str
    title: str


@dataclass(frozen=True)
class CountWay:
    """A way to have figures of lines that takes more than what is made anyway."""

    name: str
    title: str


@dataclass(frozen=True)
class GutterCellData:
    """What a gutter has beside a line: a short text, a shade in percent, and in words what that means."""

    text: str
    shade: int
    says: str


@dataclass(frozen=True)
class GutterData:
    """A column beside the line numbers: `stages[name][k]` is the number of line k+1's cell, -1 for none.

    `choice` says that a person chooses among such: one counter at a time. Others are switched on and off.
    `total` stands in a pane's header, `says` is what was counted and how. `narrow` letters of a cell are
    shown where there is no room for all.
    """

    name: str
    title: str
    total: str
    says: str
    choice: bool
    cells: tuple[GutterCellData, ...]
    stages: Mapping[str, tuple[int, ...]]
    narrow: int = 0


@dataclass(frozen=True)
class ProblemData:
    """Why a wish could not be had: its first line, and the rest with the quoted line and carets.

    Where it is about edited text, `stage` and `line` (from 1) are where it stands there, and the characters
    from `column` to `end` are meant.
    """

    what: str
    text: str
    stage: str = ""
    line: int = 0
    column: int = 0
    end: int = 0


@dataclass(frozen=True)
class KeptEditData:
    """An edit that was made on a bench: its name, its position in words, whether it is shown now."""

    number: int
    label: str
    position: str
    here: bool


@dataclass(frozen=True)
class EditsData:
    """The stages whose texts compile on, those that are edited now, and every edit, oldest first."""

    editable: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    kept: tuple[KeptEditData, ...] = ()


@dataclass(frozen=True)
class ComparedData:
    """What the texts are compared with: a `pin` or a `target`, its name, and what is said of it."""

    kind: str
    name: str
    said: str


@dataclass(frozen=True)
class BenchState:
    """All that stands around a record.

    `live` says that a kernel answers. `stale` says of which position the picture is, empty where it is the
    wished one's. `stages` are all of the road, `shown` those to show, `asked` whether somebody chose them;
    `titles` are the names of languages. `idle` says which controls are not shown, as they change nothing on
    this target. `heard` has of each view that moved a control the number of the last move that is in here.
    `position` is that of the controls as a line, and `notice` what came of something that was
    asked for. `here` is the number of the position of now in the chart, `now` its values, `moved` the name of
    what was moved last.
    """

    id: str
    kernel: str
    live: bool
    status: StatusData
    target: str
    stages: tuple[str, ...]
    shown: tuple[str, ...]
    asked: bool = False
    stale: str = ""
    targets: tuple[str, ...] = ()
    run: bool = False
    check: bool = False
    controls: tuple[ControlData, ...] = ()
    heard: Mapping[str, int] = field(default_factory=dict[str, int])
    idle: str = ""
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    chips: tuple[Chip, ...] = ()
    notes: tuple[str, ...] = ()
    problem: ProblemData | None = None
    tabs: tuple[TabData, ...] = ()
    chart: ChartData | None = None
    edits: EditsData = field(default_factory=EditsData)
    position: str = ""
    notice: str = ""
    pins: tuple[str, ...] = ()
    compared: ComparedData | None = None
    here: int | None = None
    now: Mapping[str, str] = field(default_factory=dict[str, str])
    moved: str = ""
    sweep: SweepData | None = None
    countable: tuple[CountWay, ...] = ()
