"""A counter of one text summed to the lines of the texts above it, and of the kernel.

A line of machine code has one line of the text that its compiler got: the first that the line map names,
which is the outermost where helpers are inlined. That text is itself made of lines of the stage above. So
figures of SASS are exact for each line of CUDA and of `threaded`, the last stage of the tree. Above it a
stage shares lines with others only by the user's source, and all its lines of one source line have one figure
together: one of them bears it. So nothing counts twice, and what a text's lines bear is the whole but for
what comes from no line of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...record import CompileRecord, LineCounter, StageRecord

Lines = Sequence[tuple[int, ...]]


@dataclass
class Figure:
    """A sum over lines of the counted text. `kinds` has it apart by what stands on them.

    `lines` is how many lines were added. `also` is what of it belongs to other source lines too, where code
    serves several: it counts here, at the first of them.
    """

    value: float = 0.0
    lines: int = 0
    kinds: dict[str, float] = field(default_factory=dict[str, float])
    also: dict[int, float] = field(default_factory=dict[int, float])

    def add(self, value: float, kind: str, others: Sequence[int]) -> None:
        """One line of the counted text; `others` are the source lines behind the first."""
        self.value += value
        self.lines += 1
        if kind:
            self.kinds[kind] = self.kinds.get(kind, 0.0) + value
        for line in others:
            self.also[line] = self.also.get(line, 0.0) + value


@dataclass(frozen=True)
class LineFigure:
    """What a line of a stage shows: a figure, and whether this line bears it.

    One that does not bear it shares it with line `first` (from 1) of the same text, which does. `inner` says
    that it is part of what other lines bear: a macro's line, of which the lines that use it bear the figures.
    """

    figure: Figure
    bears: bool
    first: int
    inner: bool = False


class LineSums:
    """One counter, summed. `none` is what comes from no line of the kernel."""

    def __init__(self, record: CompileRecord, counter: LineCounter) -> None:
        self.record = record
        self.counter = counter
        self.stage = record.stage(counter.stage)
        self.none = Figure()
        self.user: dict[int, Figure] = {}
        self.within: dict[int, Figure] = {}
        for number, value in enumerate(counter.values):
            if value:
                self._add(number, value, _at(self.stage.lines, number))

    def _add(self, number: int, value: float, lines: Sequence[int]) -> None:
        kind = self._kind(number)
        first = lines[0] if lines else None
        figure = self.none if first is None else self.user.setdefault(first, Figure())
        figure.add(value, kind, lines[1:])
        for line in lines[1:]:
            self.within.setdefault(line, Figure()).add(value, kind, ())

    def _kind(self, number: int) -> str:
        return self.counter.kinds[number] if number < len(self.counter.kinds) else ""

    @property
    def total(self) -> float:
        """Over the whole text that was counted."""
        return sum(self.counter.values)

    @cached_property
    def exact(self) -> Mapping[str, Mapping[int, Figure]]:
        """Figures of the lines (from 1) of each text that the counted one was made of, from below upward."""
        out: dict[str, dict[int, Figure]] = {}
        stages = {stage.name: stage for stage in self.record.stages}
        where = list(range(1, len(self.counter.values) + 1))
        stage = self.stage
        while stage.made_of in stages:
            lines = stage.made_lines or stage.previous
            where = [_first(lines, number - 1) if number else 0 for number in where]
            stage = stages[stage.made_of]
            figures = out.setdefault(stage.name, {})
            for number, line in enumerate(where):
                value = self.counter.values[number]
                if line and value:
                    rest = _at(self.stage.lines, number)[1:]
                    figures.setdefault(line, Figure()).add(value, self._kind(number), rest)
        return out

    def of(self, name: str) -> tuple[LineFigure | None, ...]:
        """What each line of a stage shows; None for nothing."""
        stage = self.record.stage(name)
        count = len(stage.text.splitlines())
        if name == self.counter.stage:
            return self._own(count)
        if name in self.exact:
            found = [self.exact[name].get(number + 1) for number in range(count)]
            return tuple(LineFigure(f, True, k + 1) if f else None for k, f in enumerate(found))
        above = self._figures(stage.made_of)
        if above is not None:
            lines = stage.made_lines or stage.previous
            keys = [_first(lines, number) for number in range(count)]
            return _shared(stage, keys, above)
        keys = [_first(stage.lines, number) for number in range(count)]
        shared = _shared(stage, keys, self.user)
        if not self.within:
            return shared
        return tuple(each or self._inner(stage, number) for number, each in enumerate(shared))

    def _figures(self, name: str) -> Mapping[int, Figure] | None:
        """The figures of a text's lines (from 1) where they are exact."""
        if name != self.counter.stage:
            return self.exact.get(name)
        own = self._own(len(self.counter.values))
        return {number: each.figure for number, each in enumerate(own, 1) if each is not None}

    def _own(self, count: int) -> tuple[LineFigure | None, ...]:
        """The counted lines themselves; lines of the same value and kind show one figure."""
        known: dict[tuple[float, str, tuple[int, ...]], LineFigure] = {}
        out: list[LineFigure | None] = [None] * count
        for number, value in enumerate(self.counter.values[:count]):
            if value:
                key = value, self._kind(number), _at(self.stage.lines, number)[1:]
                if key not in known:
                    figure = Figure()
                    figure.add(*key)
                    known[key] = LineFigure(figure, True, number + 1)
                out[number] = known[key]
        return tuple(out)

    def _inner(self, stage: StageRecord, number: int) -> LineFigure | None:
        """A line of the source that stands inside others': that of a macro."""
        lines = _at(stage.lines, number)
        figure = self.within.get(lines[0]) if len(lines) == 1 else None
        return LineFigure(figure, False, number + 1, inner=True) if figure else None


def _at(lines: Lines, number: int) -> tuple[int, ...]:
    """What a line map has for a line (from 0); a map may be shorter than its text."""
    return lines[number] if number < len(lines) else ()


def _first(lines: Lines, number: int) -> int:
    """The first of them, 0 where there is none."""
    found = _at(lines, number)
    return found[0] if found else 0


def _shared(
    stage: StageRecord, keys: Sequence[int], figures: Mapping[int, Figure]
) -> tuple[LineFigure | None, ...]:
    """Lines of one key show its figure together, and one of them bears it.

    That is the first inside the kernel: names of layouts that stand at the head of a function do nothing.
    """
    bearer: dict[int, int] = {}
    if not stage.made_of:
        for number, line in enumerate(stage.text.splitlines()):
            if line.startswith((" " * 5, "\t")):
                bearer.setdefault(keys[number], number + 1)
    for number, key in enumerate(keys, 1):
        bearer.setdefault(key, number)
    # In machine code most lines share: they show one value, not one each.
    shared = {key: LineFigure(figures[key], False, first) for key, first in bearer.items() if key in figures}
    return tuple(
        LineFigure(figures[key], True, number) if bearer[key] == number and key in shared else shared.get(key)
        for number, key in enumerate(keys, 1)
    )


def line_sums(record: CompileRecord, counter: LineCounter) -> LineSums:
    """A counter of a record, summed to the lines of every stage."""
    return LineSums(record, counter)
