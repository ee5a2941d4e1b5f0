"""What a bench shows of edits: which stages, what else was edited, where an error stands in edited text."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from ..chart import config_text
from ..wish import EDITED
from .state import EditsData, KeptEditData, ProblemData

if TYPE_CHECKING:
    from ...errors import Place, TileError
    from ..picture import Picture
    from ..wish import StageEdit


def edits_data(picture: Picture) -> EditsData:
    """The edits of a bench, with the one of now marked."""
    now, where = picture.wish.edit, picture.wish.position
    kept = tuple(
        KeptEditData(
            edit.number,
            edit.label,
            config_text({k: v for k, v in edit.config.items() if where.get(k) != v}),
            now is not None and edit.number == now.number,
        )
        for edit in picture.edits
    )
    edited = tuple(each.stage for each in now.stages) if now is not None else ()
    return EditsData(picture.editable, edited, kept)


def left_note(picture: Picture) -> tuple[str, ...]:
    """A sentence where the last move left an edit behind."""
    moves = picture.history.moves[-2:]
    if len(moves) < 2 or EDITED in moves[1].config or EDITED not in moves[0].config:
        return ()
    if {**moves[1].config, EDITED: moves[0].config[EDITED]} == dict(moves[0].config):
        return ()  # taken back at its position
    return (f"{moves[0].config[EDITED]} stays at its position: the list of edits goes back to it.",)


def problem_data(picture: Picture, problem: TileError) -> ProblemData:
    """An error as its first line and the rest, with its place in the edited text that it is about."""
    what, _, rest = problem.explain().partition("\n")
    place, edit = problem.place, picture.wish.edit
    if place is None or edit is None:
        return ProblemData(what, rest)
    for each in edit.stages:
        if place.file == f"<{each.stage} stage>":
            return ProblemData(what, rest, each.stage, place.line, place.column, place.end_column)
    line = _line_of(picture, edit.stages[-1], place.user)
    return ProblemData(what, rest, edit.stages[-1].stage, line) if line else ProblemData(what, rest)


def _line_of(picture: Picture, edit: StageEdit, place: Place) -> int:
    """The first line of edited text that came from a line of the kernel; 0 where none did."""
    record = picture.record
    shown = next((s for s in record.stages if s.name == edit.stage), None) if record is not None else None
    if record is None or shown is None or place.file != record.source_file:
        return 0
    blocks = SequenceMatcher(None, shown.text.splitlines(), edit.text.splitlines(), autojunk=False)
    for block in blocks.get_matching_blocks():
        for k in range(block.size):
            lines = shown.lines[block.a + k] if block.a + k < len(shown.lines) else ()
            if place.line in lines:
                return block.b + k + 1
    return 0
