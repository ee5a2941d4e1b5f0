"""Running a compiled kernel over the pool of threads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import ArgumentError, TargetError
from ....ir import Buffer, Function, Var, walk
from ....language.structure import Serial
from ....machine import Machine
from ....passes.analysis.launches import is_program, parts_of
from ...build import Build
from ...scalars import Grid, bits_of
from ...workspaces import Workspaces
from ..machine import host_isa, isa_of
from ..render.kernel import entries
from .jit import Compiled, load_object
from .pool import Launcher
from .workspace import POOL


class CpuExecutable:
    """A loaded launch, called with arrays in host memory and numbers, in parameter order.

    It returns when it has run. Ctrl-C ends it: blocks and long loops poll a word that the interrupt sets.
    """

    def __init__(
        self, function: Function, machine: Machine, compiled: Compiled, entry: str, scratch: int
    ) -> None:
        self.grid = Grid(function, machine)
        self.params = function.params
        self.names = [param.name for param in self.params]
        sizes = {var.name for var in function.dimensions}
        # Sizes pass as they are.
        self._arrays = [(k, p.name) for k, p in enumerate(self.params) if isinstance(p, Buffer)]
        self._scalars = [
            (k, p.type) for k, p in enumerate(self.params) if isinstance(p, Var) and p.name not in sizes
        ]
        self.plain = len(function.arrays) == len(self.params)
        # 0 where sizes decide it.
        self.blocks = math.prod(self.grid.constant or (0,))
        self._words = ctypes.c_int64 * len(self.names)
        self._launch = Launcher(
            compiled.address(entry), scratch, endless=_may_be_endless(function), keep=compiled
        )

    def __call__(self, arguments: Sequence[Any], /) -> None:
        blocks = self.blocks or math.prod(self.grid(arguments))
        if not blocks:
            return
        if self.plain:
            words = self._words(*_addresses(arguments, self.names))
        else:
            words = self._words(*self._values(arguments))
        self._launch(ctypes.addressof(words), blocks)

    def _values(self, arguments: Sequence[Any]) -> list[int]:
        """What the code finds in its words: addresses, sizes, scalars' bits in the low bytes."""
        out = list(arguments)
        for k, name in self._arrays:
            out[k] = _address(out[k], name)
        for k, dtype in self._scalars:
            out[k] = _signed(bits_of(out[k], dtype))
        return out


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _addresses(arrays: Sequence[Any], names: Sequence[str]) -> list[int]:
    assert len(arrays) == len(names), (len(arrays), names)
    try:
        # A call's arrays are described, and asking each of them would cost a microsecond.
        return [array.pointer for array in arrays]
    except AttributeError:
        return [_address(array, name) for array, name in zip(arrays, names, strict=True)]


def _address(array: Any, name: str) -> int:
    pointer = getattr(array, "pointer", None)
    if pointer is not None:
        return int(pointer)
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    raise ArgumentError("{name} is not in host memory", name=name, found=type(array).__name__)


class CpuProgram:
    """Launches one after the other, in memory of the call that they share; called as one launch is."""

    def __init__(self, function: Function, launches: Sequence[CpuExecutable]) -> None:
        self.launches = launches
        self.workspaces = Workspaces(function)

    def __call__(self, arguments: Sequence[Any], /) -> None:
        layout = self.workspaces(arguments)
        with POOL.take(layout.size) as pointer:
            arguments = (*arguments, *layout.placed(pointer))
            for launch in self.launches:
                launch(arguments)


def _may_be_endless(function: Function) -> bool:
    """Whether a loop's length depends on data, so that no earlier call tells how long the next one takes."""
    from ....ir import Load, While

    return any(
        isinstance(each, While)
        or (
            isinstance(each, Serial)
            and any(isinstance(n, Load) for end in (each.start, each.stop) for n in walk(end))
        )
        for each in walk(function)
    )


def load(build: Build) -> CpuExecutable | CpuProgram:
    """The executable of a build whose object file has been made or taken from the cache."""
    isa = isa_of(build.machine)
    if isa.triple != host_isa().triple or not isa.has <= host_isa().has:
        raise TargetError(
            "code for {target} cannot run on this processor ({here})", target=build.machine.name,
            here=host_isa().cpu, hint='compile for target="cpu" to run here',
        )  # fmt: skip
    parts = parts_of(build.function)
    names = entries(len(parts))
    compiled = load_object(build.code, names, isa)
    launches = [
        CpuExecutable(part, build.machine, compiled, name, scratch)
        for part, name, scratch in zip(parts, names, build.data["scratch"], strict=True)
    ]
    return CpuProgram(build.function, launches) if is_program(build.function) else launches[0]
