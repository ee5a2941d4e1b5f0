"""The simulator with the words of one thread that the CUDA target brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tilebench import simulator, targets
from tilebench.ir import Function


def run_threaded(
    function: Function,
    arrays: Mapping[str, Any],
    blocks: Iterable[tuple[int, ...]] | None = None,
    *,
    warp: int,
) -> None:
    """Run a function of the stage `threaded` on arrays, changed in place."""
    card = targets.manifest("cuda")
    simulator.run_threaded(
        function, arrays, blocks, warp=warp, meanings=card.meanings, functions=card.simulated_functions
    )
