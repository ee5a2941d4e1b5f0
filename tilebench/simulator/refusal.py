"""How the simulator says no: at the statement that did what a GPU must not do."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import LaunchError
from ..ir import Node


class SimulationError(LaunchError):
    """The simulated code did what a GPU must not: a race, an access outside, a barrier that not all reach."""

    title = "simulation error"
    # What it is about; where that has no place of its own, the statement has one.
    node: Node | None = None


def refuse(what: str, node: Node | None, **values: Any) -> NoReturn:
    """Raise a `SimulationError` at the statement or expression, with the template's values."""
    error = SimulationError(what, at=None if node is None else node.place, **values)
    error.node = node
    raise error
