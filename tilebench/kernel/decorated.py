"""What `jit` decorates: a plain function. Anything else is told apart, with what to write instead."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from ..errors import ArgumentError, Place
from ..frontend.frames import is_users, place_of
from ..frontend.texts import shown_name
from ..language.annotations import PrimFunc

_ORDER = "put @{name} above @tilebench.jit: jit comes next to the function"
# A kind of object, what it is called, and what to write instead.
_KINDS: tuple[tuple[Any, str, str], ...] = (
    (staticmethod, "a static method", _ORDER.format(name="staticmethod")),
    (classmethod, "a class method", "take @classmethod away: the class would be a parameter of the kernel"),
    (property, "a property", "decorate a function outside the class"),
    (
        PrimFunc,
        "a @T.prim_func",
        "define a function with @tilebench.jit that defines this one and returns it",
    ),
    (functools.partial, "a functools.partial", "decorate its function, and give the arguments in the call"),
    (type, "a class", "decorate a function"),
)


def check_decorated(function: Any) -> None:
    """Raise `ArgumentError` for what is no plain function, at its line or at that of the decorator."""
    if isinstance(function, (FunctionType, MethodType)):
        what, hint = _kind_of_function(function)
        if what:
            raise ArgumentError(
                "jit decorates a plain function, and {name} is {what}",
                name=function.__name__, what=what, hint=hint,
                at=Place(shown_name(function.__code__.co_filename), function.__code__.co_firstlineno),
            )  # fmt: skip
        return
    what, hint = _kind_of_object(function)
    raise ArgumentError("jit decorates a function, found {what}", what=what, hint=hint, at=users_line())


def _kind_of_function(function: Callable[..., Any]) -> tuple[str, str]:
    """What a function is that cannot be a kernel function, with a cure; empty for a plain one."""
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        return "an async function", "write `def`: nothing is waited for while a kernel is made"
    if inspect.isgeneratorfunction(function):
        return "a generator", "return the @T.prim_func instead of yielding"
    if function.__name__ == "<lambda>":
        return "a lambda", "write a `def` with the @T.prim_func in it"
    return "", ""


def _kind_of_object(given: Any) -> tuple[str, str]:
    for kind, what, hint in _KINDS:
        if isinstance(given, kind):
            return what, hint
    name = type(given).__name__
    if hasattr(given, "_kept") and hasattr(given, "using"):
        return (
            f"the kernel function {given.name}",
            "it is one already; other choices are .using(target=..., ...)",
        )
    if hasattr(given, "__wrapped__"):
        return (
            f"a function inside a {name}",
            "put @tilebench.jit next to the function, under other decorators",
        )
    if inspect.isbuiltin(given) or not hasattr(given, "__dict__"):
        return f"{given!r}" if not callable(
            given
        ) else f"the built-in {name}", "a kernel is read from Python text"
    return f"an object of class {name}", "decorate a function outside the class, and pass the object to it"


def users_line() -> Place | None:
    """The user's line that is running."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return place_of((frame.f_code, frame.f_lasti), None)
        frame = frame.f_back
    return None
