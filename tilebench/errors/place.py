"""Where something stands in the source a person wrote."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

# Source that no file holds (cells, `exec`, edited stage text), by display name.
_texts: dict[str, tuple[str, ...]] = {}
# Lines without newlines, beside the list of `linecache` that they were made from: a new list is a new text.
_bare: dict[str, tuple[list[str], tuple[str, ...]]] = {}


def remember_source(name: str, text: str) -> None:
    """Keep `text` so that errors in `name` can quote its lines."""
    # Lines as Python counts them: a form feed ends none.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    _texts[name] = tuple(lines[:-1] if lines[-1] == "" else lines)


def kept_lines(name: str) -> Sequence[str]:
    """The lines of a remembered text; empty if there is none of this name."""
    return _texts.get(name, ())


def source_lines(name: str) -> Sequence[str]:
    """The lines of a file or remembered text; empty if neither can be read."""
    kept = _texts.get(name)
    if kept is not None:
        return kept
    return file_lines(name)


def file_lines(name: str, namespace: dict[str, Any] | None = None) -> tuple[str, ...]:
    """The lines of a file as `linecache` has it, without newlines; in archives by the names of its module."""
    lines = linecache.getlines(name, namespace)
    known = _bare.get(name)
    if known is None or known[0] is not lines:
        known = _bare[name] = lines, tuple([line.rstrip("\n") for line in lines])
    return known[1]


@dataclass(frozen=True, slots=True)
class Place:
    """A span of source. `line` counts from 1, `column` from 0 (in characters), ends are exclusive.

    `caller` is where the macro or helper that holds this span was inlined. Used as a context
    manager, a place stamps itself on any `TileError` raised inside that has none yet.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ""
    caller: Place | None = None

    @property
    def text(self) -> str:
        """The source line, without its newline; empty when the source is gone."""
        lines = source_lines(self.file)
        return lines[self.line - 1] if 0 < self.line <= len(lines) else ""

    @property
    def chain(self) -> tuple[Place, ...]:
        """This place and then each call site it was inlined at, innermost first."""
        places: list[Place] = []
        place: Place | None = self
        while place is not None:
            places.append(place)
            place = place.caller
        return tuple(places)

    @property
    def user(self) -> Place:
        """The outermost call site: the line in the kernel itself."""
        return self.chain[-1]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Our errors are told by having a place to fill: the root of errors draws places itself.
        if getattr(error, "place", self) is None:
            error.place = self  # type: ignore[union-attr]
