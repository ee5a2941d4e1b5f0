"""The history of moves: what was asked for, what each tier answered, and what a move changed.

Plain data, immutable; the worker replaces an entry when a tier answers. No thread is known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..profile.positions import Position, difference, position_key, positions_of, same_work
from ..record import CompileRecord, Resources, RunRecord
from .chart import Chart, ChartCeilings, Point, chart_of, config_text, varied_names
from .style import bytes_text, escape, number, page, percent_text, seconds_text
from .table import Cell, Value, table_html, table_text

STATES = ("queued", "compiling", "checking", "measuring", "done", "stale", "cancelled", "illegal", "failed")
_ANSWERED = ("done", "failed", "illegal", "cancelled")
# Enough for a session's worth of dragging; the table shows the newest.
MOST_MOVES = 500


@dataclass(frozen=True)
class Move:
    """One position of the controls. `generation` counts wishes; the greatest is the newest.

    `state` is one of `STATES`, `reason` says why it is illegal, failed or cancelled. `figures` are
    static figures by name (known before anything is compiled). `runs` are those measured at this
    move, oldest first. Times in seconds.
    """

    generation: int
    config: Mapping[str, Any]
    state: str = "queued"
    reason: str = ""
    figures: Mapping[str, float | int | str] = field(default_factory=dict[str, float | int | str])
    resources: Resources | None = None
    compile_seconds: float | None = None
    runs: tuple[RunRecord, ...] = ()

    @property
    def run(self) -> RunRecord | None:
        """The newest run of this move."""
        return self.runs[-1] if self.runs else None


@dataclass(frozen=True)
class MoveHistory:
    """Moves in their order. Adding and changing give a new history."""

    moves: tuple[Move, ...] = ()

    def __len__(self) -> int:
        return len(self.moves)

    def __iter__(self) -> Iterator[Move]:
        return iter(self.moves)

    def add(self, move: Move) -> MoveHistory:
        """The history with one more move; beyond `MOST_MOVES` the oldest leave."""
        return MoveHistory((*self.moves, move)[-MOST_MOVES:])

    def change(self, generation: int, **fields: Any) -> MoveHistory:
        """The history with fields of the move of that generation replaced; itself if there is none."""
        return MoveHistory(
            tuple(replace(m, **fields) if m.generation == generation else m for m in self.moves)
        )

    def left(self, state: str) -> MoveHistory:
        """The history after work on its newest move ended: with this state, unless it had been answered."""
        if not self.moves or self.moves[-1].state in _ANSWERED:
            return self
        return MoveHistory((*self.moves[:-1], replace(self.moves[-1], state=state)))

    def passed(self) -> MoveHistory:
        """The history after its newest move was moved on from: without it, where nothing answered it.

        A slider that is drawn over ten positions leaves one row, not nine that say that they were dropped.
        """
        if not self.moves:
            return self
        last = self.moves[-1]
        if last.state in ("done", "failed", "illegal"):
            return self
        return MoveHistory((*self.moves[:-1], replace(last, state="done")) if last.runs else self.moves[:-1])

    def entered(self, generation: int, config: Mapping[str, Any]) -> MoveHistory:
        """The history with a row for a wish; the same configuration again (a run, stages) keeps its row."""
        last = self.moves[-1] if self.moves else None
        if last is not None and dict(last.config) == config:
            now = replace(last, generation=generation, state="compiling", reason="")
            return MoveHistory((*self.moves[:-1], now))
        return self.passed().add(Move(generation, config, "compiling"))

    def compiled(self, generation: int, record: CompileRecord) -> MoveHistory:
        """The history with a compilation's answer entered."""
        return self.change(generation, resources=record.resources, compile_seconds=record.seconds)

    def measured(self, generation: int, *new: RunRecord) -> MoveHistory:
        """The history with measurements' answers added to the move of that generation."""
        if not new:
            return self
        state = "failed" if new[-1].failure else "done"
        runs = next((move.runs for move in self.moves if move.generation == generation), ())
        return self.change(generation, runs=(*runs, *new), state=state, reason=new[-1].failure)

    def checked(self, generation: int, error: float, bound: float) -> MoveHistory:
        """The history with what a check found entered in the runs of that move, which lack it."""
        runs = next((move.runs for move in self.moves if move.generation == generation), ())
        return self.change(
            generation, runs=tuple(r if r.failure else replace(r, error=error, bound=bound) for r in runs)
        )

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The measurements, in the order of the moves."""
        return tuple(run for move in self.moves for run in move.runs)

    def best(self, ceilings: ChartCeilings | None = None) -> Move | None:
        """The newest move to the position with the least time; None without one.

        Left out are results outside their error bound and rates that the ceilings contradict.
        """
        leader = chart_of(self.runs, ceilings).leader
        if leader is None:
            return None
        return next(
            m for m in reversed(self.moves) if m.run is not None and m.run.config == leader.point.config
        )


def _config_cells(move: Move, before: Move | None, names: Sequence[str]) -> list[Value]:
    out: list[Value] = []
    for name in names:
        text = config_text(move.config, [name]).partition("=")[2]
        changed = before is not None and before.config.get(name) != move.config.get(name)
        was = config_text(before.config, [name]).partition("=")[2] if before is not None and changed else ""
        out.append(Cell(text, "", changed, f"was {was}" if changed else ""))
    return out


def _change_cell(now: Position | None, then: Position | None) -> Cell:
    """From one position's time to another's. Coloured only where it is more than runs differ by anyway."""
    if now is not None and then is not None and not same_work(now, then):
        return Cell("other work", "q", title="it computes more or less: rates can be compared, and no time")
    found = difference(now, then) if now is not None and then is not None else None
    if found is None:
        return Cell("")
    low, high = (percent_text(part, found.low, found.high) for part in (found.low, found.high))
    if not found.decided and found.low <= 0 <= found.high:
        return Cell("within noise", "q", title=f"{low} to {high}: {found.why}")
    kind = ("bad" if found.part > 0 else "good") if found.decided else "q"
    text = percent_text(found.part, found.low, found.high)
    return Cell(text + found.mark, kind, title=f"{low} to {high}: {found.why}")


def _resource_cells(move: Move, before: Move | None) -> list[Value]:
    """Registers, shared memory and occupancy, marked where the move before had another value."""
    now, then = move.resources, before.resources if before else None
    registers = str(now.registers) if now and now.registers is not None else ""
    shared = bytes_text(now.shared_bytes) if now else _figure(move, "shared_bytes")
    return [
        Cell(registers, "", _differs(now, then, "registers")),
        Cell(shared, "", _differs(now, then, "shared_bytes")),
        Cell(f"{number(now.occupancy * 100)} %" if now and now.occupancy is not None else "", "",
             _differs(now, then, "occupancy")),
    ]  # fmt: skip


def _figure(move: Move, name: str) -> str:
    value = move.figures.get(name)
    return bytes_text(value) if isinstance(value, int | float) else ""


def _differs(now: Resources | None, then: Resources | None, name: str) -> bool:
    return now is not None and then is not None and getattr(now, name) != getattr(then, name)


_KINDS = {"illegal": "bad", "failed": "bad", "stale": "q", "cancelled": "q", "done": "good"}


def history_rows(
    history: MoveHistory, ceilings: ChartCeilings | None = None
) -> tuple[list[str], list[list[Value]]]:
    """Heads and rows, newest first; a value that differs from the move before is marked."""
    moves = history.moves
    names = _varied(moves)
    chart = chart_of(history.runs, ceilings)
    by_key = {position_key(position.last): position for position in positions_of(history.runs)}
    points = dict(zip(by_key, chart.points, strict=True))
    rows: list[list[Value]] = []
    last: str | None = None  # the position of the last move that has a time
    for index, move in enumerate(moves):
        before = moves[index - 1] if index else None
        compiled = seconds_text(move.compile_seconds) if move.compile_seconds is not None else ""
        key = position_key(move.run) if move.run is not None else ""
        then = by_key[last] if last is not None and key and last != key else None
        rows.append(
            [
                str(move.generation),
                *_config_cells(move, before, names),
                Cell(move.state, _KINDS.get(move.state, "warn")),
                *_resource_cells(move, before),
                compiled,
                *_time_cells(points.get(key), chart),
                _change_cell(by_key.get(key), then),
                Cell(move.reason, "note"),
            ]
        )
        last = key if key and by_key[key].seconds else last
    return [*_HEADS[:1], *names, *_HEADS[1:]], rows[::-1]


_HEADS = (
    "move", "state", "registers", "shared", "occupancy", "compile", "time", "runs", "rate", "change", "note",
)  # fmt: skip


def _time_cells(point: Point | None, chart: Chart) -> list[Value]:
    """Time, runs and rate of a move's position, over all its runs."""
    if point is None or point.seconds is None:
        return ["", "", ""]
    leads = chart.leader is not None and chart.leader.point is point
    first = leads and chart.leader is not None and chart.leader.decided
    return [
        Cell(point.time_text + " best" * first, "good" if first else ""),
        point.runs_text,
        point.rate_text(chart.unit),
    ]


def _varied(moves: Sequence[Move]) -> list[str]:
    """Names of the configuration that differ among the moves; all of them for a single move."""
    if len(moves) == 1:
        return list(moves[0].config)
    return list(varied_names([RunRecord("", "", move.config) for move in moves]))


def move_rows(
    history: MoveHistory, ceilings: ChartCeilings | None, newest: int
) -> tuple[list[str], list[list[Value]], list[int]]:
    """Heads, the `newest` rows, and the numbers of the columns of figures."""
    heads, rows = history_rows(history, ceilings)
    state = heads.index("state")
    return heads, rows[:newest], [*range(1, state), *range(state + 1, len(heads) - 1)]


def history_body(history: MoveHistory, ceilings: ChartCeilings | None = None, newest: int = 50) -> str:
    """The table without root and style sheet, the `newest` moves of it."""
    if not history.moves:
        return '<p class="q">no moves yet</p>'
    heads, rows, numeric = move_rows(history, ceilings, newest)
    table = table_html(heads, rows, numeric=numeric)
    earlier = len(history) - len(rows)
    more = f'<p class="q">{earlier} earlier moves</p>' if earlier else ""
    return table + more


def history_html(history: MoveHistory, theme: str = "auto", *, ceilings: ChartCeilings | None = None) -> str:
    """The history as HTML that stands alone: newest first, differences to the move before marked."""
    head = f'<div class="hd"><h2>History</h2><span class="q">{escape(len(history))} moves</span></div>'
    return page(
        f'{head}<div class="sec">{history_body(history, ceilings)}</div>', theme, "", "history of moves"
    )


def history_text(history: MoveHistory, ceilings: ChartCeilings | None = None) -> str:
    """The history in plain text; `*` marks a value that differs from the move before."""
    if not history.moves:
        return "no moves yet"
    heads, rows = history_rows(history, ceilings)
    return table_text(heads, rows)
