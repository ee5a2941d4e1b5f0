"""What of a wish has been answered: which measurement and check still have to be had, and which are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .tiers import plain_config

if TYPE_CHECKING:
    from ..record import RunRecord
    from .picture import Picture
    from .wish import Wish


class Questions:
    """What was measured and checked last: a position, and how often that had been asked for.

    Showing another stage asks for neither again; asking once more, or another position, does.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[dict[str, Any], int]] = {}
        # The target that was checked last, and what that gave.
        self.report: tuple[str, Any] = ("", None)

    def due(self, what: str, wish: Wish) -> bool:
        """Whether `run` or `check` is wanted and not answered."""
        wanted = wish.run if what == "run" else wish.check
        return wanted and self._last.get(what) != _question(what, wish)

    def enter(self, what: str, wish: Wish) -> None:
        """`run` or `check` of this wish has its answer."""
        self._last[what] = _question(what, wish)

    def taken_over(
        self, picture: Picture, wish: Wish, target: str
    ) -> tuple[tuple[RunRecord, ...], dict[str, Any]]:
        """What this machine was asked at this position for another target: runs, and fields of a picture.

        Two cards that are not here have the same processor's times: it is not timed again for each.
        """
        fields: dict[str, Any] = {}
        runs = _runs_elsewhere(picture.runs, wish, target)
        if runs is not None and self._but_for_target("run", wish):
            self.enter("run", wish)
        else:
            runs = ()
        if self.report[0] == target and self._but_for_target("check", wish):
            self.enter("check", wish)
            fields["report"] = self.report[1]
        return runs, fields

    def _but_for_target(self, what: str, wish: Wish) -> bool:
        """Whether it was answered at this position, for another target."""
        config, asked = _question(what, wish)
        last = self._last.get(what)
        return last is not None and last[1] == asked and _elsewhere(last[0]) == _elsewhere(config)


def _runs_elsewhere(runs: Sequence[RunRecord], wish: Wish, target: str) -> tuple[RunRecord, ...] | None:
    """The runs on `target` that another wished target had got last at this position, as runs of this wish.

    Empty where this wish has its own, None where there are none.
    """
    config = plain_config(wish.config)
    of_target = [run for run in runs if run.target == target and not run.failure]
    if any(dict(run.config) == config for run in of_target):
        return ()
    there = [run for run in of_target if _elsewhere(run.config) == _elsewhere(config)]
    found = tuple(replace(run, config=config) for run in there if dict(run.config) == dict(there[-1].config))
    return found or None


def _question(what: str, wish: Wish) -> tuple[dict[str, Any], int]:
    return wish.config, wish.run_asked if what == "run" else wish.check_asked


def _elsewhere(config: Any) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "target"}
