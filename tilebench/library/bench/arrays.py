"""Where a work's arrays lie, how they are made, poisoned, and compared with what is right."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import TargetError
from ...ir.dtypes import dtype_of
from ...runtime.describe import dtype_name
from ...targets.devices import HOST
from .. import checking
from ..checking import Found
from ..definition import ArrayArgument
from .works import BenchWork

# What no result is: NaN of floats, of integers one number that is hardly ever right.
POISON, POISONED_INTEGER = float("nan"), 77


@dataclass(frozen=True)
class Space:
    """Arrays of one library on one device; `xp` is its module, NumPy or torch."""

    xp: Any
    device: str

    @property
    def on_host(self) -> bool:
        return self.device == HOST

    def default(self) -> contextlib.AbstractContextManager[object]:
        """In it, arrays that a formula makes lie on the device."""
        return contextlib.nullcontext() if self.xp is np else self.xp.device(self.device)

    def random(self, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        """Normal numbers, or any integers; a card's power, and so its clock, depends on them."""
        if not dtype_of(dtype).is_float:
            return self._integers(shape, dtype, seed)
        if self.xp is np:
            values: Any = np.random.default_rng(seed).standard_normal(shape, np.float32)
            return values.astype(dtype_of(dtype).numpy)
        generator = self.xp.Generator(self.device).manual_seed(seed)
        made = self.xp.randn(shape, generator=generator, device=self.device, dtype=self.xp.float32)
        return made.to(getattr(self.xp, dtype))

    def _integers(self, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        info = np.iinfo(dtype)
        if self.xp is np:
            return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)
        generator = self.xp.Generator(self.device).manual_seed(seed)
        kind = getattr(self.xp, dtype)
        return self.xp.randint(
            info.min, info.max + 1, shape, generator=generator, device=self.device, dtype=kind
        )

    def moved(self, values: Any) -> Any:
        """An array of NumPy's with these values."""
        return values if self.xp is np else self.xp.from_numpy(values).to(self.device)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        if self.xp is np:
            return np.empty(shape, dtype_of(dtype).numpy)
        return self.xp.empty(shape, dtype=getattr(self.xp, dtype), device=self.device)

    def wide(self, array: Any) -> Any:
        """The same numbers in float64."""
        return array.astype(np.float64) if self.xp is np else array.double()


def space_on(device: str) -> Space:
    """Torch's arrays where they have to lie on a card, NumPy's on the host.

    Raises `TargetError` where a card's arrays cannot be made.
    """
    if device == HOST:
        return Space(np, HOST)
    try:
        return Space(importlib.import_module("torch"), device)
    except ImportError as error:
        raise TargetError(
            "arrays on a card are made by torch, which is not installed here: {why}", why=error,
            hint="install torch, or measure one kernel: tilebench bench FILE:KERNEL",
        ) from error  # fmt: skip


def in_order(array: Any, argument: ArrayArgument, number: int) -> Any:
    """A view of row-major memory as the caller sees it, of an argument whose memory has an order of axes."""
    if not number:
        return array
    order = argument.orders[number]
    back = [order.index(k) for k in range(len(order))]
    return array.permute(*back) if hasattr(array, "permute") else array.transpose(back)


def made(space: Space, work: BenchWork, seed: int = 0) -> dict[str, Any]:
    """Random arrays for a work's arguments."""
    out: dict[str, Any] = {}
    for place, argument in enumerate(work.given()):
        if argument.drawn is not None:
            values = argument.drawn(work.sizes, np.random.default_rng(seed + place))
            out[argument.name] = space.moved(values)
            continue
        number: int = work.problem.options.get(f"{argument.name}_order", 0)
        shape = work.shape(argument)
        order = argument.orders[number] if number else tuple(range(len(shape)))
        dtype = argument.dtype_in(work.problem)
        memory = space.random(tuple(shape[k] for k in order), dtype, seed + place)
        out[argument.name] = in_order(memory, argument, number)
    return out


def result_of(space: Space, work: BenchWork) -> Any:
    """An array for a work's result."""
    return space.empty(work.shape(work.operator.result), work.operator.result_dtype(work.problem))


def poison(array: Any) -> None:
    """Fill an array of a library with what no result is."""
    of_floats = dtype_of(dtype_name(array.dtype)).is_float
    array[...] = POISON if of_floats else POISONED_INTEGER


def compared(space: Space, work: BenchWork, arrays: Mapping[str, Any], got: Any) -> Found:
    """A result beside what is right, every element of it."""
    with space.default(), np.errstate(all="ignore"):
        return checking.compared(space.xp, space.wide, work.operator, work.problem, arrays, got)
