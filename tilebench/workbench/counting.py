"""Figures of lines that take more than the texts that are made anyway: asked for, counted, kept by position.

Machine code is made for its counts even where it is not shown, from then on at every position. What a block
does in the simulator and what the card's profiler says take seconds: they are counted once for the position
they were asked at, and stand there again when it comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, TileError
from ..record import CompileRecord, LineCounter
from . import tiers
from .wish import Wish

if TYPE_CHECKING:
    from ..kernel import Kernel
    from ..runtime.latest import Ticket
    from .picture import Picture

CODE, SIMULATOR, CARD = "code", "simulator", "card"
# What each way is called where a person chooses it.
WAYS = {
    CODE: "instructions and bytes: disassemble",
    SIMULATOR: "what a block does: simulate",
    CARD: "what the card counts: ncu",
}
_MOST_POSITIONS = 64


class Counting:
    """What is to be counted, and what has been."""

    def __init__(self) -> None:
        self._with_code = False
        self._asked: tuple[str, str] | None = None
        self._told: tuple[str, ...] = ()
        self._kept: dict[str, dict[str, tuple[LineCounter, ...]]] = {}

    def ask(self, how: str, wish: Wish) -> None:
        """Count in one of `WAYS` at the position of a wish, when that is answered next."""
        if how == CODE:
            self._with_code = True
        elif how in WAYS:
            self._asked = (how, _position(wish))

    def take(self, report: str, picture: Picture) -> None:
        """The counters of a report that a profiler printed elsewhere, for the position of a picture."""
        from ..kernel.measuring.profiled import read_report

        if picture.record is not None:
            self._enter(_position(picture.wish), CARD, read_report(report, picture.record))

    def on(self, wish: Wish, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a picture, their record with what was counted at the position of a wish."""
        record: CompileRecord | None = fields.get("record")
        kept = self._kept.get(_position(wish))
        if record is None or not kept:
            return fields
        counters = tuple(each for found in kept.values() for each in found)
        return {**fields, "record": replace(record, counters=counters)}

    def count(
        self, kernel: Kernel, wish: Wish, ticket: Ticket[Wish], record: CompileRecord | None,
        show: Callable[..., None],
    ) -> bool:  # fmt: skip
        """Count what is asked for and not there yet; whether there is more. What refuses is the problem."""
        ways = tiers.countable(kernel)
        if ticket() or record is None:
            return False
        if ways != self._told:
            self._told = ways
            show(countable=tuple((way, WAYS[way]) for way in ways))
        try:
            if (
                self._with_code
                and CODE in ways
                and any(
                    stage not in {each.name for each in record.stages if not each.pending}
                    for stage in tiers.later_stages(kernel)
                )
            ):
                show(record=tiers.later(kernel, tuple(tiers.later_stages(kernel))))
            how, where = self._asked or ("", "")
            if where == _position(wish) and how in ways and not ticket():
                self._asked = None
                ticket.phase("counting")
                found = tiers.count_lines(kernel, how, cancel=ticket.unwanted)
                if not ticket():
                    self._enter(where, how, found)
                    show(record=tiers.record_of(kernel, tuple(stage.name for stage in record.stages)))
                    return True
        except TileError as error:
            if not ticket():
                show(problem=error)
        return False

    def _enter(self, where: str, how: str, found: tuple[LineCounter, ...]) -> None:
        self._kept.setdefault(where, {})[how] = found
        while len(self._kept) > _MOST_POSITIONS:
            del self._kept[next(iter(self._kept))]


def one_of_ways(how: str) -> str:
    """A way to count; `OptionError` for another word."""
    if how not in WAYS:
        raise OptionError(
            "lines are not counted by {how!r}",
            how=how,
            expected=", ".join(WAYS),
            hint="the simulator needs no card",
        )
    return how


def _position(wish: Wish) -> str:
    return json.dumps(tiers.plain_config(wish.config), sort_keys=True)
