"""How each statement of `bounded` becomes loops: a module a family, its rows in `LOWERINGS`.

The folder is the registry: a new operation is a new module here, and nothing else.
"""

from __future__ import annotations

from functools import cache

from ....ir.gather import gathered
from ..loops.lowering import Lowering


@cache
def rows() -> tuple[Lowering, ...]:
    """The rows of all modules of this folder. Raises `InternalError` for a module without any."""
    return gathered(__name__, __path__, "LOWERINGS", Lowering)
