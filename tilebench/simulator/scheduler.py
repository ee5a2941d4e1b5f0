"""Running the strands of some blocks against each other until all have ended.

A strand runs until it waits at a barrier, stands behind a branch where others of it are missing, or ends.
Who stands behind a branch goes on alone only when nobody else can move: so lanes stay together as long as
they can, and no wait is made up. When nobody can move and nobody stands so, it is a deadlock.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import If, Stmt
from .barriers import Barriers, Meeting, Until
from .control import LOOPS, Loop, going, run_body, sides_of, turns_of
from .lanes import Lanes
from .state import Mask
from .strands import Frame, Join, Strand, Turns
from .waits import place_of, refuse_deadlock, waiting_statements


class Scheduler:
    """The strands of some blocks of one launch."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.barriers = Barriers(lanes)
        body = lanes.launch.kernel.body
        self.may_wait = waiting_statements(body, lanes)
        self.ready: deque[Strand] = deque([Strand(None, lanes.values, [Frame(body)])])
        self.waiting: list[Strand] = []
        self.joins: list[Join] = []

    def run(self) -> None:
        """Run to the end, or refuse what is wrong at its line."""
        while self.ready or self.joins or self.waiting:
            if self.ready:
                self._advance(self.ready.popleft())
            elif self._look_again():
                pass
            elif self.joins:
                self._go_on(self.joins.pop())
            elif not self._part_blocks():
                refuse_deadlock(self.waiting, self.barriers)
        self.lanes.tokens.check_end()
        self.lanes.phases.check_end()
        self.lanes.clusters.check_end()

    # -- one strand
    def _advance(self, strand: Strand) -> None:
        lanes = self.lanes
        lanes.values = strand.values
        if strand.meaning is not None and not self._resume(strand):
            return
        while strand.frames:
            frame = strand.frames[-1]
            if frame.next == len(frame.body):
                if not self._end_body(strand, frame):
                    return
                continue
            stmt = frame.body[frame.next]
            frame.next += 1
            if id(stmt) not in self.may_wait:
                run_body(lanes, (stmt,), strand.mask)
            elif isinstance(stmt, If):
                if not self._branch(strand, stmt):
                    return
            elif isinstance(stmt, LOOPS):
                self._enter(strand, stmt)
            else:
                strand.meaning, strand.stmt = lanes.run(stmt, strand.mask), stmt
                if strand.meaning is not None and not self._resume(strand):
                    return

    def _resume(self, strand: Strand) -> bool:
        """Go on in the word that a strand is in; False when it has to wait."""
        meaning, stmt = strand.meaning, strand.stmt
        assert meaning is not None
        assert stmt is not None
        if self.lanes.launch.counters is not None:
            self.lanes.launch.counters.at(stmt)
        for meeting in meaning:
            waits = isinstance(meeting, Until) or meeting.wait
            opened = self._come(meeting, strand, stmt)
            if waits:
                strand.meeting, strand.waits = meeting, self.lanes.full(strand.mask)
                self.waiting.append(strand)
            if opened is not None:
                self._open(opened)
            if strand in self.waiting:
                return False
            if waits:
                self.ready.remove(strand)
        strand.meaning = strand.stmt = None
        return True

    def _come(self, meeting: Meeting | Until, strand: Strand, stmt: Stmt) -> Any:
        """A strand comes to where it waits: the lanes that may go on."""
        if isinstance(meeting, Until):
            return meeting.open(self.lanes.full(strand.mask))
        return self.barriers.arrive(meeting, strand.mask, stmt)

    def _look_again(self) -> bool:
        """Whether somebody can go on by what others have done meanwhile."""
        for strand in list(self.waiting):
            if isinstance(strand.meeting, Until):
                self._open(strand.meeting.open(strand.waits))
        return bool(self.ready)

    def _open(self, opened: Any) -> None:
        """Let the lanes go on that a barrier held back."""
        for strand in list(self.waiting):
            strand.waits = strand.waits & ~opened
            if not strand.waits.any():
                self.waiting.remove(strand)
                self.ready.append(strand)

    # -- ways that part
    def _branch(self, strand: Strand, stmt: If) -> bool:
        """Go into the branch; False when the strand has become two."""
        yes, no = sides_of(self.lanes.value(stmt.condition, strand.mask), strand.mask)
        if yes is False or no is False:
            strand.frames.append(Frame(stmt.orelse if yes is False else stmt.then))
            return True
        join = Join(strand.mask, self._count(strand.mask))
        for body, mask in ((stmt.then, yes), (stmt.orelse, no)):
            side = strand.part(mask)
            side.frames.append(Frame(body, join=join))
            self.ready.append(side)
        return False

    def _enter(self, strand: Strand, stmt: Loop) -> None:
        turns = turns_of(self.lanes, stmt, strand.mask)
        shared = isinstance(turns.value, int) and stmt.condition is None
        join = None if shared else Join(strand.mask, self._count(strand.mask))
        # As if a turn had just ended: the first one is begun as all others are.
        turns.value = turns.value - turns.step
        strand.frames.append(Frame(stmt.body, len(stmt.body), turns, join))

    def _end_body(self, strand: Strand, frame: Frame) -> bool:
        """The next turn of a loop, or out of the body; False when the strand waits behind it."""
        if frame.turns is not None and self._next_turn(strand, frame, frame.turns):
            return True
        strand.frames.pop()
        if frame.join is None:
            return True
        self._come_out(strand, frame.join)
        return False

    def _next_turn(self, strand: Strand, frame: Frame, turns: Turns) -> bool:
        turns.value = turns.value + turns.step
        inside, outside = going(self.lanes, turns, strand.mask)
        if inside is False:
            return False
        if outside is not False:
            leaving = strand.part(outside)
            leaving.frames.pop()
            assert frame.join is not None
            self._come_out(leaving, frame.join)
            strand.mask = inside
        turns.bind(strand.values)
        frame.next = 0
        return True

    def _count(self, mask: Mask) -> int:
        return self.lanes.lanes if mask is None else int(mask.sum())

    # -- ways that meet
    def _come_out(self, strand: Strand, join: Join) -> None:
        """A strand is behind a branch or loop: on with it when all of its lanes are there."""
        join.waiting.append(strand)
        join.come += self._count(strand.mask)
        if join.come == join.lanes:
            if join in self.joins:
                self.joins.remove(join)
            self._go_on(join)
        elif join not in self.joins:
            self.joins.append(join)

    def _go_on(self, join: Join) -> None:
        """Those that stand behind a branch go on as one strand."""
        waiting, join.waiting = join.waiting, []
        count = sum(self._count(strand.mask) for strand in waiting)
        mask = join.mask
        if count != join.lanes:
            mask = np.logical_or.reduce([self.lanes.full(strand.mask) for strand in waiting])
        # They parted in this turn of the loops around, and what a way has bound ends with it: the values
        # of one are the values of all.
        together = waiting[0]
        together.mask = mask
        self.ready.append(together)

    def _part_blocks(self) -> bool:
        """Let blocks go on whose barrier has opened while the same strand still waits in others."""
        for strand in self.waiting:
            going = self.lanes.full(strand.mask) & ~strand.waits
            if not going.any():
                continue
            if not isinstance(strand.meeting, Until) and not (strand.meeting and strand.meeting.last):
                raise InternalError(
                    "blocks that run together have parted in the middle of a word", at=place_of(strand),
                    hint="run them one at a time, or let the word wait with last=True",
                )  # fmt: skip
            self.ready.append(strand.part(going))
            strand.mask = strand.waits.copy()
            return True
        return False
