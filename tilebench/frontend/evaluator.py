"""What evaluating any node of a kernel takes: places, dispatch, calls, and errors at the user's line."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from .. import language
from ..errors import InternalError, LanguageError, Place, TileError, nearest
from ..language.tracing.builder import Builder
from ..language.tracing.expressions import Value
from ..language.tracing.kinds import Tile
from ..settings import raise_raw
from .frames import chained, innermost, is_ours, running_steps, users_steps
from .scope import Scope
from .source import SourceFunction

# What expressions the language has not, and what to do instead.
REFUSED: dict[type, tuple[str, str]] = {
    ast.NamedExpr: ("the language has no `:=`", "assign on a line of its own"),
    ast.Await: ("the language has no `await`", ""),
    ast.Yield: ("the language has no `yield`", ""),
    ast.YieldFrom: ("the language has no `yield`", ""),
}
# Python's functions of numbers that mean a word of the language when a value is traced.
TRACED_BUILTINS: dict[Any, str] = {
    builtins.min: "min",
    builtins.max: "max",
    builtins.abs: "abs",
    builtins.pow: "pow",
}
_BUILTIN = type(len)
# Where Python's operators and calls are applied to what the user wrote: an exception from there is
# the user's, from elsewhere in the package it is ours.
_APPLYING = {
    str(Path(__file__).with_name(name)) for name in ("evaluator.py", "expressions.py", "assignments.py")
}


class Evaluator:
    """Evaluates one function. `current` is the node being evaluated: the place of what is emitted."""

    handlers: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}

    def __init__(self, source: SourceFunction, scope: Scope, builder: Builder) -> None:
        self.source = source
        self.scope = scope
        self.builder = builder
        self.current: Any = source.node
        self.native = 0
        # Where a macro is called; None for the kernel itself.
        self.caller: Place | None = None
        self.places: dict[int, Place] = {}
        builder.locate = self.locate

    # -- places and errors
    def place(self, node: Any) -> Place:
        """The place of a node; nodes live as long as the trace, so their identity is a key."""
        found = self.places.get(id(node))
        if found is None:
            found = self.places[id(node)] = self.source.place(node, self.caller)
        return found

    def locate(self) -> Place:
        """Where the trace stands: in the kernel, or in a helper called from it."""
        base = self.place(self.current)
        if not self.native:
            return base
        return chained(running_steps(Evaluator.invoke.__code__), base) or base

    def refuse(self, node: Any, what: str, hint: str = "", /, **values: Any) -> NoReturn:
        raise LanguageError(what, at=self.place(node), hint=hint, **values)

    def placed(self, node: Any, error: TileError) -> TileError:
        """The error, at the user's innermost line that it comes from."""
        if error.place is None:
            error.place = chained(users_steps(error.__traceback__), self.place(node))
        return error

    def foreign(self, node: Any, error: Exception) -> TileError:
        """An exception of Python's own as an error at the user's line; of ours, as an internal one."""
        place = chained(users_steps(error.__traceback__), self.place(node))
        if isinstance(error, RecursionError):
            return LanguageError(
                "this calls itself without end, or is nested too deeply",
                at=place,
                hint="a helper that calls itself ends on a value known to Python; parts of a deep expression"
                " get names of their own",
            )
        if "does not support ufuncs" in str(error):
            return LanguageError(
                "NumPy's functions take numbers; this value is known only when the kernel runs", at=place,
                hint="functions of elements are words of the language: T.exp, T.sqrt, T.max and others",
            )  # fmt: skip
        raised_in = innermost(error.__traceback__)
        text = str(error) or "no message"
        if (
            raised_in is not None
            and is_ours(raised_in.co_filename)
            and raised_in.co_filename not in _APPLYING
        ):
            if raise_raw():
                raise error
            return InternalError("{kind}: {text}", at=place, kind=type(error).__name__, text=text)
        return LanguageError("{kind}: {text}", at=place, kind=type(error).__name__, text=text)

    # -- dispatch
    def expr(self, node: ast.expr) -> Any:
        """The value of an expression: a Python object, or a traced value."""
        handler = self.handlers.get(type(node))
        if handler is None:
            what, hint = REFUSED.get(type(node), ("the language has no such expression", ""))
            self.refuse(node, what, hint)
        try:
            return handler(self, node)
        except TileError as error:
            raise self.placed(node, error) from error.__cause__
        except Exception as error:
            raise self.foreign(node, error) from error

    # -- calls
    def invoke(self, function: Any, args: list[Any], keys: dict[str, Any]) -> Any:
        """Call a function; one that is the user's own is Python's to run, on traced values."""
        if function.__class__ is _BUILTIN and any(isinstance(each, (Value, Tile)) for each in args):
            word = TRACED_BUILTINS.get(function)
            if word is not None:
                return getattr(language, word)(*args, **keys)
            if function is builtins.print:
                raise LanguageError(
                    "print() runs while the kernel is compiled, and has no values of the running kernel",
                    hint="T.print(x) prints them; print() is for what Python knows, a shape or a parameter",
                )
        module = getattr(function, "__module__", None) or ""
        if module.startswith("tilebench."):
            try:
                return function(*args, **keys)
            except TypeError as error:
                self.misfit(function, keys, error)
                raise
        self.native += 1
        try:
            return function(*args, **keys)
        finally:
            self.native -= 1

    def misfit(self, function: Any, keys: dict[str, Any], error: TypeError) -> None:
        """Say which argument a word does not have, when it is the call itself that failed."""
        trace = error.__traceback__
        if trace is None or trace.tb_next is not None or not hasattr(function, "__code__"):
            return
        known = list(inspect.signature(function).parameters)
        unknown = [each for each in keys if each not in known]
        if unknown:
            close = nearest(unknown[0], known, limit=1)
            raise LanguageError(
                "T.{word} has no argument {name}",
                word=function.__name__,
                name=unknown[0],
                known=", ".join(known),
                hint=f"did you mean {close[0]}=?" if close else "known: {known}",
            ) from None
        raise LanguageError("T.{text}", text=error) from None
