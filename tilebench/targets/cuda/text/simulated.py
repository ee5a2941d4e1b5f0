"""Where the simulator finds what this target's own words do: in modules that no text needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...intrinsics import Meaning
from .. import instructions


def simulated(module: str, name: str) -> Meaning:
    """The function of that name in a module beside the instructions, imported when it is first called."""

    def run(lanes: Any, statement: Any, mask: Any) -> Any:
        return getattr(import_module(f"{instructions.__name__}.{module}"), name)(lanes, statement, mask)

    return run
