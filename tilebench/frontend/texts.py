"""Where the text of a function is: files, cells, archives, `exec`, `python -c`, a file on standard input.

Python keeps the code of a function and not its text. Texts are proved: one that compiles to the very code
that Python runs is the right one, whatever has been written to the file since.
"""

from __future__ import annotations

import ast
import linecache
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import CodeType
from typing import Any

from ..errors import file_lines, kept_lines, remember_source, source_lines

Lines = tuple[str, ...]
# A file that was last written before cannot have changed since Python read it.
_STARTED = time.time()
_FUTURES = 0x1FF0000
_LARGEST = 1 << 24


@dataclass(frozen=True)
class Definition:
    """A function's node in a text, the statement at the top of the text that it is in, and the imports there.

    Python compiles `T.copy(...)` otherwise where `T` is imported by the same text, and IPython compiles each
    statement of a cell alone.
    """

    node: ast.FunctionDef
    top: ast.stmt
    imports: list[ast.stmt]
    verdicts: dict[CodeType, bool] = field(default_factory=dict[CodeType, bool])

    def gives(self, code: CodeType) -> bool:
        """Whether Python makes exactly this code of it."""
        known = self.verdicts.get(code)
        if known is None:
            known = self.verdicts[code] = any(
                found == code
                for body in ([*self.imports, self.top], [self.top])
                for found in self._codes(body, code.co_flags)
            )
        return known

    def _codes(self, body: list[ast.stmt], flags: int) -> Iterator[CodeType]:
        module = ast.Module(body, [])
        try:
            stack = [compile(module, "<text>", "exec", flags & _FUTURES, dont_inherit=True)]
        except (SyntaxError, ValueError, RecursionError):
            return
        while stack:
            code = stack.pop()
            yield code
            stack += [each for each in code.co_consts if isinstance(each, CodeType)]


@lru_cache(maxsize=64)
def parse_module(text: str) -> dict[tuple[str, int], Definition]:
    """All functions of a text by name and first line. Raises `SyntaxError`."""
    found: dict[tuple[str, int], Definition] = {}
    body = ast.parse(text).body
    imports = list(_imports(body))
    for top in body:
        for node in ast.walk(top):
            if isinstance(node, ast.FunctionDef):
                found.setdefault((node.name, first_line(node)), Definition(node, top, imports))
    return found


def _imports(body: Sequence[ast.AST]) -> Iterator[ast.stmt]:
    """The imports of a module, those under `if` and `try` too."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            for part in ("body", "orelse", "handlers", "finalbody"):
                yield from _imports(getattr(statement, part, ()))


def first_line(node: ast.FunctionDef) -> int:
    """The line where Python says a function begins: its first decorator, or `def`."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def defined(lines: Sequence[str], code: CodeType) -> Definition | None:
    """The function of a code object in a text, by name, line and arguments."""
    try:
        found = parse_module("\n".join(lines)).get((code.co_name, code.co_firstlineno))
    except (SyntaxError, ValueError):
        return None
    if found is None:
        return None
    arguments = found.node.args
    given = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return found if given == list(code.co_varnames[: len(given)]) else None


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


def texts_now(function: Callable[..., Any]) -> tuple[Sequence[str], ...]:
    """The texts that a function may be from, as they stand now: right after Python ran its definition.

    Nothing is parsed where a file or a cell is known by the code's name.
    """
    file = function.__code__.co_filename
    linecache.checkcache(file)
    lines = file_lines(file, function.__globals__)
    kept = tuple(text for text in (kept_lines(file), kept_lines(shown_name(file))) if text)
    if lines:
        return lines, *kept
    # A name such as `<string>` is that of many texts: who runs this one has it at hand.
    return *(_elsewhere(function.__code__) if file.startswith("<") or not kept else ()), *kept


def texts_read(function: Callable[..., Any]) -> tuple[Sequence[str], ...]:
    """The texts that Python has just read a function from: all there are while its definition runs.

    Of a function made before, those that prove to be its: the file may have been edited in between.
    """
    code = function.__code__
    texts = texts_now(function)
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if any(constant is code for constant in frame.f_code.co_consts):
            return texts
        frame = frame.f_back
    found = [(text, defined(text, code)) for text in map(_without_newlines, texts)]
    return tuple(text for text, definition in found if definition is not None and definition.gives(code))


def _without_newlines(text: Sequence[str]) -> Lines:
    return text if isinstance(text, tuple) else tuple([line.rstrip("\n") for line in text])


def find(
    code: CodeType, texts: Sequence[Sequence[str]], now: Callable[[], Sequence[Sequence[str]]]
) -> Lines | None:
    """The lines of the text that a code object is from: of those kept from then, or those of `now()`."""
    likely: Lines | None = None
    for k, text in enumerate(chain(texts, _later(now))):
        lines = _without_newlines(text)
        definition = defined(lines, code)
        if definition is None:
            continue
        if definition.gives(code):
            return lines
        # Code that an import hook or a tool has changed is its own text's all the same.
        if likely is None and (k < len(texts) or _cannot_have_changed(code.co_filename)):
            likely = lines
    return likely


def _later(texts: Callable[[], Sequence[Sequence[str]]]) -> Iterator[Sequence[str]]:
    yield from texts()


def _cannot_have_changed(file: str) -> bool:
    if file.startswith("<"):
        return False  # another text may have the same name
    try:
        return os.stat(file).st_mtime < _STARTED
    except (OSError, ValueError):
        return True  # no file: a cell, an archive, a text that was kept


def named(file: str, lines: Lines, definition: Definition) -> str:
    """The name to show a text by: the file's own where it still says the same about the function."""
    linecache.checkcache(file)
    part = slice(first_line(definition.node) - 1, definition.node.end_lineno)
    then = file if file.startswith("<") else f"{file} (as it was read)"
    for shown in chain((file, then), (f"{then} ({k})" for k in range(2, 1000))):
        known = source_lines(shown)
        if not known:
            remember_source(shown, "\n".join(lines))
        if not known or tuple(known[part]) == lines[part]:
            return shown
    return file


def _elsewhere(code: CodeType) -> Iterator[Lines]:
    """Texts that no file and no cell holds: of the command line, of standard input, of running frames."""
    given = sys.orig_argv
    if code.co_filename == "<string>" and "-c" in given[:-1]:
        yield tuple(given[given.index("-c") + 1].split("\n"))
    if code.co_filename == "<stdin>":
        yield from _standard_input()
    yield from _in_frames(code)


def _standard_input() -> Iterator[Lines]:
    """A file that Python reads as standard input can be read again; a pipe or a terminal cannot."""
    try:
        state = os.fstat(0)
        if stat.S_ISREG(state.st_mode):
            yield tuple(os.pread(0, min(state.st_size, _LARGEST), 0).decode().split("\n"))
    except (OSError, ValueError):
        return


def _in_frames(code: CodeType) -> Iterator[Lines]:
    """Texts in variables of the running frames: of who gave one to `exec`, of `%%time` and its kin."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        for value in tuple(frame.f_locals.values()):
            if type(value) is str and f"def {code.co_name}" in value and len(value) < _LARGEST:
                lines = tuple(value.split("\n"))
                if defined(lines, code) is not None:
                    yield lines
        frame = frame.f_back
