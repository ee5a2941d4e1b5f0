"""Variants of a kernel: compiled under what arrays and sizes are multiples of, chosen at each launch.

The aligned variant may take whole vectors: addresses and rows are multiples of what the machine's
accesses need. The general one takes elements at any address. Where all offsets into an array of sizes
known at a launch fit 32 bits they are computed so; a launch with a larger array takes the wide variant.
Each is compiled when a call first needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir import Buffer, Expr, Function, Var, rename_buffers, walk
from ...ir.sizes import Number, size_value
from ...language.addresses import TensorAt
from ...language.structure import KernelLaunch
from ...machine import Machine
from ...targets.devices import HOST

_MOST_SHAPES = 256


@dataclass(frozen=True)
class Variant:
    """`aligned`: addresses and rows are multiples of the machine's alignment. `wide`: 64-bit offsets."""

    aligned: bool = True
    wide: bool = False

    @property
    def name(self) -> str:
        return ("aligned" if self.aligned else "general") + (", 64-bit offsets" if self.wide else "")


ALIGNED = Variant()
# What a variant writes into a function's information: conditions on sizes, and the bits of offsets.
RELIED_ON = ("assume", "offsets")


def under(function: Function, variant: Variant, machine: Machine) -> Function:
    """The function with what the variant may rely on written into it.

    What is there of another variant goes: a function may be a stage's text, or that of a kernel for another
    machine, and those rely on what calls of this one need not have.
    """
    info = {name: value for name, value in function.info if name not in RELIED_ON}
    if machine.alignment == 1:
        return function.but(info=tuple(info.items()))
    if variant.aligned:
        conditions = aligned_rows(function, machine.alignment)
        if conditions:
            info["assume"] = conditions
    else:
        buffers = {buffer.name: replace(buffer, align=_least(buffer)) for buffer in function.arrays}
        params = tuple(buffers.get(param.name, param) for param in function.params)
        function = rename_buffers(function, buffers).but(params=params)
    if variant.wide:
        info["offsets"] = 64
    return function.but(info=tuple(info.items()))


def _least(buffer: Buffer) -> int:
    return max(1, buffer.dtype.bits // 8)


def aligned_rows(function: Function, alignment: int) -> tuple[Expr, ...]:
    """Conditions on sizes under which all rows of all arrays start at multiples of `alignment` bytes."""
    return tuple((step % vector).compare("==", 0) for step, vector in row_steps(function, alignment))


def row_steps(function: Function, alignment: int) -> list[tuple[Expr, int]]:
    """The sizes that say how far apart rows are, each with the elements that `alignment` bytes hold."""
    out: list[tuple[Expr, int]] = []
    for buffer in (*function.arrays, *function.workspaces, *_at_addresses(function)):
        vector = buffer.dtype.elements_in(alignment)
        # Rows of a row-major array are as long as its last extent; what lies above is a multiple of it.
        steps = buffer.strides or ((buffer.row_elements,) if buffer.rank > 1 else ())
        for step in steps:
            if isinstance(step, Expr) and vector > 1 and (step, vector) not in out:
                out.append((step, vector))
    return out


class Chooser:
    """Says which variant a call can take."""

    def __init__(self, function: Function, machine: Machine) -> None:
        self.alignment = machine.alignment
        self.rows = row_steps(function, machine.alignment)
        there = _at_addresses(function)
        known = (*function.arrays, *function.workspaces, *there)
        self.arrays = known if machine.index_bits < 64 else ()
        self.sizes = [var.name for var in function.dimensions]
        self.sizes += sorted({name for array in there for name in _names(array)}.difference(self.sizes))
        # Whether no call can take another variant than the aligned one.
        self.single = machine.alignment == 1 and machine.index_bits >= 64
        self._known: dict[tuple[Number, ...], tuple[bool, bool]] = {}

    def __call__(self, values: Mapping[str, Number], infos: Sequence[Any]) -> Variant:
        """The variant for these sizes and described arrays. Host arrays are copied to aligned memory."""
        rows, wide = self._sizes(values) if values else (True, False)
        aligned = rows and self.are_aligned(infos)
        return ALIGNED if aligned and not wide else Variant(aligned, wide)

    def are_aligned(self, infos: Sequence[Any]) -> bool:
        """Whether all arrays start at multiples of the machine's alignment."""
        alignment = self.alignment
        for info in infos:  # noqa: SIM110  -- a generator doubles the time, and each launch asks
            if info.pointer % alignment and info.device != HOST:
                return False
        return True

    def _sizes(self, values: Mapping[str, Number]) -> tuple[bool, bool]:
        key = tuple([values[name] for name in self.sizes])
        found = self._known.get(key)
        if found is None:
            rows = all(size_value(step, values) % vector == 0 for step, vector in self.rows)
            wide = any(span_of(array, values) >= 2**31 for array in self.arrays)
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            found = self._known[key] = rows, wide
        return found


def _at_addresses(function: Function) -> tuple[Buffer, ...]:
    """The arrays of `T.make_tensor` whose extents or strides only a call knows."""
    found = {
        statement.buffer.name: statement.buffer
        for launch in function.body
        if isinstance(launch, KernelLaunch)
        for statement in launch.body
        if isinstance(statement, TensorAt) and _names(statement.buffer)
    }
    return tuple(found.values())


def _names(array: Buffer) -> set[str]:
    """The sizes of a call that an array's extents and strides are made of."""
    parts = [part for part in (*array.shape, *(array.strides or ())) if isinstance(part, Expr)]
    return {var.name for part in parts for var in walk(part) if isinstance(var, Var)}


def span_of(array: Buffer, values: Mapping[str, Number]) -> int:
    """Elements from an array's first to behind its last, for these sizes."""
    sizes = [size_value(size, values) for size in array.shape]
    strides = array.strides
    steps = [size_value(step, values) for step in strides] if strides is not None else _row_major(sizes)
    return (
        1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True)) if 0 not in sizes else 0
    )


def _row_major(sizes: Sequence[int]) -> list[int]:
    out = [1]
    for size in reversed(sizes[1:]):
        out.append(out[-1] * size)
    return out[::-1]


__all__ = ["ALIGNED", "Chooser", "Variant", "aligned_rows", "span_of", "under"]
