"""From the text of a stage to lines of HTML: token colours and marks of what changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .buffer_names import buffers_in
from .style import escape

Piece = tuple[str, str]

# The names are those of `tokens.json` as Pygments calls them, and what Pygments' own lexers give
# for PTX, CUDA C++ and LLVM; the longest prefix decides. The class is one letter: a token costs
# 20 bytes in a saved notebook.
_CLASSES = (
    ("Token.Comment", "m"),
    ("Token.Keyword.Type", "y"),
    ("Token.Keyword.Reserved", "c"),
    ("Token.Keyword.Namespace", "m"),
    ("Token.Keyword.Constant", "n"),
    ("Token.Keyword", "k"),
    ("Token.Name.Builtin", "b"),
    ("Token.Name.Decorator", "d"),
    ("Token.Name.Variable", "v"),
    ("Token.Name.Constant", "y"),
    ("Token.Name.Exception", "d"),
    ("Token.Name.Label", "d"),
    ("Token.Name.Function.Magic", "d"),
    ("Token.Name.Function", "b"),
    ("Token.Name.Class", "c"),
    ("Token.Literal.Number", "n"),
    ("Token.Literal.String", "s"),
    ("Token.Literal", "s"),
)

# Registers, which are most words of some machine languages: left in the text's colour, the opcodes,
# predicates and addresses stand out, and a saved listing is a third smaller.
_REGISTER = "v"

CSS = (
    ".tilebench .code .k{color:var(--tk)}.tilebench .code .c{color:var(--tc);font-weight:600}"
    ".tilebench .code .d{color:var(--td);font-weight:600}.tilebench .code .b{color:var(--tb)}"
    ".tilebench .code .y{color:var(--ty)}.tilebench .code .n{color:var(--tn)}.tilebench .code "
    ".s{color:var(--ts)}"
    ".tilebench .code .v{color:var(--tv)}.tilebench .code .m{color:var(--dim)}"
)


@lru_cache(maxsize=512)
def _class_of(kind: Any) -> str:
    """The letter of a Pygments token type; empty for what keeps the text's colour."""
    name = str(kind)
    return next((letter for prefix, letter in _CLASSES if name.startswith(prefix)), "")


# What starts a token that may cross lines, and what ends it.
_OPENINGS = (("/*", "*/"), ('"""', '"""'), ("'''", "'''"))


def _crosses_lines(text: str) -> bool:
    """Whether a comment or string of `text` goes over the end of a line."""
    if not any(start in text for start, _ in _OPENINGS):
        return False
    for line in text.splitlines():
        for start, end in _OPENINGS:
            found = line.rfind(start)
            if found >= 0 and (line.count(start) % 2 if start == end else end not in line[found + 2 :]):
                return True
    return False


def coloured_lines(
    text: str, language: str, buffers: frozenset[str] = frozenset(), *, quiet: bool = False
) -> tuple[tuple[Piece, ...], ...]:
    """For each line of `text` its pieces as (class, text); their texts join to the line.

    `quiet` leaves registers uncoloured.

    Lines are coloured one by one and remembered: a slider's move changes few of a stage's lines and
    none of a prelude's, and Pygments takes 20 us a token. A text with a comment or string over
    several lines is taken whole.
    """
    buffers |= buffers_in(text)
    if _crosses_lines(text):
        return _coloured(text, language, buffers, quiet)
    return tuple(_coloured(line, language, buffers, quiet)[0] for line in text.split("\n"))


@lru_cache(maxsize=8192)
def _coloured(
    text: str, language: str, buffers: frozenset[str], quiet: bool
) -> tuple[tuple[Piece, ...], ...]:
    from .lexers import lexer_for

    lines: list[list[Piece]] = [[]]
    for kind, value in lexer_for(language, buffers).get_tokens(text):
        letter = _class_of(kind) if value.strip() else ""
        if quiet and letter == _REGISTER:
            letter = ""
        for index, part in enumerate(value.split("\n")):
            if index:
                lines.append([])
            if part:
                now = lines[-1]
                if now and now[-1][0] == letter:
                    now[-1] = (letter, now[-1][1] + part)
                else:
                    now.append((letter, part))
    return tuple(tuple(each) for each in lines)


def line_html(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]] = ()) -> str:
    """One line: a span a piece, a `<mark>` around each range of characters in `spans`."""
    out: list[str] = []
    column = 0
    opened = False
    edges = list(spans)
    for letter, text in pieces:
        while text:
            if not opened and edges and edges[0][0] <= column:
                out.append("<mark>")
                opened = True
            stop = (edges[0][1] if opened else edges[0][0]) if edges else column + len(text)
            part, text = text[: max(1, stop - column)], text[max(1, stop - column) :]
            body = escape(part)
            out.append(f"<span class={letter}>{body}</span>" if letter else body)
            column += len(part)
            if opened and column >= edges[0][1]:
                out.append("</mark>")
                edges.pop(0)
                opened = False
    if opened:
        out.append("</mark>")
    return "".join(out)
