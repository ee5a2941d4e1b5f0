"""What an editor marks in a cell: the errors and warnings of its last run, each at its range.

They travel in the cell's own outputs, beside the picture or the error, so that a notebook that is opened
again has them too. An editor finds the line by its text: where that was changed, the mark is gone.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...errors import Place, TileError, source_lines
from ...plain import to_plain
from ...record import CompileRecord, PlaceRecord

if TYPE_CHECKING:
    from ...profile.diagnosis import Cause
    from ..session import Picture

MARKS_MIME = "application/vnd.tilebench.marks.v1+json"
# A cell with more is not read mark by mark.
MOST_MARKS = 100


@dataclass(frozen=True)
class Mark:
    """One mark. `file` is what the cell is called; `line` counts from 1, columns from 0 in characters.

    `severity` is `error`, `warning` or `info`. `text` is the first line as it was, `end_line` is 0 where the
    mark ends in it. `what` says what is so, `details` are pairs of a label and a sentence.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    severity: str
    what: str
    details: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Marks:
    """The marks of an output, and the live bench that it belongs to, if one does."""

    bench: str
    marks: tuple[Mark, ...]


def error_marks(error: TileError, magic_line: Place | None = None) -> tuple[Mark, ...]:
    """An error where it is, and the calls that led there; one without a place stands at the magic's line."""
    place = error.place or magic_line
    if place is None:
        return ()
    what, details = error.headline, error.details
    own, *calls = place.chain
    out = [_mark(own, "error", what, details)]
    out += [_mark(call, "error", f"called from here: {what}", details) for call in calls]
    out += [_mark(other, "info", why, (("part of", what),)) for why, other in error.parts]
    return tuple(mark for mark in out if mark.text.strip())


def exception_marks(error: BaseException, code: str, file: str) -> tuple[Mark, ...]:
    """An error of Python's own at the innermost part of the cell that it went through.

    `code` is the file name of the cell's code, and `file` what the cell is called.
    """
    steps = [step for step in _steps(error) if step.tb_frame.f_code.co_filename == code]
    if not steps:
        return ()
    step, line = steps[-1], steps[-1].tb_lineno
    lines = source_lines(file)
    text = lines[line - 1].encode() if line <= len(lines) else b""
    start, end, *columns = next(islice(step.tb_frame.f_code.co_positions(), step.tb_lasti // 2, None))
    # Python counts bytes.
    first, last = (len(text[: column or 0].decode(errors="ignore")) for column in columns)
    place = Place(file, line, first, line, last) if start == line == end else Place(file, line)
    mark = _mark(place, "error", f"{type(error).__name__}: {error}")
    return (mark,) if mark.text.strip() else ()


def _steps(error: BaseException) -> Iterator[TracebackType]:
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def picture_marks(picture: Picture) -> tuple[Mark, ...]:
    """Why the wish could not be had, else what is to be said of the kernel that it came to."""
    if picture.problem is not None:
        return error_marks(picture.problem)
    if picture.record is None or picture.stale:
        return ()
    causes: Sequence[Cause] = picture.diagnosis.findings if picture.diagnosis is not None else ()
    file = picture.record.source_file
    told = [_mark(Place(file, c.line), "info", c.what, (("try", c.to_try),)) for c in causes if c.line]
    return record_marks(picture.record) + tuple(mark for mark in told if mark.text.strip())


def record_marks(record: CompileRecord) -> tuple[Mark, ...]:
    """What passes could not do, and the diagnostics of a compilation."""
    out = [
        _mark(_place(found.place), "warning", found.message, (("pass", found.pass_name),))
        for found in record.remarks
        if found.kind == "missed" and found.place is not None
    ]
    out += [
        _mark(_place(found.place), found.severity, found.message)
        for found in record.diagnostics
        if found.place is not None
    ]
    return tuple(mark for mark in dict.fromkeys(out) if mark.text.strip())


def word_place(file: str, text: str, error: TileError) -> Place:
    """Where an error of the magic's line stands: at the word that it names, else at all of the line."""
    named = [str(value) for value in error.values.values()]
    word = next(
        (word for word in sorted(named, key=len, reverse=True) if word and word in text), text.strip()
    )
    start = text.find(word)
    return Place(file, 1, start, 1, start + len(word))


def marks_json(marks: Iterable[Mark], bench: str = "") -> dict[str, Any]:
    """The JSON of an output."""
    return to_plain(Marks(bench, tuple(marks)[:MOST_MARKS]))


def _place(found: PlaceRecord) -> Place:
    return Place(found.file, found.line, found.column, found.end_line, found.end_column)


def _mark(place: Place, severity: str, what: str, details: Sequence[tuple[str, str]] = ()) -> Mark:
    lines = source_lines(place.file)
    text = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    end_line = place.end_line if place.end_line > place.line else 0
    # No cell has a line of ten thousand letters that somebody wrote.
    return Mark(
        place.file,
        place.line,
        place.column,
        end_line,
        place.end_column,
        text[:2000],
        severity,
        what,
        tuple(details),
    )


def show_marks(marks: tuple[Mark, ...]) -> None:
    """Put the marks of an error that a cell is about to raise into its output, where a person edits the cell.

    It has nothing to see: the error itself is the next output.
    """
    display: Any = importlib.import_module("IPython.display").display
    if marks:
        display({MARKS_MIME: marks_json(marks), "text/plain": ""}, raw=True)
