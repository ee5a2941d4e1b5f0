"""Values as plain data: what JSON can hold, the same for files, pages and keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_PLAIN = frozenset({str, int, float, bool, type(None)})


@lru_cache(maxsize=256)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def to_plain(value: Any) -> Any:
    """Dataclasses to dicts, tuples to lists: what JSON can hold, but for NaN and infinities."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    # Nearly all of a record is numbers of lines in tuples: a slider waits for them.
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [each if type(each) in _PLAIN else to_plain(each) for each in value]
    if isinstance(value, str):  # a dtype of the language is one, and a dataclass too
        return str(value)
    if names := _names(kind):
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        return [to_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    # A parameter of a kernel may be anything: a function, a dtype, a NumPy number.
    item = getattr(value, "item", None) if getattr(value, "shape", None) == () else None
    return str(value) if item is None else to_plain(item())
