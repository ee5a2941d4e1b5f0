"""Choices of a schedule by their names, as controls and sweeps spell them: `threads`, `ko.num_stages`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OptionError, ScheduleError, nearest
from .options import OPTIONS, offered
from .value import Schedule

# The value of a choice that overrides nothing.
AS_WRITTEN = "as written"


def is_choice(name: str) -> bool:
    """Whether a name is spelt as one of a schedule's choices."""
    return "." in name or name in OPTIONS["kernel"]


def _kind_of(option: str, value: Any) -> str | None:
    """What an option is of: of several kinds, as `instruction`, the first to which the value is legal."""
    kinds = [kind for kind, options in OPTIONS.items() if option in options]
    for kind in kinds[:-1]:
        try:
            OPTIONS[kind][option].accept(value)
        except ValueError:
            continue
        return kind
    return kinds[-1] if kinds else None


def choices_schedule(choices: Mapping[str, Any], known: Sequence[str] = ()) -> Schedule:
    """The schedule that names like `threads`, `ko.num_stages`, `A_s.swizzle` choose.

    Raises `OptionError` for an option that there is not, `ScheduleError` for a value that is not legal alone.
    """
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    kernel: dict[str, Any] = {}
    for name, value in choices.items():
        if value == AS_WRITTEN:
            continue
        address, _, option = name.rpartition(".")
        kind = _kind_of(option, value)
        if kind is None or (kind == "kernel") != (address == ""):
            others = [f"NAME.{option}" for kind in OPTIONS if kind != "kernel" for option in offered(kind)]
            names = list(dict.fromkeys([*known, *offered("kernel"), *others]))
            close = nearest(name, names, limit=1)
            raise OptionError(
                "there is nothing called {name} to choose", name=name,
                hint=(f"did you mean {close[0]}? " if close else "") + "there are " + ", ".join(names),
            )  # fmt: skip
        if kind == "kernel":
            kernel[option] = value
        else:
            tables.setdefault(kind, {}).setdefault(address, {})[option] = value
    try:
        return Schedule.of(**kernel, **tables)  # pyright: ignore[reportArgumentType]
    except ScheduleError as error:
        error.also = ()
        raise
