"""The CPU target: tile programs to LLVM, run over a pool of threads."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...machine import Machine
from ..manifest import Build, EmitStep, Manifest
from ..presentation import Presentation


def _describe(detail: str | None) -> Machine:
    from .machine import cpu_machine, named_isa

    return cpu_machine(named_isa(detail) if detail else None)


def _versions() -> dict[str, str]:
    from .run.jit import versions

    return versions()


def _step(name: str) -> Any:
    # LLVM is imported when a kernel first reaches it.
    def run(build: Build) -> None:
        from . import emit

        getattr(emit, f"emit_{name}")(build)

    return run


def _load(build: Build) -> Any:
    from .run.load import load

    return load(build)


def _present() -> Presentation:
    from .presentation import presentation

    return presentation()


@cache
def manifest() -> Manifest:
    """The CPU manifest. `cpu` is this processor; `cpu:x86-64-v3` and the like compile for others."""
    from ...passes.context import StageRow
    from .loops.forms import LOOPS_FORMS
    from .loops.to_loops import to_loops
    from .loops.words import VALUES, WORDS
    from .rows.contract_rows import contract_rows
    from .rows.fuse_rows import fuse_rows

    loops = StageRow(
        "loops",
        (
            ("to_loops", to_loops),
            # After it: rows of one statement are then loops that can be compared with another's.
            ("fuse_rows", fuse_rows),
            # After it: only then does a row live in one loop.
            ("contract_rows", contract_rows),
        ),
        LOOPS_FORMS,
    )
    return Manifest(
        name="cpu",
        describe=_describe,
        road=(loops,),
        steps=(EmitStep("llvm", "llvm", _step("llvm")), EmitStep("asm", "gas", _step("asm"), tier="code")),
        load=_load,
        available=lambda: (True, ""),
        versions=_versions,
        words=WORDS,
        values=VALUES,
        examples=("cpu", "cpu:x86-64-v3", "cpu:aarch64"),
        present=_present,
    )
