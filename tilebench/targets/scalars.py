"""What a launch passes besides arrays: the bits of scalars, and the grid that the sizes of a call give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from ..ir import Buffer, DType, Function, Var, walk
from ..ir.sizes import Number, size_value
from ..language.scopes import MOST_BLOCKS
from ..machine import Machine
from ..passes.analysis.launches import launch_of

# Letters of `struct` for scalars; 16-bit floats travel as their bits.
LETTERS = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float16": "H", "bfloat16": "H", "float32": "f", "float64": "d",
}  # fmt: skip
_MOST_SHAPES = 256


def letters(function: Function) -> str:
    """A letter for each parameter: `P` for an array, that of `struct` for a scalar."""
    return "".join(["P" if isinstance(p, Buffer) else LETTERS[p.type.name] for p in function.params])


def bits_of(value: Number, dtype: DType) -> int:
    """The bytes of a value as its dtype stores it, as a number; little end first."""
    return int.from_bytes(dtype.numpy.type(value).tobytes(), "little")


class Words:
    """What a launch packs, in parameter order, of the arguments of a call and the addresses of its arrays."""

    def __init__(self, function: Function) -> None:
        self.arrays = [k for k, p in enumerate(function.params) if isinstance(p, Buffer)]
        # 16-bit floats travel as their bits.
        self.narrow = [
            (k, p.type) for k, p in enumerate(function.params)
            if isinstance(p, Var) and p.type.is_float and LETTERS[p.type.name] == "H"
        ]  # fmt: skip

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int]) -> Sequence[Any]:
        if len(pointers) == len(arguments):
            return pointers
        out = list(arguments)
        for k, pointer in zip(self.arrays, pointers, strict=True):
            out[k] = pointer
        for k, dtype in self.narrow:
            out[k] = bits_of(out[k], dtype)
        return out


class Grid:
    """The blocks of a launch, x first, from the arguments of a call in parameter order."""

    def __init__(self, function: Function, machine: Machine) -> None:
        launch = launch_of(function)
        self.sizes, self.most = launch.grid, machine.max_grid
        named = {
            part.name
            for size in launch.grid
            if not isinstance(size, int)
            for part in walk(size)
            if isinstance(part, Var)
        }
        self.scalars = [
            (k, p) for k, p in enumerate(function.params) if isinstance(p, Var) and p.name in named
        ]
        fixed = tuple(size for size in launch.grid if isinstance(size, int))
        # The grid of every launch; None where sizes decide it.
        self.constant = fixed if len(fixed) == len(launch.grid) else None
        self._known: dict[tuple[Any, ...], tuple[int, ...]] = {}

    def __call__(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Raises `ArgumentError` where the target has no such grid. A grid with a 0 runs nothing."""
        if self.constant is not None:
            return self.constant
        key = tuple([arguments[k] for k, _ in self.scalars])
        found = self._known.get(key)
        if found is None:
            values = {p.name: arguments[k] for k, p in self.scalars}
            found = tuple(max(0, size_value(size, values)) for size in self.sizes)
            self._check(found)
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            self._known[key] = found
        return found

    def _check(self, grid: tuple[int, ...]) -> None:
        for axis, (blocks, most) in enumerate(zip(grid, self.most, strict=False)):
            if blocks > most:
                raise ArgumentError(
                    "these sizes give {blocks} blocks in dimension {axis} of the grid", blocks=blocks,
                    axis=axis, most=most, expected="at most {most}",
                    hint="put the longest dimension first in T.Kernel, or use larger blocks",
                )  # fmt: skip
        if math.prod(grid) > MOST_BLOCKS:
            raise ArgumentError(
                "these sizes give {blocks} blocks", blocks=math.prod(grid), most=MOST_BLOCKS,
                expected="at most {most} in all", hint="use larger blocks",
            )  # fmt: skip
