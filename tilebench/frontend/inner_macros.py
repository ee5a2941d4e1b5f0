"""Macros that are defined inside a kernel: what Python never runs has no function of Python's."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

from ..language.tracing.builder import in_trace
from .scope import Binding, Scope

if TYPE_CHECKING:
    from .evaluator import Evaluator

_KINDS = inspect.Parameter


class InnerScope(Scope):
    """The names of a function inside another one: its own, then those around it, as they are then."""

    def __init__(self, around: Scope) -> None:
        self.locals = {}
        self.outer, self.module = around.outer, around.module
        self.ended = {}
        self.around = around

    def lookup(self, name: str) -> Any:
        if name in self.locals or name in self.ended:
            return super().lookup(name)
        return self.around.lookup(name)

    def enclosing(self, name: str) -> Binding | None:
        return self.around.locals.get(name) or self.around.enclosing(name)


class InnerMacro:
    """A `@T.macro` of the kernel's own text; `notes` are the values of its annotations."""

    def __init__(self, node: ast.FunctionDef, around: Evaluator) -> None:
        self.node = node
        self.around = around
        self.__name__ = node.name
        self.signature = inspect.Signature(_parameters(node.args, around))
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        self.notes = {
            each.arg: around.expr(each.annotation) for each in arguments if each.annotation is not None
        }

    def __call__(self, *args: Any, **keys: Any) -> Any:
        return in_trace(f"the macro {self.__name__}").inline(self, args, keys)

    def __repr__(self) -> str:
        return f"the macro {self.__name__}"


def _parameters(given: ast.arguments, around: Evaluator) -> list[inspect.Parameter]:
    """A signature as Python would make it, defaults evaluated at the definition."""
    ordered = [(each, _KINDS.POSITIONAL_ONLY) for each in given.posonlyargs]
    ordered += [(each, _KINDS.POSITIONAL_OR_KEYWORD) for each in given.args]
    filled = [None] * (len(ordered) - len(given.defaults)) + list(given.defaults)
    out = [
        _parameter(each, kind, default, around) for (each, kind), default in zip(ordered, filled, strict=True)
    ]
    if given.vararg is not None:
        out.append(_KINDS(given.vararg.arg, _KINDS.VAR_POSITIONAL))
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        out.append(_parameter(each, _KINDS.KEYWORD_ONLY, default, around))
    if given.kwarg is not None:
        out.append(_KINDS(given.kwarg.arg, _KINDS.VAR_KEYWORD))
    return out


def _parameter(node: ast.arg, kind: Any, default: ast.expr | None, around: Evaluator) -> inspect.Parameter:
    return _KINDS(node.arg, kind, default=_KINDS.empty if default is None else around.expr(default))
