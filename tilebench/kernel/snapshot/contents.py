"""What objects hold, for a snapshot: containers, arrays, modules, classes and objects of the user's."""

from __future__ import annotations

import functools
import sys
from collections import ChainMap, deque
from collections.abc import Callable, Collection, Mapping
from operator import is_
from types import MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...frontend.frames import is_ours, is_users
from .exact import digest, same

if TYPE_CHECKING:
    from .outside import Outside

MISSING: Any = object()
# Modules whose functions give something else each time.
_IMPURE = {"datetime", "io", "numpy.random", "os", "posix", "random", "secrets", "subprocess", "time", "uuid"}
# Types and modules of types whose objects say nothing about a kernel's numbers.
_INERT = {
    "_abc._abc_data", "_io.TextIOWrapper", "_thread.RLock", "_thread.lock", "builtins.classmethod_descriptor",
    "builtins.getset_descriptor", "builtins.member_descriptor", "builtins.method_descriptor",
    "builtins.wrapper_descriptor", "logging.Logger", "types.GenericAlias", "types.UnionType",
}  # fmt: skip
_INERT_MODULES = {"dataclasses", "typing"}
_HEAP_TYPE = 1 << 9


def visit_contents(outside: Outside, value: Any, name: str) -> None:
    """Add to the snapshot what an object that is no function holds."""
    for kinds, visit in _VISITS:
        if isinstance(value, kinds):
            visit(outside, value, name)
            return
    _object(outside, value, name)


def _parts(*attributes: str) -> Callable[[Outside, Any, str], None]:
    """A visit to attributes that never change."""

    def visit(outside: Outside, value: Any, name: str) -> None:
        outside.visit_all((getattr(value, attribute) for attribute in attributes), name)

    return visit


def _tuple(outside: Outside, values: Collection[Any], name: str) -> None:
    outside.visit_all(values, name)
    _state(outside, values, name)


def _list(outside: Outside, values: Collection[Any], name: str) -> None:
    kept = tuple(values)
    outside.checks.append(lambda: _same_in_order(values, kept))
    outside.visit_all(kept, name)
    _state(outside, values, name)


def _mapping(outside: Outside, values: Mapping[Any, Any], name: str) -> None:
    keys, kept = tuple(values), tuple(values.values())
    outside.checks.append(lambda: _same_in_order(values, keys) and _same_in_order(values.values(), kept))
    outside.visit_all((*keys, *kept), name)
    _state(outside, values, name)


def _same_in_order(now: Collection[Any], kept: tuple[Any, ...]) -> bool:
    return len(now) == len(kept) and (all(map(is_, now, kept)) or all(map(same, now, kept)))


def _array(outside: Outside, array: np.ndarray[Any, Any], name: str) -> None:
    if array.dtype.hasobject:
        outside.unknown.append(name)
        return
    kept = digest(array)
    outside.checks.append(lambda: digest(array) == kept)


def _bytes(outside: Outside, data: Any, _: str) -> None:
    kept = bytes(data)
    outside.checks.append(lambda: bytes(data) == kept)


def _module(outside: Outside, module: ModuleType, name: str) -> None:
    """A module as a whole; one of a library stays as it is."""
    file = getattr(module, "__file__", None)
    if file is not None and is_users(file):
        names = tuple(key for key in vars(module) if not key.startswith("__"))
        outside.check_names(vars(module), names)
        outside.visit_all([vars(module)[key] for key in names], name)


def _class(outside: Outside, cls: type, name: str) -> None:
    if is_library(cls):
        if is_impure(cls.__module__):
            outside.unknown.append(name)
        return
    for base in cls.__mro__:
        if not is_library(base):
            outside.check_names(vars(base), tuple(vars(base)))
            outside.visit_all(tuple(vars(base).values()), name)


def _state(outside: Outside, value: object, name: str) -> None:
    """The attributes of an object of the user's, and what its class gives them."""
    cls = value.__class__
    if is_library(cls):
        return
    outside.visit(cls, name)
    if hasattr(value, "__dict__"):
        outside.visit(vars(value), name)
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            kept = getattr(value, slot, MISSING)
            outside.checks.append(functools.partial(_slot_holds, value, slot, kept))
            outside.visit(kept, name)


def _slot_holds(value: object, slot: str, kept: object) -> bool:
    return same(getattr(value, slot, MISSING), kept)


def _object(outside: Outside, value: Any, name: str) -> None:
    """An object of a class that is none of those below."""
    cls: type = value.__class__
    inner = getattr(value, "__wrapped__", None)
    if inner is not None:
        outside.visit(inner, name)  # what a cache or a decorator wraps; a jit function too
    elif cls.__module__.startswith("tilebench."):
        outside.visit(getattr(value, "function", None), name)
    elif not is_library(cls):
        _state(outside, value, name)
    elif (
        value is not MISSING
        and f"{cls.__module__}.{cls.__qualname__}" not in _INERT
        and cls.__module__ not in _INERT_MODULES
    ):
        outside.unknown.append(name)


_VISITS: tuple[tuple[Any, Callable[[Outside, Any, str], None]], ...] = (
    (ModuleType, _module), (type, _class), (MethodType, _parts("__func__", "__self__")),
    (functools.partial, _parts("func", "args", "keywords")), (property, _parts("fget")),
    (functools.cached_property, _parts("func")), ((staticmethod, classmethod), _parts("__func__")),
    ((tuple, frozenset), _tuple), ((list, set, deque), _list),
    ((dict, MappingProxyType, ChainMap), _mapping), (SimpleNamespace, _parts("__dict__")),
    (np.ndarray, _array), ((bytearray, memoryview), _bytes),
)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def is_library(cls: type) -> bool:
    """Whether a class is Python's, an installed package's or ours, rather than the user's."""
    if cls.__module__ == "builtins":
        return not cls.__flags__ & _HEAP_TYPE  # a class that `exec` made has no module either
    if cls.__module__ == "__main__":
        return False
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file is not None and (is_ours(file) or not is_users(file))


def is_impure(module: str | None) -> bool:
    """Whether what a module's functions give cannot be known from their arguments."""
    return module is not None and (module in _IMPURE or module.startswith("numpy.random."))
