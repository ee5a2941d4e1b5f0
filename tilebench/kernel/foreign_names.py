"""What TileLang's kernel objects are asked for, on ours: the same words, and what holds here instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import OptionError

if TYPE_CHECKING:
    from ..ir import Function
    from ..record import ParamRecord
    from .kernel import Kernel


class ForeignNames:
    """Names of TileLang's `JITKernel` that are others here."""

    @property
    def _own(self) -> Kernel:
        return cast("Kernel", self)

    @property
    def out_idx(self) -> list[int]:
        """The positions of the arrays that a call makes and returns."""
        return list(self._own.outputs)

    @property
    def params(self) -> tuple[ParamRecord, ...]:
        """What a call passes, and the arrays that it makes, in order."""
        return self._own.arguments

    @property
    def prim_func(self) -> Function:
        """The kernel in the stage `tile`, or the one that its text starts at."""
        return self._own.compilation.traced.function

    def get_host_source(self) -> str:
        """Raises `OptionError`: no host code is generated."""
        raise OptionError(
            "{name} has no host source: its launches are made in this process", name=self._own.name,
            hint="get_kernel_source() is what the target's compiler gets; .stages names all texts",
        )  # fmt: skip

    def show_source(self, which: str = "kernel") -> None:
        """Print the text that the target's compiler gets. Raises `OptionError` for the host's."""
        if which == "host":
            self.get_host_source()
        print(self._own.get_kernel_source())

    def export_sources(self, kernel_path: str | Path | None = None, host_path: object = None) -> None:
        """Write the text that the target's compiler gets to a file. Raises `OptionError` for the host's."""
        if host_path is not None:
            self.get_host_source()
        if kernel_path is None:
            raise OptionError("export_sources needs the path of a file", hint="kernel_path='kernel.cu'")
        Path(kernel_path).write_text(self._own.get_kernel_source(), encoding="utf-8")

    def _assembly(self, tier: str) -> str:
        """The text of the first step of a tier: what an assembler reads, or what came out of the code."""
        steps = self._own.compilation.manifest.steps
        name = next((step.name for step in steps if step.tier == tier), None)
        if name is None:
            raise OptionError(
                "kernels for {target} have no such text", target=self._own.target,
                hint="stages: " + ", ".join(self._own.stages),
            )  # fmt: skip
        return self._own.stage(name)

    def show_ptx(self) -> None:
        """Print the assembly that the code is made of: the card's, or the processor's."""
        print(self._assembly("code"))

    def show_sass(self) -> None:
        """Print the code, disassembled. Raises `OptionError` where the target has no such stage."""
        print(self._assembly("later"))

    def export_ptx(self, path: str | Path) -> None:
        """Write the assembly that the code is made of to a file."""
        Path(path).write_text(self._assembly("code"), encoding="utf-8")

    def export_sass(self, path: str | Path) -> None:
        """Write the code, disassembled, to a file. Raises as `show_sass` does."""
        Path(path).write_text(self._assembly("later"), encoding="utf-8")

    def export_library(self, path: object = None, **_: Any) -> None:
        """Raises `OptionError`: a kernel is kept in the cache, or pickled."""
        raise OptionError(
            "{name} is no library that another program loads", name=self._own.name,
            hint="pickle keeps the kernel, and compiled code is kept in the cache",
        )  # fmt: skip
