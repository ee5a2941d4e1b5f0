"""A walk over the code of one thread (`threaded`) that forms the addresses of a block, and nothing else.

Indices are arithmetic of thread numbers, loops and blocks: no data is needed to know what a warp's access to
memory touches. Loops become an axis of all values, but for those that count something on from turn to turn
(the slot of a ring), which are walked. Of a long loop the first and the last turns are taken, and the first
ones stand for those between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import (
    AllocStmt,
    Buffer,
    Call,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    Region,
    Store,
    WithStmt,
    children,
    effects_of,
)  # fmt: skip
from ..ir.expr_walks import seen
from ..ir.stmt import OpStmt, Stmt
from ..language.lowered.mbarriers import (
    MbarrierArrive,
    MbarrierExpect,
    MbarrierInit,
    MbarrierInval,
    MbarrierWait,
)
from ..language.lowered.threads import FromPieces, LoadPieces
from ..language.memory import AllocVar
from ..language.structure import KernelLaunch, Serial, Unroll
from ..passes.analysis.launches import launch_of
from .lane_values import LaneValues, Mask, Value

BARRIERS = (MbarrierInit, MbarrierInval, MbarrierArrive, MbarrierExpect, MbarrierWait)

MEMORY = ("shared", "global")
# Turns of a long loop that are looked at: those that fill a ring of up to four stages' worth end apart.
FIRST_TURNS, LAST_TURNS = 1, 4
# Rows of addresses (turns of the loops around it) of one access that are looked at, about.
MOST_ROWS = 16
# What stands for a size that a launch brings: rows are far apart.
FAR = 4096


@dataclass(frozen=True)
class MemoryTouch:
    """A place in memory that an expression or statement names: `count` elements from `index` on.

    Where `first` is there, so many of them.
    """

    node: Node
    buffer: Buffer
    index: tuple[Expr, ...]
    count: int
    written: bool
    first: Expr | None = None
    # Of an access from any address: the aligned piece with its first element (0), or that with its last.
    piece: int | None = None


@dataclass
class TouchSite:
    """What became of one touch: rows of first bytes, active lanes, weights, elements of a lane."""

    touch: MemoryTouch
    statement: Stmt
    rows: list[tuple[Any, Any, Any, Any]] = field(default_factory=list[tuple[Any, Any, Any, Any]])
    # Some address, or who takes part, is up to data.
    by_data: bool = False
    # Turns were left out, or counted though nobody knows how many there are.
    about: bool = False


class LaneWalk:
    """One launch, walked for one block."""

    def __init__(
        self, function: Function, block: tuple[int, int, int] = (0, 0, 0), *, whole: bool = False,
        sizes: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.launch: KernelLaunch = launch_of(function)
        self.whole = whole
        known: dict[str, Value] = {
            param.name: (sizes or {}).get(param.name, FAR)
            for param in function.params
            if not isinstance(param, Buffer)
        }
        known |= {var.name: number for var, number in zip(self.launch.vars, block, strict=False)}
        self.values = LaneValues(self.launch.threads, known)
        self.bases: dict[str, int] = {}
        self.sites: dict[tuple[int, int], TouchSite] = {}
        self._relevant: dict[int, bool] = {}
        self._touches: dict[int, list[MemoryTouch]] = {}
        self.axes = 0
        self.weight: Any = np.ones((1,))
        self.rows_now: int = 1
        self.about = self.by_data = False

    def run(self) -> list[TouchSite]:
        """Every site, in order of the text."""
        self._body(self.launch.body, True)
        return list(self.sites.values())

    # -- statements
    def _body(self, body: Iterable[Stmt], mask: Mask) -> None:
        for statement in body:
            if self._matters(statement):
                self._statement(statement, mask)

    def _matters(self, statement: Stmt) -> bool:
        """Whether a statement touches memory, or says what an index is."""
        known = self._relevant.get(id(statement))
        if known is None:
            inner = [part for part in children(statement) if isinstance(part, Stmt)]
            known = (
                isinstance(statement, (Let, AllocStmt))
                or (isinstance(statement, Store) and statement.buffer.scope == "var")
                or bool(self._own_touches(statement))
                or any(self._matters(part) and not isinstance(part, AllocStmt) for part in inner)
            )
            self._relevant[id(statement)] = known
        return known

    def _statement(self, statement: Stmt, mask: Mask) -> None:
        self._record(statement, mask)
        if isinstance(statement, Let):
            self.values.names[statement.var.name] = self.values.value(statement.value)
        elif isinstance(statement, AllocVar):
            first = None if statement.init is None else self.values.value(statement.init)
            self.values.scalars[statement.buffer.name] = first
        elif isinstance(statement, AllocStmt):
            self.bases[statement.buffer.name] = getattr(statement, "offset", None) or 0
        elif isinstance(statement, Store) and statement.buffer.scope == "var":
            value = None if self.by_data else self.values.value(statement.value)
            self.values.assign(statement.buffer.name, value, mask)
        elif isinstance(statement, If):
            self._branch(statement, mask)
        elif isinstance(statement, LoopStmt):
            self._loop(statement, mask)
        elif isinstance(statement, WithStmt):
            self._body(statement.body, mask)

    def _branch(self, statement: If, mask: Mask) -> None:
        condition = self.values.value(statement.condition)
        if condition is None:
            # Nobody knows which way: both are looked at, as if all lanes went there.
            before, self.by_data = self.by_data, True
            self._body(statement.then, mask)
            self._body(statement.orelse, mask)
            self.by_data = before
            return
        for body, side in ((statement.then, condition), (statement.orelse, np.logical_not(condition))):
            inner = side if mask is True else np.logical_and(mask, side)
            if body and np.any(inner):
                self._body(body, True if np.ndim(inner) == 0 else inner)

    # -- loops
    def _loop(self, loop: LoopStmt, mask: Mask) -> None:
        turns = self._turns(loop)
        counted = [s.buffer.name for s in _below(loop) if isinstance(s, Store) and s.buffer.scope == "var"]
        if turns is None:
            self._one_turn(loop, mask, counted)
            return
        taken, weights = self._taken(len(turns), walked=bool(counted))
        weight, rows, about = self.weight, self.rows_now, self.about
        self.about = about or len(taken) < len(turns)
        if counted:
            for number, share in zip(taken, weights, strict=True):
                self.weight = weight * share
                self.values.names[loop.vars[0].name] = turns[number]
                self._body(loop.body, mask)
        elif taken:
            self.axes += 1
            shape = (len(taken),) + (1,) * self.axes
            self.values.names[loop.vars[0].name] = np.array([turns[k] for k in taken]).reshape(shape)
            self.weight = weight * weights.reshape(shape)
            self.rows_now *= len(taken)
            self._body(loop.body, mask)
            self.axes -= 1
        self.weight, self.rows_now, self.about = weight, rows, about

    def _one_turn(self, loop: LoopStmt, mask: Mask, counted: list[str]) -> None:
        """A loop with as many turns as data say: the first stands for them, and its counters are lost."""
        about, self.about = self.about, True
        for var in loop.vars:
            first = loop.start if isinstance(loop, (Serial, Unroll)) else None
            self.values.names[var.name] = None if first is None else self.values.value(first)
        self._body(loop.body, mask)
        self.about = about
        self.values.scalars.update(dict.fromkeys(counted))

    def _turns(self, loop: LoopStmt) -> range | None:
        """The values of a loop's variable; None where they are not known, or not the same for all lanes."""
        if not isinstance(loop, (Serial, Unroll)) or loop.condition is not None:
            return None
        bounds = [self.values.value(bound) for bound in (loop.start, loop.stop, loop.step)]
        if any(bound is None or np.ndim(bound) for bound in bounds):
            return None
        return range(*(int(bound) for bound in bounds))

    def _taken(self, count: int, walked: bool) -> tuple[list[int], Any]:
        """The turns of a loop that are looked at, and how many each stands for."""
        fewest = FIRST_TURNS + LAST_TURNS
        most = fewest if walked else max(fewest, MOST_ROWS // self.rows_now)
        if self.whole or count <= most:
            return list(range(count)), np.ones(count)
        first = most - LAST_TURNS
        taken = [*range(first), *range(count - LAST_TURNS, count)]
        return taken, np.array([(count - LAST_TURNS) / first] * first + [1.0] * LAST_TURNS)

    # -- touches
    def _own_touches(self, statement: Stmt) -> list[MemoryTouch]:
        """What a statement itself does to memory, without the loads in its expressions."""
        known = self._touches.get(id(statement))
        if known is None:
            known = self._touches[id(statement)] = list(_touches(statement))
        return known

    def _record(self, statement: Stmt, mask: Mask) -> None:
        if not self._own_touches(statement):
            return
        for part in _expressions(statement):
            self._loads(part, statement, mask)
        for number, touch in enumerate(self._own_touches(statement)):
            if not isinstance(touch.node, Load):
                self._enter(touch, statement, number, mask)

    def _loads(self, expr: Expr, statement: Stmt, mask: Mask) -> None:
        """The loads of an expression, those of a choice by the lanes that choose them."""
        if isinstance(expr, Load) and expr.buffer.scope in MEMORY:
            self._enter(MemoryTouch(expr, expr.buffer, expr.index, 1, written=False), statement, -1, mask)
        if isinstance(expr, Call) and expr.word == "if_then_else":
            condition = self.values.value(expr.args[0])
            self._loads(expr.args[0], statement, mask)
            sides = (True, True) if condition is None else (condition, np.logical_not(condition))
            for part, side in zip(expr.args[1:], sides, strict=True):
                inner = side if mask is True else np.logical_and(mask, side)
                if np.any(inner):
                    self._loads(part, statement, True if np.ndim(inner) == 0 else inner)
            return
        for part in children(expr):
            if isinstance(part, Expr):
                self._loads(part, statement, mask)

    def _enter(self, touch: MemoryTouch, statement: Stmt, number: int, mask: Mask) -> None:
        site = self.sites.setdefault((id(touch.node), number), TouchSite(touch, statement))
        site.about = site.about or self.about
        place: Value = np.int64(0)
        for position, stride in zip(touch.index, touch.buffer.element_strides, strict=True):
            step = stride if isinstance(stride, int) else self.values.value(stride)
            where = self.values.value(position)
            if where is None or step is None:
                site.by_data = True
                return
            place = place + where * step
        count: Value = touch.count
        if touch.first is not None:
            count = self.values.value(touch.first)
        site.by_data = site.by_data or self.by_data or count is None
        count = touch.count if count is None else count
        bits = touch.buffer.dtype.bits
        first = place * bits // 8 + self.bases.get(touch.buffer.name, 0)
        if touch.piece is not None:
            width = touch.buffer.dtype.bytes_of(touch.count)
            first = (first + touch.piece * (width - 1)) // width * width
        site.rows.append((first, mask, self.weight, count))


def _below(root: Stmt) -> Iterable[Stmt]:
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        for part in children(node):
            if isinstance(part, Stmt):
                yield part
                stack.append(part)


def _by_itself(statement: Stmt) -> bool:
    """Whether what a statement does to memory is no access of a warp: an engine's, or a word of a barrier."""
    return isinstance(statement, OpStmt) and (statement.by_proxy or isinstance(statement, BARRIERS))


def _touches(statement: Stmt) -> Iterable[MemoryTouch]:
    if isinstance(statement, Store):
        if statement.buffer.scope in MEMORY:
            yield MemoryTouch(statement, statement.buffer, statement.index, 1, written=True)
    # Of a piece's memory only the address counts there: it was read before. What an instruction reads by
    # itself is no access of a warp.
    elif not isinstance(statement, (FromPieces, KernelLaunch)) and not _by_itself(statement):
        for effect in effects_of(statement):
            region = effect.region
            if region is not None and effect.buffer.scope in MEMORY:
                count = (region.extent or (1,))[-1]
                for piece in (0, 1) if isinstance(statement, LoadPieces) else (None,):
                    first = effect.first
                    yield MemoryTouch(
                        statement, effect.buffer, region.start, count, effect.writes, first, piece
                    )
    for part in _expressions(statement):
        yield from _loaded(part)


def _expressions(statement: Stmt) -> Iterable[Expr]:
    """The expressions of a statement itself, and of regions that it names, in which something is loaded."""
    for part in children(statement):
        for expr in children(part) if isinstance(part, Region) else (part,):
            if isinstance(expr, Expr) and seen(expr).loads:
                yield expr


def _loaded(expr: Expr) -> Iterable[MemoryTouch]:
    if isinstance(expr, Load) and expr.buffer.scope in MEMORY:
        yield MemoryTouch(expr, expr.buffer, expr.index, 1, written=False)
    for part in children(expr):
        if isinstance(part, Expr):
            yield from _loaded(part)
