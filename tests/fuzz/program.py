"""A drawn kernel as a value: its text, what it is compiled for, and what it is called with."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilebench.errors import remember_source
from tilebench.frontend import Traced, trace
from tilebench.ir import DType, Function
from tilebench.ir.sizes import for_sizes
from tilebench.reference.inputs import random_array

# The name of every program's text: one for all, so that the last one is remembered and no other.
FILE = "<fuzz>"
HEAD = "import tilebench\nimport tilebench.language as T\n\n\n"
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Program:
    """A kernel and one call of it. `text` defines the function `kernel`.

    `sizes` gives the names of `T.dynamic` and the scalar parameters; `inputs` is a kind of `random_array`, or
    `special`: uniform with infinities, NaN and zeros strewn in. Parameters called P and a number are small
    whole numbers from 0 to 3, so that they can be starts of regions. `aligned` and `wide` choose the variant
    for a card, `cpu` the instruction set of the CPU.
    """

    text: str
    target: str = "cuda:sm_80"
    schedule: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: str = "uniform"
    seed: int = 0
    aligned: bool = True
    wide: bool = False
    cpu: str = "cpu"

    def traced(self) -> Traced:
        """The `tile` stage. Raises the `TileError` of the front end."""
        remember_source(FILE, self.text)
        space: dict[str, Any] = {"__name__": "fuzz"}
        exec(compile(self.text, FILE, "exec"), space)
        return trace(space["kernel"].function, {})

    def function(self, traced: Traced) -> Function:
        """The kernel for this call's sizes, as the reference runs it."""
        return for_sizes(traced.function, self.sizes)

    def arrays(self, function: Function) -> dict[str, Any]:
        """An array for each parameter; outputs hold values too, which stay where nothing is written."""
        return {p.name: self._array(p.name, p.extents, p.dtype, p.fixed_strides) for p in function.arrays}

    def _array(self, name: str, shape: Any, dtype: DType, strides: Any) -> Any:
        seeds = (self.seed, zlib.crc32(name.encode()))
        kind: Any = "uniform" if self.inputs == "special" else self.inputs
        array = random_array(shape, dtype, seeds, kind, strides)
        random = np.random.default_rng(seeds)
        if re.fullmatch(r"P\d+", name):
            array[...] = random.integers(0, 4, array.shape)
        elif self.inputs == "special" and dtype.is_float:
            strewn = random.random(array.shape) < 0.1
            known = [each for each in SPECIAL if dtype.has_infinity or not np.isinf(each)]
            chosen = np.asarray(known)[random.integers(0, len(known), array.shape)]
            array[...] = np.where(strewn, chosen, array.astype(np.float64)).astype(dtype.numpy)
        return array

    def file_text(self) -> str:
        """A file that runs alone, from the folder of the repository: it says what each road makes of it."""
        plain = Program(self.text)
        names = ("target", "schedule", "sizes", "inputs", "seed", "aligned", "wide", "cpu")
        other = [name for name in names if getattr(self, name) != getattr(plain, name)]
        said = "".join(f", {name}={getattr(self, name)!r}" for name in other)
        return (
            f'{self.text}\n\nif __name__ == "__main__":\n    from tests.fuzz.program import Program\n'
            "    from tests.fuzz.roads import run\n\n"
            f"    with open(__file__) as file:\n        print(run(Program(file.read(){said})))\n"
        )
