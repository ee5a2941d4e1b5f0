"""Operations of several kernels in the simulator: each of their kernels made for a card and run there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.library.cases import sizes_of
from tests.simulated import run_threaded
from tilebench.ir.sizes import for_sizes
from tilebench.kernel.calls.variants import ALIGNED, Variant
from tilebench.library.calls import kernel_for


@dataclass(frozen=True)
class SimulatedKernel:
    """A kernel of a card that runs in the simulator, on NumPy's arrays, when it is called."""

    kernel: Any
    variant: Variant = ALIGNED

    @property
    def parameters(self) -> Any:
        return self.kernel.parameters

    @property
    def resources(self) -> Any:
        return self.kernel.resources

    def __call__(self, *arrays: Any) -> None:
        named = {record.name: array for record, array in zip(self.kernel.arguments, arrays, strict=True)}
        made = self.kernel.calls.compiled(self.variant)
        made.reach("cuda")
        run_threaded(for_sizes(made.functions["threaded"], sizes_of(self.kernel, named)), named, warp=32)


def simulate(monkeypatch: Any, module: Any, target: str) -> None:
    """Have a module of the library make its kernels for a card and run them in the simulator."""

    def made(step: Any, problem: Any, _: Any = None, aligned: bool = True) -> SimulatedKernel:
        variant = ALIGNED if aligned else Variant(aligned=False)
        return SimulatedKernel(kernel_for(step, problem, target, aligned), variant)

    monkeypatch.setattr(module, "kernel_for", made)
    monkeypatch.setattr(module, "_ready", {})
