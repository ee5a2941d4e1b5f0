"""Everything that a view of a bench shows, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import TileError
from ..record import CompileRecord, RunRecord
from ..runtime.latest import Status
from .clocking import ClocksShown
from .history import MoveHistory
from .slider import Slider
from .sweeping import SweepShown, all_runs
from .wish import KeptEdit, Wish

if TYPE_CHECKING:
    from ..pictures.collect import KernelPictures
    from ..profile.diagnosis import Diagnosis
    from .chart import ChartCeilings
    from .comparison import Compared


@dataclass(frozen=True)
class Picture:
    """Everything a view shows. `record` is the last good one; `stale` says it is not that of `wish`.

    `problem` is why the wish, or its compiled or measured part, could not be had. `notes` are
    sentences about the measurement. `shared_limit` is in bytes. `stage_names` are all stages of the road,
    `shown` those that are wanted; the record has every one that is made. `edits` are all that were made,
    oldest first, and `editable` the stages of the road whose texts compile on. `idle` names the controls
    that change nothing on this target. `pictures` are of the position `pictured`. `sweeps` is how many
    combinations the sweep has that the bench was opened with, `others` are runs of other implementations,
    `clocks` what was recorded of when warps do what. `countable` are ways to have figures of lines, by
    name, with what each is called. `compared` is what texts are compared with beside the bench's own past.
    """

    wish: Wish
    status: Status = field(default_factory=lambda: Status("idle"))
    record: CompileRecord | None = None
    stale: bool = False
    problem: TileError | None = None
    history: MoveHistory = field(default_factory=MoveHistory)
    ceilings: ChartCeilings | None = None
    report: Any = None
    notes: tuple[str, ...] = ()
    notice: str = ""
    shared_limit: int = 0
    stage_names: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    offered: tuple[Slider, ...] = ()
    idle: tuple[str, ...] = ()
    edits: tuple[KeptEdit, ...] = ()
    editable: tuple[str, ...] = ()
    compared: Compared | None = None
    pins: tuple[str, ...] = ()
    sweep: SweepShown | None = None
    pictures: KernelPictures | None = None
    pictured: Mapping[str, Any] | None = None
    sweeps: int = 0
    others: tuple[RunRecord, ...] = ()
    clocks: ClocksShown | None = None
    countable: tuple[tuple[str, str], ...] = ()

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The measurements: those of the moves, oldest first, then a sweep's."""
        return all_runs(self.history.runs, self.sweep)

    @property
    def own_pictures(self) -> KernelPictures | None:
        """The pictures where they are of the record, and not still of the position before."""
        return self.pictures if self.pictured == self.wish.config and not self.stale else None

    @property
    def shown_record(self) -> CompileRecord | None:
        """The record with the stages that are shown alone, in their order."""
        if self.record is None or not self.shown:
            return self.record
        return replace(self.record, stages=tuple(self.record.stage(name) for name in self.shown))
