"""The source of a Python function: its syntax tree with the line numbers a reader sees.

Works for files, notebook cells and text given to `exec`: the text is looked for under the code
object's file name, first among remembered texts (`errors.remember_source`), then in `linecache`,
where Python and IPython keep what they run.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from ..errors import LanguageError, Place, remember_source, source_lines


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


def first_line(node: ast.FunctionDef) -> int:
    """The line where Python says a function begins: its first decorator, or `def`."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


@lru_cache(maxsize=64)
def parse_module(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """All functions of a text by name and first line. Raises `SyntaxError`."""
    found: dict[tuple[str, int], ast.FunctionDef] = {}
    stack: list[ast.AST] = [ast.parse(text)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef):
            found.setdefault((node.name, first_line(node)), node)
        stack.extend(ast.iter_child_nodes(node))
    return found


def shown_name(file: str) -> str:
    """The name of a file as its reader knows it: a notebook's cell instead of the kernel's temporary file."""
    if not (file.startswith("<ipython-input") or "ipykernel_" in file):
        return file
    # Looked up, never imported: the front end works without IPython.
    shell_module = sys.modules.get("IPython")
    shell: Any = None if shell_module is None else shell_module.get_ipython()
    name_of: Any = getattr(getattr(shell, "compile", None), "format_code_name", None)
    named: Any = name_of(file) if name_of is not None else None
    if not named:
        return file
    shown = " ".join(str(each) for each in named)
    remember_source(shown, "\n".join(source_lines(file)))
    return shown


def source_of(
    function: Callable[..., Any], text: str | None = None, file: str | None = None, first: int = 1
) -> SourceFunction:
    """The source of a Python function.

    `text` is the text that holds it, whose first line is line `first` of `file`; without it the
    text is looked up by the code object's file name. Raises `LanguageError` when there is none, or
    when it no longer holds the function.
    """
    code: CodeType = function.__code__
    name = file or shown_name(code.co_filename)
    if text is not None:
        # Blank lines in front give every node, and every quoted line, its number in the file.
        text = "\n" * (first - 1) + text
        remember_source(name, text)
        lines = tuple(text.splitlines())
    else:
        lines = tuple(source_lines(name)) or tuple(source_lines(code.co_filename)) or _loaded(function)
    node = _find(lines, code)
    if node is None and text is None:
        linecache.checkcache(code.co_filename)
        lines = tuple(source_lines(code.co_filename))
        node = _find(lines, code)
    if node is not None:
        return SourceFunction(name, node, lines)
    if not lines:
        raise LanguageError(
            "the source of {name} cannot be read: {file} is no file and no remembered text",
            name=code.co_name,
            file=name,
            hint="a kernel is read from its source; give the text to "
            "errors.remember_source(file, text) before compile(text, file, 'exec')",
        )
    raise LanguageError(
        "the source of {name} has changed since Python read it",
        name=code.co_name,
        at=Place(name, code.co_firstlineno),
        hint="run the cell or import the module again",
    )


def _loaded(function: Callable[..., Any]) -> tuple[str, ...]:
    """The lines of a module that no file holds: in an archive, or the text of `python -c`."""
    name, space = function.__code__.co_filename, function.__globals__
    text = "".join(linecache.getlines(name, space))
    given = sys.orig_argv
    if not text and name == "<string>" and space.get("__name__") == "__main__" and "-c" in given[:-1]:
        text = given[given.index("-c") + 1]
    if text:
        remember_source(name, text)
    return tuple(text.splitlines())


def _find(lines: tuple[str, ...], code: CodeType) -> ast.FunctionDef | None:
    try:
        found = parse_module("\n".join(lines)).get((code.co_name, code.co_firstlineno))
    except SyntaxError:
        return None
    if found is None:
        return None
    given = [each.arg for each in (*found.args.posonlyargs, *found.args.args, *found.args.kwonlyargs)]
    return found if given == list(code.co_varnames[: len(given)]) else None


def check_syntax(text: str, file: str) -> None:
    """Raise `LanguageError`, with the place, when `text` is not Python. The text is remembered as `file`."""
    remember_source(file, text)
    try:
        ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or 1
        column = max(0, (error.offset or 1) - 1)
        end = error.end_offset - 1 if error.end_offset and error.end_lineno == line else column + 1
        raise LanguageError(
            "this is not Python: {why}",
            at=Place(file, line, column, line, max(end, column + 1)),
            why=error.msg,
        ) from None
    except ValueError as error:
        raise LanguageError("this is not Python: {why}", at=Place(file, 1), why=error) from None
