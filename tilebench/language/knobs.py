"""Knobs: parameters of a kernel that carry the values worth trying."""

from __future__ import annotations

from typing import Any

from ..errors import OptionError


class Knob:
    """The domain of a parameter: `block_M: tilebench.Knob(64, 128, 256) = 128`.

    Takes the values one by one, or one range, list or tuple of them. As a default value
    (`block_M=tilebench.Knob(64, 128)`) its first value is the default. Sliders and sweeps walk the
    values in this order; a call may pass any other value too.
    """

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        if len(values) == 1 and isinstance(values[0], (range, list, tuple)):
            values = tuple(values[0])  # pyright: ignore[reportUnknownArgumentType]
        if not values:
            raise OptionError(
                "a knob needs at least one value", hint="Knob(64, 128, 256) or Knob(range(1, 5))"
            )
        if len(set(values)) != len(values):
            raise OptionError("a knob lists each value once", text=values, found="{text}")
        self.values: tuple[Any, ...] = values

    @property
    def default(self) -> Any:
        """The first value."""
        return self.values[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Knob) and other.values == self.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"Knob({', '.join(map(repr, self.values))})"


def knob(*values: Any) -> Knob:
    """`T.knob(64, 128, 256)`: the same as `tilebench.Knob`."""
    return Knob(*values)
