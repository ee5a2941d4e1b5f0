"""What a kernel says that chooses nothing here: told with a remark at its line, and gone after that."""

from __future__ import annotations

from ..ir import OpStmt, Word, attribute, node
from .tracing.builder import inside_kernel


@node
class Note(OpStmt):
    """`T.note("...")`: a remark about this line; nothing is done."""

    word = "note"
    stages = frozenset({"tile"})
    text: str = attribute()


WORDS = ((Note.word, Word(Note)),)


def note(text: str) -> None:
    """Leave a remark at the line that is being traced."""
    builder = inside_kernel("T.note")
    builder.emit(Note(text, place=builder.place))


def note_unused(word: str, **options: object) -> None:
    """A remark for each option of TileLang's that was given and has no meaning here."""
    for name, value in options.items():
        if value is not None:
            note(f"{word}({name}={value!r}) chooses nothing here")
