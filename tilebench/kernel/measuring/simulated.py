"""A kernel as plain data in the simulator, and a check there: for a kernel whose card is not here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...ir import parse_function
from ...ir.sizes import for_sizes
from ...targets import resolve_machine
from .measure import random_inputs, tile_of
from .package import Package

if TYPE_CHECKING:
    import numpy as np

    from ...compiler import Compilation
    from ...reference import CheckReport
    from ...simulator import Counters


def why_not_simulated(compilation: Compilation) -> str:
    """Why the simulator does not run a kernel, in words; empty where it does."""
    last = next(reversed([row.name for row in compilation.rows]))
    if compilation.machine.warp == 1:
        return f"{compilation.manifest.name} has no threads to simulate"
    below = [edit.stage for edit in compilation.edits if edit.stage not in (*_ir(compilation),)]
    if below:
        return f"the simulator runs the stage {last}, and not the text of {below[0]} that was edited"
    return ""


def _ir(compilation: Compilation) -> tuple[str, ...]:
    return ("tile", *(row.name for row in compilation.rows))


def simulate(
    package: Package,
    arrays: Sequence[np.ndarray[Any, Any]],
    blocks: Iterable[tuple[int, int, int]] | None = None,
    counters: Counters | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """Run blocks (all when None) of a package's last stage on arrays in their order, which it changes.

    Gives the arrays by name. Raises `SimulationError` at the statement that does what a card must not.
    """
    from ...simulator import run_threaded

    manifest, machine = resolve_machine(package.target)
    function = parse_function(package.stage_text, manifest.registry, "<threaded stage>")
    named = {argument.name: array for argument, array in zip(package.arguments, arrays, strict=True)}
    run_threaded(
        for_sizes(function, package.values), named, blocks, warp=machine.warp, meanings=manifest.meanings,
        functions=manifest.simulated_functions, counters=counters,
    )  # fmt: skip
    return named


def check_simulated(package: Package, seed: int) -> CheckReport:
    """`simulate` on random arrays, with every element compared. Raises what that raises."""
    from ...reference import check_function

    inputs = random_inputs(package, seed)
    after = simulate(package, [array.copy() for array in inputs])
    before = dict(zip(after, inputs, strict=True))
    return check_function(tile_of(package), before, after, fresh=package.outputs, threads=package.threads)
