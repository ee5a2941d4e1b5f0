"""The names of a kernel while it is traced."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import LanguageError, Place, nearest
from ..language.tracing.builder import BodyFrame
from ..language.tracing.values import BufferView


class UnknownName(LanguageError):
    """A name that has no value anywhere."""


@dataclass(frozen=True)
class Binding:
    """A local name: its value, the body it was bound in, and how (`param`, `loop`, `ref` or `name`)."""

    value: Any
    frame: BodyFrame
    place: Place | None
    how: str = "name"


class Scope:
    """Locals over the function's closure, its module's globals, and the builtins.

    A name bound in a loop or branch of the running kernel ends with that body.
    """

    def __init__(self, function: Callable[..., Any], extra: dict[str, Any] | None = None) -> None:
        code: Any = function.__code__
        self.locals: dict[str, Binding] = {}
        self.outer: dict[str, Any] = dict(extra or {})
        for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=True):
            try:
                self.outer[name] = cell.cell_contents
            except ValueError:
                continue
        self.module: dict[str, Any] = getattr(function, "__globals__", {})
        self.ended: dict[str, Binding] = {}

    def lookup(self, name: str) -> Any:
        """The value of a name. Raises `LanguageError` when it has none, or has it no more."""
        found = self.locals.get(name)
        if found is not None:
            return found.value
        if name in self.ended:
            old = self.ended[name]
            tile = isinstance(old.value, BufferView)
            raise LanguageError(
                "{name} is bound inside a loop or branch that has ended",
                name=name,
                also=[("it is bound here", old.place)],
                hint="allocate the buffer before the block"
                if tile
                else "a value that outlives its block is kept in T.alloc_var, made before the block",
            )
        for space in (self.outer, self.module, vars(builtins)):
            if name in space:
                return space[name]
        return self._unknown(name)

    def _unknown(self, name: str) -> NoReturn:
        close = nearest(name, [*self.locals, *self.outer, *self.module], limit=1)
        raise UnknownName(
            "the name {name} is not defined", name=name, hint=f"did you mean {close[0]}?" if close else ""
        )

    def enclosing(self, name: str) -> Binding | None:
        """The binding of a name in the functions of the kernel around this one."""
        return None

    def bind(self, name: str, binding: Binding) -> None:
        self.locals[name] = binding
        self.ended.pop(name, None)

    def close(self, frame: BodyFrame) -> None:
        """Forget the names of a body that has ended."""
        for name in [name for name, each in self.locals.items() if each.frame is frame]:
            self.ended[name] = self.locals.pop(name)
