"""Numbers that a person gives as options: refused by name where they can mean nothing."""

from __future__ import annotations

import math
import operator
from typing import Any

from .tile_error import OptionError


def whole_option(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`. Raises `OptionError` for any other value."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        reach = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise OptionError(
            "{name} cannot be {value}", name=name, value=repr(value), expected=f"a whole number {reach}"
        )
    return number


def seconds_option(name: str, value: Any, *, or_none: bool = False) -> float:
    """A time in seconds above zero (0 too with `or_none`: none). Raises `OptionError` for any other value."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (0 < number < math.inf or (or_none and number == 0)):
        raise OptionError(
            "{name} cannot be {value}", name=name, value=repr(value),
            expected="a number of seconds above 0" + (", or 0 for no limit" if or_none else ""),
        )  # fmt: skip
    return number


def flag_option(name: str, value: Any) -> bool:
    """True or False. Raises `OptionError` for any other value, which would count as one of them."""
    if not isinstance(value, bool):
        raise OptionError("{name} cannot be {value}", name=name, value=repr(value), expected="True or False")
    return value
