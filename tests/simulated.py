"""The road to one thread of a card, and the simulator with the words that the CUDA target brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tilebench import simulator, targets
from tilebench.ir import Function, Registry
from tilebench.passes.context import StageRow


def card_road() -> tuple[StageRow, ...]:
    """The stages after `bounded` on a card, with the lowerings of its instructions."""
    return targets.manifest("cuda").road


def card_words() -> Registry:
    """The words of the language and those of a card."""
    return targets.manifest("cuda").registry


def run_threaded(
    function: Function,
    arrays: Mapping[str, Any],
    blocks: Iterable[tuple[int, ...]] | None = None,
    *,
    warp: int,
    counters: simulator.Counters | None = None,
) -> None:
    """Run a function of the stage `threaded` on arrays, changed in place."""
    card = targets.manifest("cuda")
    simulator.run_threaded(
        function,
        arrays,
        blocks,
        warp=warp,
        meanings=card.meanings,
        functions=card.simulated_functions,
        counters=counters,
    )
