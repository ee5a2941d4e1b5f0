"""A kernel function's text together with what it needs from around itself, as the text of a module.

Names are followed from the function into helpers and macros. Modules become imports, constants their
literals, functions of the user's their text, in an order in which each stands before its use.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, cast

from ...errors import OptionError
from ...frontend.frames import is_users
from ...frontend.source import SourceFunction, source_of
from ..snapshot.reads import reads_of

_MISSING = object()
_FUTURE_ANNOTATIONS = 0x1000000


@dataclass(frozen=True)
class MadeFrom:
    """What a kernel was traced from: its Python function, what stood in its file, and its choices."""

    function: Any
    texts: Sequence[Sequence[str]] | None
    source: Mapping[str, Any]
    outputs: tuple[int, ...] = ()

    @property
    def text(self) -> SourceFunction:
        """The function in its text. `LanguageError` where that is gone."""
        given = {name: self.source[name] for name in ("text", "file", "first_line") if name in self.source}
        return source_of(self.function, given.get("text"), given.get("file"), given.get("first_line", 1),
                         kept=self.texts or ())  # fmt: skip


def module_text(made: MadeFrom) -> str:
    """The text of a module that defines the function as it stands now.

    Raises `OptionError` for a name whose value cannot be written, `LanguageError` for a text that is gone.
    """
    writer = _Writer()
    writer.function(made.function.__name__, made.function, made.text)
    return writer.text()


class _Writer:
    """Collects what a module has to hold."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._imports: dict[str, None] = {}
        self._values: list[str] = []
        self._functions: list[str] = []
        self._future = False
        self._compat = False

    def text(self) -> str:
        """The module: imports, values, functions."""
        self._imports["import tilebench"] = None
        names = sorted(
            line for line in self._imports if not line.startswith(("import tilebench", "from tile"))
        )
        ours = sorted(line for line in self._imports if line.startswith(("import tilebench", "from tile")))
        parts = ["from __future__ import annotations\n"] if self._future else []
        parts += ["import tilebench.compat\n\ntilebench.compat.install()\n"] if self._compat else []
        parts += ["\n".join(names) + "\n"] if names else []
        parts += ["\n".join(ours) + "\n"]
        parts += ["\n".join(self._values) + "\n"] if self._values else []
        return "\n".join(parts) + "".join("\n\n" + each for each in self._functions)

    def function(self, name: str, value: Any, source: SourceFunction) -> None:
        """Write a function behind all that it needs."""
        self._known[name] = value
        plain = getattr(value, "function", value)
        self._future = self._future or bool(plain.__code__.co_flags & _FUTURE_ANNOTATIONS)
        space = _space_of(plain)
        for needed in _needed(plain, source.node):
            found = space.get(needed, _MISSING)
            if found is not _MISSING:
                self._need(needed, found)
        text = textwrap.dedent(source.text).rstrip() + "\n"
        self._functions.append(text)
        if source.node.name != name:
            self._functions[-1] += f"\n\n{name} = {source.node.name}\n"

    def _need(self, name: str, value: Any) -> None:
        """Write what a name stands for."""
        if name in self._known:
            if self._known[name] is not value and self._known[name] != value:
                raise _refused(name, value, "two functions see different things by this name")
            return
        if getattr(builtins, name, _MISSING) is value:
            return
        self._known[name] = value
        literal = literal_of(value)
        plain = getattr(value, "function", value)
        if isinstance(value, ModuleType):
            self._module(name, value)
        elif literal is not None:
            self._values.append(f"{name} = {literal}")
        elif isinstance(plain, FunctionType) and is_users(plain.__code__.co_filename):
            self.function(name, value, source_of(plain, kept=_texts(value)))
        else:
            self._imported(name, value)

    def _module(self, name: str, value: ModuleType) -> None:
        self._compat = self._compat or type(value.__loader__).__module__.startswith("tilebench.compat")
        file = getattr(value, "__file__", None)
        if file is not None and is_users(file):
            raise _refused(name, value, "it is a module of yours, which another machine has not")
        plain = value.__name__ == name
        self._imports[f"import {name}" if plain else f"import {value.__name__} as {name}"] = None

    def _imported(self, name: str, value: Any) -> None:
        """A function or class of an installed package, by the shortest name that gives it."""
        own = str(getattr(value, "__module__", None) or "")
        called = str(getattr(value, "__name__", name))
        for module in ("tilebench", "tilebench.language", own):
            for attribute in (called, name):
                if module and self._gives(module, attribute, value):
                    as_ = "" if attribute == name else f" as {name}"
                    self._imports[f"from {module} import {attribute}{as_}"] = None
                    return
        raise _refused(name, value, "it is neither a constant nor a function of a package")

    def _gives(self, module: str, attribute: str, value: Any) -> bool:
        if module == "__main__":
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None and is_users(file):
            return False
        try:
            return getattr(importlib.import_module(module), attribute, _MISSING) is value
        except ImportError:
            return False


def literal_of(value: Any) -> str | None:
    """A value as Python text that gives it again; None where there is none."""
    if isinstance(value, str):  # a dtype of the language is one
        return repr(str(value))
    if value is None or type(value) in (bool, int, bytes):
        return repr(value)
    if type(value) is float:
        return repr(value) if value - value == 0 else f'float("{value}")'
    if type(value) in (tuple, list):
        parts = [literal_of(part) for part in value]
        inner = ", ".join(part for part in parts if part is not None)
        if None in parts:
            return None
        return f"[{inner}]" if type(value) is list else f"({inner}{',' if len(parts) == 1 else ''})"
    if type(value) is dict:
        pairs = [(literal_of(k), literal_of(v)) for k, v in cast("dict[Any, Any]", value).items()]
        if any(None in pair for pair in pairs):
            return None
        return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    return None


def _texts(value: Any) -> Sequence[Sequence[str]]:
    return getattr(value, "texts", None) or ()


def _space_of(function: Any) -> dict[str, Any]:
    """What names mean to a function: its module's, and what it closes over."""
    space = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            space[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return space


def _needed(function: Any, node: ast.FunctionDef) -> Iterator[str]:
    """The names that a function looks up as it is defined and as it runs."""
    reads = reads_of(function.__code__)
    for path in (*reads.globals, *reads.closure):
        yield path[0]
    heads: list[ast.AST] = [*node.decorator_list, *node.args.defaults]
    heads += [each for each in node.args.kw_defaults if each is not None]
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    heads += [each.annotation for each in every if each.annotation is not None]
    for head in heads:
        yield from (part.id for part in ast.walk(head) if isinstance(part, ast.Name))


def _refused(name: str, value: Any, why: str) -> OptionError:
    return OptionError(
        "{name} cannot be written to a file: {why}", name=name, why=why, found="{kind}",
        kind=f"a {type(value).__name__}", hint="pass it to the kernel function as a parameter",
    )  # fmt: skip
