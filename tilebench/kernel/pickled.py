"""Kernel functions and kernels through `pickle`: to another process, into a file, to a pool of workers.

A kernel function of a module goes by its name, as Python's functions do. One of a notebook, a script or
another function goes by value (with cloudpickle), and its text with it. A kernel goes as its tile stage with
the choices that made it, and is compiled again where it arrives, or found in the compile cache.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import threading
from typing import TYPE_CHECKING, Any

from ..targets import resolve_machine

if TYPE_CHECKING:
    from ..frontend import Traced
    from .function import JitFunction
    from .kernel import Kernel

_running = threading.local()


def reduce_function(function: JitFunction) -> tuple[Any, tuple[Any, ...]]:
    """What `pickle` keeps of a kernel function. Raises `PicklingError` where it cannot go by value."""
    plain = function.function
    changes = {
        name: getattr(function, name) for name in ("target", "schedule", "out_idx", "source", "options")
    }
    if plain.__module__ != "__main__":
        home = _named(plain.__module__, plain.__qualname__)
        if getattr(home, "function", None) is plain:
            changed = {name: value for name, value in changes.items() if value != getattr(home, name)}
            return _function_by_name, (plain.__module__, plain.__qualname__, changed)
    # cloudpickle leaves the file's name out of the code.
    changes["source"] = {"file": plain.__code__.co_filename, **function.source}
    return _function_by_value, (type(function), _by_value(plain), changes, function.texts)


def _named(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None


def _by_value(function: Any) -> bytes:
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        raise pickle.PicklingError(
            f"{function.__qualname__} is in no module that another process could import: move it into one, or"
            " install cloudpickle"
        ) from None
    running: set[Any] = _running.__dict__.setdefault("functions", set())
    if function in running:
        raise pickle.PicklingError(
            f"{function.__qualname__} is in no module and names itself: move it into a module"
        )
    running.add(function)
    try:
        return cloudpickle.dumps(function)
    finally:
        running.discard(function)


def _function_by_name(module: str, name: str, changes: dict[str, Any]) -> JitFunction:
    found = _named(module, name)
    if not hasattr(found, "using"):
        raise pickle.UnpicklingError(f"there is no kernel function {name} in {module}")
    return found.using(**changes) if changes else found


def _function_by_value(
    cls: type[JitFunction], function: bytes, changes: dict[str, Any], texts: Any
) -> JitFunction:
    return cls(pickle.loads(function), texts=texts, **changes)  # noqa: S301 - it is in a pickle itself


def reduce_kernel(kernel: Kernel) -> tuple[Any, tuple[Any, ...]]:
    """What `pickle` keeps of a kernel: the text that it starts from, or its trace, and the choices."""
    sizes = dict(kernel.sizes)
    if kernel.recipe is not None:
        return _kernel_by_recipe, (*kernel.recipe, sizes)
    traced = kernel.calls.traced
    return _kernel, (type(kernel), traced, kernel.target, kernel.schedule, kernel.outputs, sizes)


def _kernel(
    cls: type[Kernel], traced: Traced, target: str, schedule: Any, outputs: Any, sizes: dict[str, Any]
) -> Kernel:
    return cls(traced, *resolve_machine(target), schedule, out_idx=outputs).at(sizes)


def _kernel_by_recipe(make: Any, arguments: tuple[Any, ...], sizes: dict[str, Any]) -> Kernel:
    return make(*arguments).at(sizes)
