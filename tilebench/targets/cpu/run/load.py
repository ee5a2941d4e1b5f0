"""Running a compiled kernel over the pool of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....errors import ArgumentError, TargetError
from ....ir import walk
from ....language.structure import Serial
from ...build import Build
from ..machine import host_isa, isa_of
from ..render.kernel import ENTRY
from .jit import load_object
from .pool import Launcher


class CpuExecutable:
    """A loaded kernel; called with arrays in host memory, in parameter order. Returns when it has run.

    Ctrl-C ends it: blocks and long loops poll a word that the interrupt sets.
    """

    def __init__(self, build: Build) -> None:
        isa = isa_of(build.machine)
        if isa.triple != host_isa().triple or not isa.has <= host_isa().has:
            raise TargetError(
                "code for {target} cannot run on this processor ({here})", target=build.machine.name,
                here=host_isa().cpu, hint='compile for target="cpu" to run here',
            )  # fmt: skip
        compiled = load_object(build.code, (ENTRY,), isa)
        self.grid = int(build.data["grid"])
        self.names = [each.name for each in build.function.params]
        self._words = ctypes.c_int64 * len(self.names)
        self._launch = Launcher(
            compiled.address(ENTRY), int(build.data["scratch"]), endless=_may_be_endless(build), keep=compiled
        )

    def __call__(self, arrays: Sequence[Any]) -> None:
        words = self._words(*[_address(each, name) for each, name in zip(arrays, self.names, strict=True)])
        self._launch(ctypes.addressof(words), self.grid)


def _address(array: Any, name: str) -> int:
    pointer = getattr(array, "pointer", None)
    if pointer is not None:
        return int(pointer)
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    raise ArgumentError("{name} is not in host memory", name=name, found=type(array).__name__)


def _may_be_endless(build: Build) -> bool:
    """Whether a loop's length depends on data, so that no earlier call tells how long the next one takes."""
    from ....ir import Load

    return any(
        isinstance(each, Serial)
        and any(isinstance(n, Load) for end in (each.start, each.stop) for n in walk(end))
        for each in walk(build.function)
    )


def load(build: Build) -> Callable[[Sequence[Any]], None]:
    """The executable of a build whose object file has been made or taken from the cache."""
    return CpuExecutable(build)
