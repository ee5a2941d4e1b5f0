"""The history of moves: what was asked for, what each tier answered, and what a move changed.

Plain data, immutable; the worker replaces an entry when a tier answers. No thread is known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..record import CompileRecord, Resources, RunRecord, to_plain
from .chart import ChartCeilings, chart_of, config_text, varied_names
from .style import bytes_text, escape, number, page, rate_text, seconds_text
from .table import Cell, Value, table_html, table_text

STATES = ("queued", "compiling", "measuring", "done", "stale", "cancelled", "illegal", "failed")
# Enough for a session's worth of dragging; the table shows the newest.
MOST_MOVES = 500


@dataclass(frozen=True)
class Move:
    """One position of the controls. `generation` counts wishes; the greatest is the newest.

    `state` is one of `STATES`, `reason` says why it is illegal, failed or cancelled. `figures` are
    static figures by name (known before anything is compiled). Times in seconds.
    """

    generation: int
    config: Mapping[str, Any]
    state: str = "queued"
    reason: str = ""
    figures: Mapping[str, float | int | str] = field(default_factory=dict[str, float | int | str])
    resources: Resources | None = None
    compile_seconds: float | None = None
    run: RunRecord | None = None


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

    def compiled(self, generation: int, record: CompileRecord) -> MoveHistory:
        """The history with a compilation's answer entered."""
        return self.change(generation, resources=record.resources, compile_seconds=record.seconds)

    def measured(self, generation: int, run: RunRecord) -> MoveHistory:
        """The history with a measurement's answer entered."""
        state = "failed" if run.failure else "done"
        return self.change(generation, run=run, state=state, reason=run.failure)

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The measurements, in the order of the moves."""
        return tuple(move.run for move in self.moves if move.run is not None)

    def best(self, ceilings: ChartCeilings | None = None) -> Move | None:
        """The measured move with the least time; None without one.

        Left out are results outside their error bound and rates that the ceilings contradict.
        """
        points = chart_of(self.runs, ceilings).points
        timed = [m for m in self.moves if m.run is not None]
        good = [(p.seconds, at) for at, p in enumerate(points) if p.seconds is not None and not p.flagged]
        return timed[min(good)[1]] if good else None

    def to_plain(self) -> list[dict[str, Any]]:
        """What JSON can hold; the samples of runs are left to the run records."""
        return [
            {**to_plain(replace(m, run=None)), "seconds": m.run.seconds if m.run else None}
            for m in self.moves
        ]


def _config_cells(move: Move, before: Move | None, names: Sequence[str]) -> list[Value]:
    out: list[Value] = []
    for name in names:
        text = config_text(move.config, [name]).partition("=")[2]
        changed = before is not None and before.config.get(name) != move.config.get(name)
        was = config_text(before.config, [name]).partition("=")[2] if before is not None and changed else ""
        out.append(Cell(text, "", changed, f"was {was}" if changed else ""))
    return out


def _against(now: float | None, then: float | None) -> str:
    """`-12.0 %` from one time to the next; empty when either is missing."""
    if not now or not then:
        return ""
    part = 100 * (now - then) / then
    sign = "+" if part > 0 else "\N{MINUS SIGN}" if part < 0 else ""
    return f"{sign}{abs(part):.1f} %"


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
    best = history.best(ceilings)
    chart = chart_of(history.runs, ceilings)
    heads = [
        "move",
        *names,
        "state",
        "registers",
        "shared",
        "occupancy",
        "compile",
        "time",
        "change",
        "rate",
        "note",
    ]
    rows: list[list[Value]] = []
    last_time: float | None = None
    for index, move in enumerate(moves):
        before = moves[index - 1] if index else None
        compiled = seconds_text(move.compile_seconds) if move.compile_seconds is not None else ""
        rows.append(
            [
                str(move.generation),
                *_config_cells(move, before, names),
                Cell(move.state, _KINDS.get(move.state, "warn")),
                *_resource_cells(move, before),
                compiled,
                *_time_cells(move, last_time, move is best, chart.unit),
                Cell(move.reason, "note"),
            ]
        )
        last_time = (move.run.seconds if move.run else None) or last_time
    return heads, rows[::-1]


def _time_cells(move: Move, last_time: float | None, is_best: bool, unit: str) -> list[Value]:
    """Time, its change against the last time there was, and rate."""
    seconds = move.run.seconds if move.run else None
    if move.run is None or not seconds:
        return ["", "", ""]
    work = move.run.bytes if unit == "B/s" else move.run.flops
    change = _against(seconds, last_time)
    kind = {"+": "bad", "\N{MINUS SIGN}": "good"}.get(change[:1], "")
    time = Cell(seconds_text(seconds) + " best" * is_best, "good" if is_best else "")
    return [time, Cell(change, kind), rate_text(work / seconds, unit) if work else ""]


def _varied(moves: Sequence[Move]) -> list[str]:
    """Names of the configuration that differ among the moves; all of them for a single move."""
    if len(moves) == 1:
        return list(moves[0].config)
    return list(varied_names([RunRecord("", "", move.config) for move in moves]))


def history_body(history: MoveHistory, ceilings: ChartCeilings | None = None, newest: int = 50) -> str:
    """The table without root and style sheet, the `newest` moves of it."""
    if not history.moves:
        return '<p class="q">no moves yet</p>'
    heads, rows = history_rows(history, ceilings)
    state = heads.index("state")
    numeric = [*range(1, state), *range(state + 1, len(heads) - 1)]
    table = table_html(heads, rows[:newest], numeric=numeric)
    more = f'<p class="q">{len(rows) - newest} earlier moves</p>' if len(rows) > newest else ""
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
