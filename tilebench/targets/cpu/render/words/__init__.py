"""How each word of `loops` is written as LLVM: a module a family, its rows in `RENDERINGS`."""

from __future__ import annotations

from functools import cache

from .....ir.gather import gathered
from ..renderer import Rendering


@cache
def rows() -> tuple[Rendering, ...]:
    """The rows of all modules of this folder. Raises `InternalError` for a module without any."""
    return gathered(__name__, __path__, "RENDERINGS", Rendering)
