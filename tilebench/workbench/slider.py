"""One control of a workbench, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Slider:
    """One control: a parameter of the kernel function, or a choice of the schedule.

    `values` are legal alone and in the order of the slider. A schedule choice has `AS_WRITTEN` among
    its values: nothing overridden. A value of the call (`launch`) without a sweep has no `values`: it
    is typed.
    """

    name: str
    values: tuple[Any, ...]
    value: Any
    choice: bool = False
    launch: bool = False
