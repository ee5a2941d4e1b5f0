"""The bytes of shared memory that a buffer takes, all its versions together, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass

from ...language.memory import AllocShared
from ...layout import SharedLayout


@dataclass(frozen=True)
class ByteRange:
    """Bytes from `first` to before `last`."""

    first: int
    last: int

    def meets(self, other: ByteRange) -> bool:
        """Whether two ranges have bytes in common."""
        return self.first < other.last and other.first < self.last


def shared_layout(alloc: AllocShared) -> SharedLayout:
    """The layout that was chosen for a buffer; before that, its rows one behind the other."""
    return alloc.layout or SharedLayout.rows(alloc.buffer.extents, alloc.buffer.dtype.per_byte)


def shared_size(alloc: AllocShared) -> int:
    """How many bytes a buffer takes."""
    return -(-shared_layout(alloc).cosize * alloc.versions * alloc.buffer.dtype.bits // 8)


def byte_range(alloc: AllocShared) -> ByteRange | None:
    """The bytes of a buffer that has its place; None before that."""
    return None if alloc.offset is None else ByteRange(alloc.offset, alloc.offset + shared_size(alloc))
