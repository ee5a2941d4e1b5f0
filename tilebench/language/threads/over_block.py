"""What all threads of a block make of a value that each of them has: in shared memory, behind a barrier."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Place
from ...ir import Buffer, Stmt, whole
from ..memory import AllocFragment, AllocShared
from ..reduce import Reduce


def over_block(
    found: Buffer, kind: str, fresh: Callable[[str], str], place: Place | None
) -> tuple[list[Stmt], Buffer]:
    """The reductions of a fragment with an element for each thread, and the shared tile of one element."""
    out: list[Stmt] = []
    while found.scope != "shared":
        shape, scope = found.extents[:-1] or (1,), "shared" if found.rank == 1 else "fragment"
        result = Buffer(fresh("voted"), shape, found.dtype, scope)
        out.append((AllocShared if scope == "shared" else AllocFragment)(result, place=place))
        out.append(Reduce(kind, whole(found), whole(result), place=place))
        found = result
    return out, found
