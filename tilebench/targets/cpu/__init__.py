"""The CPU target: tile programs to LLVM, run over a pool of threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...machine import Machine
from ..manifest import Build, EmitStep, Manifest
from ..presentation import Presentation

if TYPE_CHECKING:
    from ...ir import Stmt, Word
    from ...passes.context import Pass, StageRow
    from .loops.lowering import Lowering


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


def _scalars() -> dict[str, frozenset[str]]:
    from .numbers.functions import scalars

    return scalars()


def _present() -> Presentation:
    from .presentation import presentation

    return presentation()


@cache
def manifest() -> Manifest:
    """The CPU manifest. `cpu` is this processor; `cpu:x86-64-v3` and the like compile for others."""
    return manifest_with()


def manifest_with(*, words: Sequence[tuple[str, Word]] = (), lowerings: Sequence[Lowering] = ()) -> Manifest:
    """The CPU's manifest with words of a package, and the rows that lower them to the words of `loops`.

    Raises `InternalError` where a row is for what has one already.
    """
    from .loops.to_loops import to_loops, to_loops_with
    from .loops.words import VALUES, WORDS

    return Manifest(
        name="cpu",
        describe=_describe,
        road=(_loops(to_loops_with(lowerings) if lowerings else to_loops),),
        steps=(EmitStep("llvm", "llvm", _step("llvm")), EmitStep("asm", "gas", _step("asm"), tier="code")),
        load=_load,
        available=lambda: (True, ""),
        versions=_versions,
        words=(*WORDS, *words),
        values=VALUES,
        examples=("cpu", "cpu:x86-64-v3", "cpu:aarch64"),
        present=_present,
        lowered=lambda: _lowered(lowerings),
        scalars=_scalars,
    )


def _lowered(extra: Sequence[Lowering]) -> list[tuple[type[Stmt], str]]:
    from .lowerings import rows

    return [(row.statement, row.instruction) for row in (*rows(), *extra)]


def _loops(to_loops: Pass) -> StageRow:
    """The one stage of the CPU's own road."""
    from ...passes.context import StageRow
    from .loops.forms import LOOPS_FORMS
    from .rows.contract_rows import contract_rows
    from .rows.fuse_rows import fuse_rows

    passes = (
        ("to_loops", to_loops),
        # After it: rows of one statement are then loops that can be compared with another's.
        ("fuse_rows", fuse_rows),
        # After it: only then does a row live in one loop.
        ("contract_rows", contract_rows),
    )
    return StageRow("loops", passes, LOOPS_FORMS)
