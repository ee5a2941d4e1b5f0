"""What a kernel function takes from outside itself: a constant of the module or cell may have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, cast

_PLAIN = (int, float, complex, str, bytes, bool, type(None))


@lru_cache(maxsize=512)
def _names(code: CodeType) -> tuple[str, ...]:
    """The global names that a code object, or one defined in it, may look up."""
    found: dict[str, None] = {}
    stack = [code]
    while stack:
        inner = stack.pop()
        found |= dict.fromkeys(inner.co_names)
        stack += [each for each in inner.co_consts if isinstance(each, CodeType)]
    return tuple(found)


def outside(function: Callable[..., Any]) -> tuple[Any, ...]:
    """The plain values and the helpers that a function sees around itself, as part of a key.

    Helpers count by their code and by what they see in turn. Modules, classes and other objects
    are left out: what they hold is not followed.
    """
    if not isinstance(function, FunctionType):
        return ()
    seen: set[int] = set()
    return tuple(_walk(function, seen))


def _walk(function: FunctionType, seen: set[int]) -> Iterator[Any]:
    if id(function) in seen:
        return
    seen.add(id(function))
    space = function.__globals__
    values = [(name, space[name]) for name in _names(function.__code__) if name in space]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values.append((name, cell.cell_contents))
        except ValueError:  # not bound yet
            continue
    for name, value in values:
        if isinstance(value, FunctionType):
            if not value.__module__.startswith("tilebench."):
                yield name, value.__code__
                yield from _walk(value, seen)
        elif isinstance(value, (*_PLAIN, tuple, list, dict)):
            plain = cast(Any, value)
            frozen = _frozen(plain)
            if frozen is not None:
                yield name, type(plain).__name__, frozen


def _frozen(value: Any) -> Any:
    """A hashable image of a plain value or a short container of them; None for anything else."""
    if isinstance(value, _PLAIN):
        return (value,)
    if isinstance(value, (tuple, list, dict)):
        container = cast(Any, value)
        parts: list[Any] = list(container.items() if isinstance(value, dict) else container)
        if len(parts) <= 256:
            return tuple((type(each).__name__, _frozen(each)) for each in parts)
    return None
