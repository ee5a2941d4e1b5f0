"""What a function's code may look up around itself, read from its bytecode: names and their attributes."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import cast

_FUTURE_ANNOTATIONS = 0x1000000
# Instructions that take a name from the module (or, in the body of a class, maybe from there).
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_CLOSURE = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


@dataclass(frozen=True)
class Reads:
    """Paths such as `("config", "BLOCK")` by where their first name is looked up, and imported modules."""

    globals: tuple[tuple[str, ...], ...]
    closure: tuple[tuple[str, ...], ...]
    imports: tuple[str, ...]


@lru_cache(maxsize=512)
def reads_of(code: CodeType) -> Reads:
    """What a code object, and those that are defined in it, may look up."""
    names: dict[tuple[str, ...], None] = {}
    cells: dict[tuple[str, ...], None] = {}
    imports: dict[str, None] = {}
    stack = [code]
    while stack:
        inner = stack.pop()
        for kind, path in _paths(inner):
            if kind in _GLOBAL:
                names[path] = None
            elif path[0] in code.co_freevars:
                cells[path] = None
        for name in _annotated(inner) if inner.co_flags & _FUTURE_ANNOTATIONS else ():
            (cells if name in code.co_freevars else names)[name,] = None
        imports |= dict.fromkeys(_imports(inner))
        stack += [each for each in inner.co_consts if isinstance(each, CodeType)]
    return Reads(tuple(names), tuple(cells), tuple(imports))


def _paths(code: CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each look-up of a name with the attributes that are taken of it at once, and its instruction."""
    kind, path = "", ()
    for step in dis.get_instructions(code):
        if step.opname == "EXTENDED_ARG":
            continue
        if path and step.opname in _ATTRIBUTE:
            path = (*path, str(step.argval))
            continue
        if path:
            yield kind, path
        starts = step.opname in _GLOBAL or step.opname in _CLOSURE
        kind, path = step.opname, (str(step.argval),) if starts else ()


def _imports(code: CodeType) -> Iterator[str]:
    """The modules that the code itself imports; a relative one with its dots."""
    level = 0
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_CONST" and isinstance(step.argval, int):
            level = step.argval
        elif step.opname == "IMPORT_NAME":
            yield "." * level + str(step.argval)


def _annotated(code: CodeType) -> Iterator[str]:
    """The names in annotations that `from __future__ import annotations` leaves as text."""
    for const in code.co_consts:
        for text in cast(tuple[object, ...], const if isinstance(const, tuple) else (const,)):
            if isinstance(text, str):
                try:
                    yield from compile(text, "<annotation>", "eval", dont_inherit=True).co_names
                except (SyntaxError, ValueError):
                    continue
