"""Figures of lines as columns of panes: what stands in a cell, how dark it is, and what it means in words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ...pictures.collect import KernelPictures
from ...pictures.warp_accesses import WarpAccess
from ...plain import to_plain
from ...profile.lines import Figure, LineFigure, LineSums, line_counters, line_sums
from ...record import CompileRecord, LineCounter, StageRecord
from ..views.stages import language_of
from .state import GutterCellData, GutterData

# What a line shows that shares its figure with another one, which bears it.
DITTO = "\N{DOUBLE PRIME}"
_MOST_KINDS = 5


def short_number(value: float) -> str:
    """A figure in at most five letters: 7, 1,024 as 1024, 12.3k, 4.5M."""
    if value != int(value) and value < 1000:
        return f"{value:.3g}"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            scale = {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{value / scale:.3g}{unit}"
    return f"{value:.0f}"


def number(value: float, unit: str = "") -> str:
    """A figure whole, with its unit."""
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
    return f"{text} {unit}".strip()


class _Cells:
    """The cells of a gutter, each once."""

    def __init__(self) -> None:
        self.known: dict[GutterCellData, int] = {}

    def place(self, text: str, shade: float, says: str) -> int:
        return self.known.setdefault(GutterCellData(text, round(100 * shade), says), len(self.known))


def gutters_of(
    record: CompileRecord, names: Collection[str] | None = None, pictures: KernelPictures | None = None
) -> tuple[GutterData, ...]:
    """Every gutter of a record's stages, or of those named: what stands beside lines, and each counter.

    `pictures` are those of the record: what its accesses cost is counted on lines too.
    """
    shown = [stage for stage in record.stages if names is None or stage.name in names]
    out = [each for stage in shown if (each := _beside(record, stage)) is not None]
    for counter in (*access_counters(record, pictures), *line_counters(record)):
        out.append(_counter(line_sums(record, counter), shown))
    return tuple(out)


def plain_gutters(
    record: CompileRecord, names: Collection[str] | None = None, pictures: KernelPictures | None = None
) -> list[dict[str, Any]]:
    """The same as plain data."""
    return to_plain(gutters_of(record, names, pictures))


# Name, title, memory, what is counted, how it is read off an access.
_ACCESSES: tuple[tuple[str, str, str, str, Callable[[WarpAccess], int]], ...] = (
    (
        "conflicts", "bank conflicts of a block", "shared",
        "Passes over the banks of shared memory beyond the fewest", lambda one: one.passes - one.least,
    ),
    (
        "wasted", "wasted sectors of a block", "global",
        "Sectors of 32 bytes beyond the fewest that could hold what the threads of a warp ask for",
        lambda one: one.passes - one.least,
    ),
    (
        "sectors", "global sectors of a block", "global",
        "Sectors of 32 bytes that warps move to and from global memory", lambda one: one.passes,
    ),
)  # fmt: skip


_ABOUT = "Some turns of a long loop stand for all; where data decide, every lane counts as taking part."


def access_counters(record: CompileRecord, pictures: KernelPictures | None) -> list[LineCounter]:
    """What the accesses of the first block cost, by the kernel's lines, from the addresses of its code."""
    source = next((stage for stage in record.stages if stage.name == "source"), None)
    if pictures is None or source is None:
        return []
    out: list[LineCounter] = []
    first, count = record.source_first_line, len(source.text.splitlines())
    for name, title, scope, says, read in _ACCESSES:
        found = [each.access for each in pictures.accesses if each.access.scope == scope]
        values = [0.0] * count
        for access in found:
            if 0 <= access.line - first < count:
                values[access.line - first] += read(access)
        about = f" {_ABOUT}" if any(map(_is_about, found)) else ""
        if found:
            how = f"{says}. Counted from the addresses of the first block, without running it.{about}"
            out.append(LineCounter(name, title, "source", tuple(values), "", how))
    return out


def _is_about(access: WarpAccess) -> bool:
    return access.about or access.by_data


def _beside(record: CompileRecord, stage: StageRecord) -> GutterData | None:
    """What stands beside a text's lines in the machine's own words."""
    beside = language_of(record, stage).beside
    if beside is None or not any(stage.beside):
        return None
    cells = _Cells()
    shown = {text: cells.place(*beside.show(text)) if text else -1 for text in set(stage.beside)}
    lines = {stage.name: tuple(shown[text] for text in stage.beside)}
    known = tuple(cells.known)
    return GutterData(beside.name, beside.title, "", beside.title, False, known, lines, beside.narrow)


def _counter(sums: LineSums, shown: list[StageRecord]) -> GutterData:
    counter = sums.counter
    cells = _Cells()
    stages = {
        stage.name: _lines(sums, sums.of(stage.name), cells)
        for stage in shown
        if not stage.pending and stage.text
    }
    if set(counter.values) <= {0.0, 1.0} and counter.stage in stages:
        # A column of ones says nothing: instructions beside the instructions themselves.
        stages[counter.stage] = (-1,) * len(stages[counter.stage])
    total = f"{number(sums.total, counter.unit)} {counter.title}"
    says = counter.says
    if sums.none.value:
        says += f" {number(sums.none.value, counter.unit)} of them come from no line of the kernel."
    return GutterData(counter.name, counter.title, total, says.strip(), True, tuple(cells.known), stages)


def _lines(sums: LineSums, figures: tuple[LineFigure | None, ...], cells: _Cells) -> tuple[int, ...]:
    most = max((each.figure.value for each in figures if each is not None), default=1.0) or 1.0
    known: dict[int, int] = {}
    out: list[int] = []
    for each in figures:
        if each is None:
            out.append(-1)
            continue
        # Lines that show one and the same figure are many in machine code.
        if id(each) not in known:
            bears = each.bears or each.inner
            text = short_number(each.figure.value) if bears else DITTO
            shade = max(0.01, each.figure.value / most) if bears else 0.0
            known[id(each)] = cells.place(text, shade, _said(sums, each))
        out.append(known[id(each)])
    return tuple(out)


def _said(sums: LineSums, shown: LineFigure) -> str:
    """What a cell means: the figure as a part of the whole, what it is made of, and where it counts."""
    counter, figure = sums.counter, shown.figure
    part = f" of {number(sums.total, counter.unit)}" if sums.total != figure.value else ""
    out = [f"{number(figure.value, counter.unit)}{part} {counter.title}{_kinds(counter, figure)}"]
    for line, value in sorted(figure.also.items()):
        out.append(f"{number(value, counter.unit)} of it serve line {line} too, and count here alone")
    if shown.inner:
        out.append("part of the figures of the lines that use this one")
    elif not shown.bears:
        out.append(f"together with line {shown.first} of this text, where it counts")
    return "\n".join(out)


def _kinds(counter: LineCounter, figure: Figure) -> str:
    if not figure.kinds:
        return ""
    kinds = sorted(figure.kinds.items(), key=lambda item: -item[1])
    if len(kinds) == 1:
        return f": {kinds[0][0]}"
    parts = [f"{number(value, counter.unit)} {kind}" for kind, value in kinds[:_MOST_KINDS]]
    rest = sum(value for _, value in kinds[_MOST_KINDS:])
    return ": " + ", ".join([*parts, *([f"{number(rest, counter.unit)} other"] if rest else [])])
