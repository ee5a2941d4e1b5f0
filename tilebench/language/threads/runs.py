"""From a traced kernel with code of single threads to one of tiles and of loops over threads."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import Function, Stmt, Var, walk
from ..structure import KernelLaunch
from ..tracing.builder import Builder
from .block import BlockThreads
from .differing import Differing
from .kept import RunNames, with_rows
from .same_in_warps import SameInWarps
from .split import Splitter


def in_runs(function: Function, builder: Builder) -> Function:
    """The kernel with runs of statements of single threads as loops over all of them.

    Raises `LanguageError` at the line of what cannot be split.
    """
    blocks: list[BlockThreads] = [block for block in builder.blocks if block.numbers]
    return function.but(body=_launches(function.body, blocks, builder)) if blocks else function


def _launches(body: tuple[Stmt, ...], blocks: list[BlockThreads], builder: Builder) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for statement in body:
        if isinstance(statement, KernelLaunch):
            names = {part.name for part in walk(statement) if isinstance(part, Var)}
            for block in blocks:
                if any(var.name in names for var in block.numbers.values()):
                    statement = _launch(statement, block, builder)
        out.append(statement)
    return tuple(out)


def _launch(launch: KernelLaunch, block: BlockThreads, builder: Builder) -> KernelLaunch:
    coordinates = block.coordinates(builder)
    fresh: Callable[[str], str] = builder.unique
    differing = Differing(launch.body, [var.name for var in coordinates], list(block.kept))
    splitter = Splitter(block, coordinates, differing, SameInWarps(launch.body, differing), fresh)
    body = splitter.body(launch.body)
    body = with_rows(body, block, coordinates)
    names = RunNames(body, block, coordinates, fresh)
    body = names.write(body)
    launch = launch.but(body=body)
    # Loops over threads are for as many as there are here: no schedule may take others.
    return launch if block.shape or not names.runs else launch.but(threads=block.count)
