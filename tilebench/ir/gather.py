"""A folder of modules as a registry: the rows that each module holds, read once."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any, TypeVar

from ..errors import InternalError

Row = TypeVar("Row")


def gathered(package: str, folder: Iterable[str], name: str, kind: type[Row]) -> tuple[Row, ...]:
    """The rows named `name` of every module of a package, in the order of the modules' names.

    `folder` is the package's `__path__`. Raises `InternalError` for a module that holds no tuple of
    `kind` under that name: a row that nobody finds would be a silent gap.
    """
    rows: list[Row] = []
    for module_name in sorted(found.name for found in pkgutil.iter_modules(folder)):
        module = importlib.import_module(f"{package}.{module_name}")
        value: Any = getattr(module, name, None)
        if not isinstance(value, tuple) or not value or not all(isinstance(row, kind) for row in value):  # pyright: ignore[reportUnknownVariableType]
            raise InternalError(
                "the module {module} holds no {name}, a tuple of {kind}",
                module=module.__name__, name=name, kind=kind.__name__,
            )  # fmt: skip
        rows += value
    return tuple(rows)
