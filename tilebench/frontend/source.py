"""The source of a Python function: its syntax tree with the line numbers a reader sees."""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from ..errors import LanguageError, Place, remember_source, source_lines
from .texts import defined, find, first_line, named, shown_name, texts_now


@dataclass(frozen=True)
class SourceFunction:
    """One function in its text. `file` is the name to show."""

    file: str
    node: ast.FunctionDef
    lines: tuple[str, ...]

    @property
    def first_line(self) -> int:
        return first_line(self.node)

    @property
    def text(self) -> str:
        """The lines of the function alone."""
        return "\n".join(self.lines[self.first_line - 1 : self.node.end_lineno]) + "\n"

    def place(self, node: Any, caller: Place | None = None) -> Place:
        """The place of a node: of its head only, for a statement that holds others."""
        end_line, end_column = node.end_lineno, node.end_col_offset
        head = _head(node)
        if head is not None:
            end_line, end_column = head.end_lineno, head.end_col_offset
        start, stop = node.col_offset, end_column
        return Place(
            self.file,
            node.lineno,
            self.characters(node.lineno, start),
            end_line,
            self.characters(end_line, stop),
            self.node.name,
            caller,
        )

    def characters(self, line: int, column: int) -> int:
        """A column of the syntax tree, which counts bytes, in characters."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))


def _head(node: Any) -> Any:
    match node:
        case ast.For():
            return node.iter
        case ast.If() | ast.While():
            return node.test
        case ast.With():
            return node.items[-1].optional_vars or node.items[-1].context_expr
        case ast.FunctionDef():
            return node.args.args[-1] if node.args.args else None
        case _:
            return None


def source_of(
    function: Callable[..., Any],
    text: str | None = None,
    file: str | None = None,
    first: int = 1,
    kept: Sequence[Sequence[str]] = (),
) -> SourceFunction:
    """The source of a Python function.

    `text` is the text that holds it, whose first line is line `first` of `file`; without it the
    text is looked for: among `kept`, what stood there when the function was made, and where it would
    stand now. Raises `LanguageError` when there is none, or when none holds the function that Python runs.
    """
    code: CodeType = function.__code__
    name = file or shown_name(code.co_filename)
    if text is not None:
        # Blank lines in front give every node, and every quoted line, its number in the file.
        text = "\n" * (first - 1) + text
        remember_source(name, text)
        lines = tuple(source_lines(name))
    else:
        lines = find(code, kept, lambda: texts_now(function))
        if lines is None and (name.startswith("<") or not (kept or texts_now(function))):
            raise _missing(code.co_name, name)
    definition = defined(lines, code) if lines is not None else None
    if lines is not None and definition is not None:
        if text is None:
            name = named(name, lines, definition)
        return SourceFunction(name, definition.node, lines)
    raise LanguageError(
        "the source of {name} has changed since Python read it",
        name=code.co_name,
        at=Place(name, code.co_firstlineno),
        hint="run the cell or import the module again",
    )


def _missing(name: str, file: str) -> LanguageError:
    hint = (
        "Python keeps no text of what it reads from a pipe or a prompt: save it as a file and run that,"
        " give it to python -c, or use IPython"
        if file == "<stdin>"
        else "a kernel is read from its source: write the text to a file, or give it to"
        " errors.remember_source(file, text) before exec(compile(text, file, 'exec'))"
    )
    return LanguageError(
        "the source of {name} cannot be read: {file} is no file and no remembered text",
        name=name, file=file, hint=hint,
    )  # fmt: skip


def read_source(path: Path) -> str:
    """The text of a Python file, in the encoding that it names. `LanguageError` where it cannot be."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise LanguageError(
            "{file} is no text that Python reads: {why}", file=path.name, why=error, at=Place(str(path), 1),
            hint="save it as UTF-8, or name its encoding in the first line: # -*- coding: latin-1 -*-",
        ) from None  # fmt: skip


# What Python says of a statement that stands in no function, and what to do.
_ALONE = {
    "'await' outside function": "await it in a cell of its own, which the shell runs in its loop",
    "asynchronous comprehension outside": "await it in a cell of its own, which the shell runs in its loop",
    "'async for' outside": "loop in a cell of its own, which the shell runs in its loop",
    "'async with' outside": "write it in a cell of its own, which the shell runs in its loop",
    "'return' outside function": "a cell or file ends with its last line; leave the return out",
    "'yield' outside function": "a `yield` belongs in a function",
}


def check_syntax(text: str, file: str) -> None:
    """Raise `LanguageError`, with the place, when `text` is not Python. The text is remembered as `file`."""
    remember_source(file, text)
    try:
        with warnings.catch_warnings():  # they come when the text is run
            warnings.simplefilter("ignore")
            compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno or 1
        column = max(0, (error.offset or 1) - 1)
        end = error.end_offset - 1 if error.end_offset and error.end_lineno == line else column + 1
        raise LanguageError(
            "this is not Python: {why}",
            at=Place(file, line, column, line, max(end, column + 1)),
            why=error.msg,
            hint=next((cure for said, cure in _ALONE.items() if error.msg.startswith(said)), ""),
        ) from None
    except ValueError as error:
        raise LanguageError("this is not Python: {why}", at=Place(file, 1), why=error) from None
