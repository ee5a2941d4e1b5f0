"""What files of TileLang's take from the compiler that it brings along: its names of expressions."""

from __future__ import annotations

from typing import Any

from ..language import Cast, Select, reinterpret
from ..language import max as Max
from ..language import min as Min
from ..language.tracing.expressions import Value as PrimExpr


def const(value: Any, dtype: str = "int32") -> PrimExpr:
    """A constant of a dtype."""
    return Cast(dtype, value)


def set_log_level(level: Any) -> None:
    """Taken, and without effect: what there is to say of a kernel is among its remarks."""


__all__ = ["Cast", "Max", "Min", "PrimExpr", "Select", "const", "reinterpret", "set_log_level"]
