"""A compilation with its runs as one MIME bundle that every front end can show: the picture of a bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..record import CompileRecord, RunRecord
from .chart import ChartCeilings
from .history import Move, MoveHistory
from .parts import static_bundle
from .picture import Picture
from .wish import Wish


@dataclass(frozen=True)
class RecordView:
    """A compilation with what is shown beside it.

    `stage_names` chooses and orders the panes (all by default). `shared_limit` is the bytes of shared
    memory that a block may take, 0 where blocks share none.
    """

    record: CompileRecord
    runs: Sequence[RunRecord] = ()
    history: MoveHistory | None = None
    ceilings: ChartCeilings | None = None
    stage_names: Sequence[str] | None = None
    shared_limit: int = 0

    @property
    def picture(self) -> Picture:
        """The same as what a bench shows; runs without a history are moves of their own."""
        moves = tuple(Move(k, run.config, "done", runs=(run,)) for k, run in enumerate(self.runs, 1))
        shown = tuple(self.stage_names or ())
        return Picture(
            Wish(self.record.parameters, target=self.record.target, stages=shown),
            record=self.record,
            history=self.history if self.history is not None and self.history.moves else MoveHistory(moves),
            ceilings=self.ceilings,
            shared_limit=self.shared_limit,
            shown=shown,
        )


def mime_bundle(view: RecordView, theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of a compilation with its runs and history; the JSON holds every stage.

    Raises `OptionError` for an unknown stage or theme.
    """
    return static_bundle(view.picture, theme)
