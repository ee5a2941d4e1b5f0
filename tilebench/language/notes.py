"""What a kernel says that chooses nothing here: told with a remark at its line, and gone after that."""

from __future__ import annotations

from ..ir import OpStmt, Word, attribute, node
from .tracing.builder import in_trace, shown


@node
class Note(OpStmt):
    """`T.note("...")`: a remark about this line; nothing is done."""

    word = "note"
    stages = frozenset({"tile"})
    text: str = attribute()


WORDS = ((Note.word, Word(Note)),)


def note(text: str) -> None:
    """Leave a remark at the line that is being traced, which may stand in front of the kernel's block."""
    builder = in_trace("T.note")
    said = Note(text, place=builder.place)
    builder.say(said)


def note_unused(word: str, **options: object) -> None:
    """A remark for each option of TileLang's that was given, not None or False, and chooses nothing here."""
    for name, value in options.items():
        if value is not None and value is not False:
            note(f"{word}({name}={shown(value)}) chooses nothing here")
