"""Memory as one thread sees it: shared buffers become flat, fragments the registers of a thread."""

from __future__ import annotations

from ...errors import LayoutError
from ...ir import Buffer, Stmt
from ...language.memory import AllocFragment, AllocLocal, AllocShared
from ..analysis.shared_bytes import shared_layout
from .emitter import Emitter
from .tiles import FragmentTile, SharedTile


def allocate(emitter: Emitter, statement: AllocShared | AllocFragment) -> Stmt:
    """The allocation of a tile, noted in the emitter. Raises `LayoutError` for one without a layout."""
    buffer = statement.buffer
    if isinstance(statement, AllocFragment):
        if statement.layout is None:
            raise LayoutError("the fragment {name} has no layout", at=statement.place, name=buffer.name)
        _check_threads(emitter, statement)
        size = statement.layout.values * statement.versions
        local = Buffer(buffer.name, (size,), buffer.dtype, "local")
        emitter.fragments[buffer.name] = FragmentTile(local, statement.layout)
        return AllocLocal(local, place=statement.place)
    layout = shared_layout(statement)
    if len(layout.extents) != buffer.rank or any(
        reach < extent for reach, extent in zip(layout.extents, buffer.extents, strict=True)
    ):
        raise LayoutError(
            "{name} of extents {shape} has a layout of {extents}", at=statement.place, name=buffer.name,
            shape=buffer.shape, extents=layout.extents, expected="a layout of all its elements",
        )  # fmt: skip
    flat = Buffer(buffer.name, (layout.cosize * statement.versions,), buffer.dtype, "shared")
    emitter.shared[buffer.name] = SharedTile(flat, layout)
    return AllocShared(flat, offset=statement.offset, place=statement.place)


def _check_threads(emitter: Emitter, statement: AllocFragment) -> None:
    """A fragment is for its own tile and for no more threads than there are."""
    layout = statement.layout
    assert layout is not None
    if layout.extents != statement.buffer.shape:
        raise LayoutError(
            "the layout of {name} is for a tile of {a}", at=statement.place, name=statement.buffer.name,
            a=layout.extents, b=statement.buffer.shape, expected="a layout of {b}",
        )  # fmt: skip
    if layout.threads > emitter.threads.count:
        raise LayoutError(
            "the fragment {name} is spread over {a} threads, and there are {b}", at=statement.place,
            name=statement.buffer.name, a=layout.threads, b=emitter.threads.count,
        )  # fmt: skip
