"""`T.Parallel`: its own body over the coordinates that it names."""

from __future__ import annotations

from ....ir import Stmt
from ....language.structure import Parallel
from ..elements import ElementLoop, element_loops
from ..emitter import Emitter
from ..lowering import Lowering
from ..widths import check_vector
from .copy import missing_mapping


def parallel_loops(emitter: Emitter, loop: Parallel) -> list[Stmt]:
    """The loops of one thread over its part of the iterations."""
    if loop.map is None:
        raise missing_mapping(loop)
    check_vector(emitter, loop, loop.map, loop.vector)
    elements = ElementLoop(loop, loop.map, loop.extents, loop.vars, loop.body, loop.vector)
    return element_loops(emitter, elements)


LOWERINGS = (Lowering(Parallel, "", parallel_loops),)
