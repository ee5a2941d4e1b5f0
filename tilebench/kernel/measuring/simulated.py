"""A check in the simulator: for a kernel whose card is not here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import parse_function
from ...ir.sizes import for_sizes
from ...targets import resolve_machine
from .measure import random_inputs, tile_of
from .package import Package

if TYPE_CHECKING:
    from ...compiler import Compilation
    from ...reference import CheckReport


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


def check_simulated(package: Package, seed: int) -> CheckReport:
    """Run a package's last stage in the simulator on random arrays, and compare every element.

    Raises `SimulationError` at the statement that does what a card must not.
    """
    from ...reference import check_function
    from ...simulator import run_threaded

    manifest, machine = resolve_machine(package.target)
    function = parse_function(package.stage_text, manifest.registry, "<threaded stage>")
    names = [argument.name for argument in package.arguments]
    before = dict(zip(names, random_inputs(package, seed), strict=True))
    after = {name: array.copy() for name, array in before.items()}
    run_threaded(
        for_sizes(function, package.values), after, warp=machine.warp, meanings=manifest.meanings,
        functions=manifest.simulated_functions,
    )  # fmt: skip
    return check_function(tile_of(package), before, after, fresh=package.outputs, threads=package.threads)
