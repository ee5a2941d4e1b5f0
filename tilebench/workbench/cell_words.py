"""What the text of a cell names: kernel functions with their parameters, loops, buffers, products.

It is asked while the cell is being typed, so the text need not be Python yet: it is looked through and not
parsed, but for the parameters of a kernel function, once their list is closed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KERNEL = re.compile(
    r"^[ \t]*@(?:\w+\.)?jit\b[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*def[ \t]+(\w+)[ \t]*\(", re.MULTILINE
)
_LOOP = re.compile(r"\bfor[ \t]+(\w+)[ \t]+in[ \t]+\w+\.(\w+)\(")
_BUFFER = re.compile(r"\b(\w+)[ \t]*=[ \t]*\w+\.alloc_shared\(")
_PRODUCT = re.compile(r"\b\w+\.gemm\(([^()]*(?:\([^()]*\)[^()]*)*)")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel function. `values` are those of its knob, `default` is its text or empty."""

    name: str
    default: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellWords:
    """The names of a cell, each in the order of the text."""

    kernels: Mapping[str, tuple[Parameter, ...]]
    pipelined: tuple[str, ...] = ()
    serial: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    products: tuple[str, ...] = ()


def cell_words(text: str) -> CellWords:
    """The names of a cell's text."""
    loops = _LOOP.findall(text)
    return CellWords(
        {found[1]: _parameters(text, found.end()) for found in _KERNEL.finditer(text)},
        _once(name for name, kind in loops if kind == "Pipelined"),
        _once(name for name, kind in loops if kind in ("serial", "Serial")),
        _once(_BUFFER.findall(text)),
        _once(name for words in _PRODUCT.findall(text) if (name := _accumulator(words))),
    )


def _once(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _accumulator(words: str) -> str:
    """The name by which a product is addressed: its label, or the tile that it adds to."""
    label = re.search(r"label[ \t]*=[ \t]*[\"'](\w+)", words)
    parts = [part.strip() for part in words.split(",")]
    return label[1] if label else parts[2] if len(parts) > 2 and parts[2].isidentifier() else ""


def _parameters(text: str, start: int) -> tuple[Parameter, ...]:
    """The parameters whose list begins behind a bracket; none while it is open."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return _parsed(text[start:at])
    return ()


def _parsed(words: str) -> tuple[Parameter, ...]:
    try:
        (function,) = ast.parse(f"def f({words}): pass").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    if not isinstance(function, ast.FunctionDef):
        return ()
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults: Sequence[ast.expr | None] = [None] * (len(plain) - len(given.defaults)) + given.defaults
    pairs = [*zip(plain, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    # An array of a call is none that the line could give.
    return tuple(_parameter(a, default) for a, default in pairs if not _is_array(a.annotation))


def _is_array(annotation: ast.expr | None) -> bool:
    return annotation is not None and "Tensor" in ast.unparse(annotation)


def _parameter(argument: ast.arg, default: ast.expr | None) -> Parameter:
    values = _knob(default) or _knob(argument.annotation)
    if default is None:
        return Parameter(argument.arg, "", values)
    first = values[0] if _knob(default) else ast.unparse(default)
    return Parameter(argument.arg, first, values)


def _knob(found: ast.expr | None) -> tuple[str, ...]:
    """The values of `Knob(64, 128)`, as text; a range is left to whoever runs the cell."""
    if not isinstance(found, ast.Call):
        return ()
    name = found.func.attr if isinstance(found.func, ast.Attribute) else getattr(found.func, "id", "")
    plain = all(isinstance(value, ast.Constant) for value in found.args)
    return tuple(ast.unparse(value) for value in found.args) if name in ("Knob", "knob") and plain else ()
