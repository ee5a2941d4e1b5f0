"""The CPU target: tile programs to LLVM, run over a pool of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...machine import Machine
from ..build import Build, EmitStep
from ..manifest import Manifest

if TYPE_CHECKING:
    from ...ir import Stmt, Word
    from ...passes.context import Pass, StageRow
    from ..presentation import Presentation
    from .loops.lowering import Lowering
    from .render.renderer import Rendering


def _describe(detail: str | None) -> Machine:
    from .machine import cpu_machine, named_isa

    return cpu_machine(named_isa(detail) if detail else None)


def _versions() -> dict[str, str]:
    from .run.jit import versions

    return versions()


def _emit_llvm(renderings: Sequence[Rendering]) -> Callable[[Build], None]:
    # LLVM is imported when a kernel first reaches it.
    def run(build: Build) -> None:
        from .emit import emit_llvm

        emit_llvm(build, renderings)

    return run


def _emit_asm(build: Build) -> None:
    from .emit import emit_asm

    emit_asm(build)


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


def manifest_with(
    *,
    words: Sequence[tuple[str, Word]] = (),
    lowerings: Sequence[Lowering] = (),
    renderings: Sequence[Rendering] = (),
) -> Manifest:
    """The CPU's manifest with words of a package.

    An operation on tiles comes with a row of `lowerings`, which says it in words of `loops`; where these
    do not suffice, a word of that stage comes with a row of `renderings`, which writes it as LLVM.
    Raises `InternalError` where a row is for what has one already.
    """
    from .loops.to_loops import to_loops, to_loops_with
    from .loops.words import VALUES, WORDS

    return Manifest(
        name="cpu",
        describe=_describe,
        road=(_loops(to_loops_with(lowerings) if lowerings else to_loops, renderings),),
        steps=(
            EmitStep("llvm", "llvm", _emit_llvm(renderings)),
            EmitStep("asm", "gas", _emit_asm, tier="code"),
        ),
        load=_load,
        programs=True,
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


def _loops(to_loops: Pass, renderings: Sequence[Rendering]) -> StageRow:
    """The one stage of the CPU's own road."""
    from ...ir import WordStmt
    from ...passes.context import StageRow
    from .loops.forms import loops_forms
    from .rows.contract_rows import contract_rows
    from .rows.fuse_rows import fuse_rows

    passes = (
        ("to_loops", to_loops),
        # After it: rows of one statement are then loops that can be compared with another's.
        ("fuse_rows", fuse_rows),
        # After it: only then does a row live in one loop.
        ("contract_rows", contract_rows),
    )
    more = [row.statement.word for row in renderings if issubclass(row.statement, WordStmt)]
    return StageRow("loops", passes, loops_forms(more))
