"""What a kernel function takes from outside itself, as it stood when the function was traced.

A snapshot holds the values that names, attributes of modules, closures and defaults had, and the contents of
what can change: lists, dicts, sets, arrays, objects and classes of the user's. Functions of the user's are
followed into what they see in turn; those of installed packages are taken to give the same for the same
arguments. What cannot be known (a random number, a file, the state of a library's object) is named in
`unknown`: such a function has to be traced again each time.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import repeat
from operator import is_
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, cast

from ...frontend.frames import is_users
from .contents import MISSING, is_impure, is_library, visit_contents
from .exact import same, token
from .reads import Reads, reads_of

# Objects that one snapshot follows; a configuration that drags a model along is not walked to its end.
MOST_OBJECTS = 2000
# Python's functions that look where no argument says.
_BLIND = {
    builtins.eval, builtins.exec, builtins.globals, builtins.input, builtins.locals, builtins.open,
    builtins.vars, builtins.__import__,
}  # fmt: skip


class Outside:
    """A snapshot of what functions and objects depend on. `unknown` names what could not be followed."""

    def __init__(self, roots: Iterable[object]) -> None:
        self.unknown: list[str] = []
        # Each says whether one thing is still as it was.
        self.checks: list[Callable[[], bool]] = []
        # The objects themselves, so that no other can take the number of one.
        self._seen: dict[int, object] = {}
        self.visit_all(roots, "an argument")

    def holds(self) -> bool:
        """Whether all of it still stands as it did."""
        for check in self.checks:  # noqa: SIM110  -- a generator doubles the time, and each look-up asks
            if not check():
                return False
        return True

    def visit(self, value: Any, name: str) -> None:
        """Follow a value that the name led to, once."""
        if id(value) in self._seen or token(value) is not None:
            return
        if len(self._seen) > MOST_OBJECTS:
            self.unknown = self.unknown or [name]
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            self._function(value, name)
        elif isinstance(value, BuiltinFunctionType):
            self._builtin(value, name)
        else:
            visit_contents(self, value, name)

    def visit_all(self, values: Iterable[Any], name: str) -> None:
        """Follow several values that one name led to."""
        for value in values:
            self.visit(value, name)

    def check_names(self, space: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """The values that names have in a module, a class or an object."""
        look = space.get
        values = tuple(map(look, names, repeat(MISSING)))

        def check() -> bool:
            if all(map(is_, map(look, names, repeat(MISSING)), values)):
                return True
            return all(map(same, map(look, names, repeat(MISSING)), values))

        if names:
            self.checks.append(check)

    def _function(self, function: FunctionType, name: str) -> None:
        if not is_users(function.__code__.co_filename):
            if is_impure(function.__module__):
                self.unknown.append(name)
            return
        code, defaults = function.__code__, function.__defaults__
        self.checks.append(lambda: function.__code__ is code and function.__defaults__ is defaults)
        self.visit_all((defaults, function.__kwdefaults__, vars(function) or None), name)
        reads = reads_of(code)
        self._globals(function.__globals__, reads)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for path in reads.closure:
            cell = cells[path[0]]
            value = _content(cell)
            self.checks.append(partial(_cell_holds, cell, value))
            if value is not MISSING:
                self._path(value, path)

    def _globals(self, space: dict[str, Any], reads: Reads) -> None:
        self.check_names(space, tuple(dict.fromkeys(path[0] for path in reads.globals)))
        known = vars(builtins)
        for path in reads.globals:
            self._path(space.get(path[0], known.get(path[0])), path)
        for name in reads.imports:
            module = sys.modules.get(name)
            if module is None or is_impure(name):
                self.unknown.append(name)
            self.visit(module, name)

    def _path(self, value: Any, path: tuple[str, ...]) -> None:
        """Follow attributes through modules to what a function takes from them."""
        name = ".".join(path)
        for attribute in path[1:]:
            if not isinstance(value, ModuleType):
                if self._constant_of(value, attribute):
                    return
                break
            if value.__name__.startswith("tilebench."):
                return
            if is_impure(value.__name__):
                self.unknown.append(name)
            self.check_names(vars(value), (attribute,))
            value = vars(value).get(attribute)
        self.visit(value, name)

    def _constant_of(self, value: Any, attribute: str) -> bool:
        """Whether an attribute is all that counts: the shape or dtype of an array, a limit of a dtype."""
        if not is_library(value.__class__):
            return False
        found: Any = getattr(value, attribute, None)
        if found is None or not all(token(part) is not None for part in _parts(found)):
            return False
        self.checks.append(lambda: _same_parts(getattr(value, attribute, None), found))
        return True

    def _builtin(self, function: BuiltinFunctionType, name: str) -> None:
        owner = function.__self__
        if function in _BLIND or (isinstance(owner, ModuleType) and is_impure(owner.__name__)):
            self.unknown.append(name)
        elif not isinstance(owner, ModuleType):
            self.visit(owner, name)


def _parts(value: Any) -> tuple[Any, ...]:
    return cast(tuple[Any, ...], value) if isinstance(value, tuple) else (value,)


def _same_parts(one: Any, other: Any) -> bool:
    return len(_parts(one)) == len(_parts(other)) and all(map(same, _parts(one), _parts(other)))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


def _cell_holds(cell: CellType, value: Any) -> bool:
    return same(_content(cell), value)
