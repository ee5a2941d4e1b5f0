"""The tabs beside the panes: resources, choices, remarks, diagnostics, a check's report, moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...profile.symptoms import SYMPTOMS
from ...record import CompileRecord, Resources
from ..check_view import CHECK_HEADS, NUMERIC, check_rows, near, note, summary
from ..history import MoveHistory, move_rows
from ..table import Cell, Value
from ..views import resources as panel
from ..views.stages import source_word
from .block_data import BarData, Block, CellData, ChoiceBlock, OptionBlocks, TabData, TableData
from .error_blocks import map_blocks

if TYPE_CHECKING:
    from ...profile.diagnosis import Diagnosis
    from ...reference.check import CheckReport, OutputReport
    from ..chart import ChartCeilings

# What the style sheet of the HTML form calls a tone, where the two differ.
_TONES = {"q": "quiet", "note": "", "nw": "", "mono": ""}
NEWEST_MOVES = 40


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Value]],
    *,
    caption: str = "",
    numeric: Sequence[int] = (),
    mono: Sequence[int] = (),
) -> Block:
    """A table of texts and cells as a block."""
    data = TableData(
        tuple(heads),
        tuple(tuple(_cell(v) for v in row) for row in rows),
        caption,
        tuple(numeric),
        tuple(mono),
    )
    return Block(table=data)


def _cell(value: Value) -> CellData:
    if isinstance(value, Cell):
        return CellData(value.text, _TONES.get(value.kind, value.kind), value.title)
    return CellData(value)


def resource_blocks(resources: Resources | None, shared_limit: int) -> tuple[Block, ...]:
    """Figures, bars and the sentence of what limits occupancy."""
    if resources is None:
        return (Block(panel.NO_RESOURCES, "quiet"),)
    facts = [[name, Cell(value, kind)] for name, value, kind in panel.facts(resources, shared_limit)]
    bars = tuple(BarData(*row) for row in panel.bar_rows(resources, shared_limit))
    out = [table(("resource", "value"), facts, numeric=(1,))]
    out += [Block(bars=bars)] if bars else []
    said = panel.occupancy_sentence(resources)
    out += [Block(said + ".")] if said else []
    if resources.launches:
        out.append(table(panel.LAUNCH_HEADS, panel.launch_rows(resources)))
    return tuple(out)


def record_tabs(record: CompileRecord, shared_limit: int) -> list[TabData]:
    """The tabs that one compilation gives."""
    word = source_word(record)
    missed = sum(remark.kind == "missed" for remark in record.remarks)
    out = [TabData("resources", "Resources", resource_blocks(record.resources, shared_limit))]
    if record.remarks:
        rows = panel.remark_rows(record.remarks, word)
        badge, tone = (f"{missed} missed", "warn") if missed else (str(len(rows)), "quiet")
        out.append(TabData("remarks", "Remarks", (table(panel.REMARK_HEADS, rows, mono=(3,)),), badge, tone))
    if record.choices:
        rows = panel.choice_rows(record.choices)
        out.append(TabData("schedule", "Schedule", (table(panel.CHOICE_HEADS, rows, mono=(0, 2)),)))
    if record.diagnostics:
        blocks: list[Block] = []
        for each in sorted(record.diagnostics, key=lambda d: d.severity != "error"):
            where = panel.place_text(each.place, word)
            tone = "bad" if each.severity == "error" else "warn"
            text = f"{each.severity}: {each.message}" + (f" ({where})" if where else "")
            blocks.append(Block(text, tone, panel.carets(each)))
        out.append(TabData("diagnostics", "Diagnostics", tuple(blocks), str(len(blocks)), "warn"))
    return out


def symptom_options() -> tuple[OptionBlocks, ...]:
    """How the pages of the help begin, and the command each ends in: a state goes out at each move."""
    return tuple(
        OptionBlocks(
            page.title,
            (Block(page.text.partition(". ")[0] + ".", quote=f"{page.command}\ntilebench help {page.name}"),),
        )
        for page in SYMPTOMS
    )


def diagnosis_tab(diagnosis: Diagnosis) -> TabData:
    """What bounds the kernel, then each cause with its evidence and what to try, the heaviest first."""
    blocks = [Block(diagnosis.why)]
    for k, found in enumerate(diagnosis.findings, 1):
        where = f" (line {found.line})" if found.line else ""
        blocks.append(Block(f"{k}. {found.what}{where}.", "warn" if found.weight >= 0.1 else ""))
        if found.evidence:
            rows = [[each.name, each.value] for each in found.evidence]
            blocks.append(table(("seen", ""), rows, numeric=(1,)))
        blocks.append(Block(f"Try: {found.to_try}.", "good"))
    if not diagnosis.findings:
        blocks.append(Block("Nothing stands out that keeps it from being faster.", "good"))
    blocks.append(Block(choice=ChoiceBlock("symptom", "pages by what is seen", symptom_options())))
    count = len(diagnosis.findings)
    return TabData("diagnosis", "Diagnosis", tuple(blocks), str(count) if count else "", "warn")


def check_tab(report: CheckReport) -> TabData:
    """The report of a check: a summary, the worst elements, and a map where something is wrong."""
    blocks = [block for output in report.outputs for block in _output(output, report.how)]
    badge, tone = ("within bounds", "good") if report.ok else ("outside", "bad")
    return TabData("check", "Check", tuple(blocks), badge, tone)


def _output(output: OutputReport, how: str) -> list[Block]:
    out = [Block(summary(output) + ".", "good" if output.ok else "bad")]
    out += map_blocks(output)
    if worst := near(output):
        rows = check_rows(worst)
        out.append(table(CHECK_HEADS, rows, caption="Worst elements", numeric=NUMERIC, mono=(0,)))
    if how:
        out.append(Block(f"Bound: {note(output, how)}.", "quiet"))
    return out


def moves_tab(history: MoveHistory, ceilings: ChartCeilings | None) -> TabData:
    """What was asked for, and what came of it."""
    heads, rows, numeric = move_rows(history, ceilings, NEWEST_MOVES)
    return TabData("moves", "Moves", (table(heads, rows, numeric=numeric),), str(len(history)), "quiet")
