"""The CUDA target: machines, the compiler NVRTC, SASS, occupancy and launch by the driver API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...ir import Stmt
from ...machine import Machine, Occupancy
from ...record import LineCounter
from ..build import Build, EmitStep, ProgramForm
from ..devices import CARD
from ..intrinsics import Intrinsic
from ..manifest import Manifest
from ..profiler import LineProfiler

if TYPE_CHECKING:
    from ..presentation import Presentation


def _describe(detail: str | None) -> Machine:
    from .run.device import describe

    return describe(detail)


def _available() -> tuple[bool, str]:
    from .run.device import available

    return available()


def _versions() -> dict[str, str]:
    from .compiler.library import nvrtc_version

    return {"nvrtc": ".".join(map(str, nvrtc_version()))}


def _emit_cuda(build: Build) -> None:
    # The renderer is imported when a kernel first reaches it, the compiler's bindings after it.
    from .emit import emit_cuda

    emit_cuda(build)


def _machine_code(step: str) -> Callable[[Build], None]:
    def run(build: Build) -> None:
        from . import machine_code

        getattr(machine_code, step)(build)

    return run


def _count_sass(text: str) -> Sequence[LineCounter]:
    from .compiler.sass_counts import count_sass

    return count_sass(text)


def _ncu(name: str) -> Any:
    def call(*arguments: Any) -> Any:
        from . import ncu

        return getattr(ncu, name)(*arguments)

    return call


def _load(build: Build) -> Any:
    from .run.program import load

    return load(build)


def _environment() -> dict[str, str]:
    from .run.environment import environment

    return environment()


def _occupancy(machine: Machine, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    from .occupancy import occupancy

    return occupancy(machine, threads, registers, shared_bytes)


def _program(build: Build, values: Mapping[str, Any], seed: int, title: Sequence[str]) -> str:
    from .text.standalone import standalone

    return standalone(build, values, seed, title)


def _present() -> Presentation:
    from .presentation import presentation

    return presentation()


def _intrinsics() -> tuple[Intrinsic, ...]:
    from .text.intrinsics import intrinsics

    return intrinsics()


def _lowered() -> Iterable[tuple[type[Stmt], str]]:
    from ...passes.threads.lowering import with_rows
    from .instructions import LOWERINGS

    return with_rows(LOWERINGS).rows


def _scalars() -> dict[str, frozenset[str]]:
    from .text.dialect import CUDA

    return CUDA.scalars()


@cache
def manifest() -> Manifest:
    """The CUDA manifest."""
    from ...passes.gpu_road import gpu_road
    from .instructions import LOWERINGS, VALUES, WORDS

    return Manifest(
        name="cuda",
        describe=_describe,
        road=gpu_road(LOWERINGS),
        steps=(
            EmitStep("cuda", "cuda", _emit_cuda),
            EmitStep("ptx", "ptx", _machine_code("emit_ptx"), tier="code"),
            # Machine code keeps the lines of the text that NVRTC got, not those of the PTX between.
            EmitStep(
                "sass",
                "nvsass",
                _machine_code("emit_sass"),
                tier="later",
                lines_of="cuda",
                begin=_machine_code("begin_sass"),
                count=_count_sass,
            ),
        ),
        load=_load,
        programs=True,
        available=_available,
        versions=_versions,
        examples=("cuda", "cuda:sm_80", "cuda:sm_90a"),
        device=CARD,
        rehearse=True,
        words=WORDS,
        values=VALUES,
        intrinsics=_intrinsics,
        lowered=_lowered,
        scalars=_scalars,
        ceilings="tilebench.targets.cuda.run.ceilings:measure_device_ceilings",
        device_arrays=lambda executable, arrays: executable.device_arrays(arrays),
        environment=_environment,
        occupancy=_occupancy,
        present=_present,
        program=ProgramForm(
            ".cu", "nvcc -O3 -gencode arch=compute_{number},code={detail} {file} && ./a.out", _program
        ),
        profiler=LineProfiler("ncu", _ncu("missing"), _ncu("run"), _ncu("read")),
    )
