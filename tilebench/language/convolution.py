"""`T.im2col`: the part of an image that a tile of a convolution, written as a product, reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ShapeError
from ..ir import Store, Var
from .elementwise import if_then_else
from .notes import note_unused
from .structure import Parallel
from .tracing.arithmetic import logical, truth
from .tracing.builder import for_tiles
from .tracing.expressions import Value
from .tracing.operands import at_least, positive, whole_part
from .tracing.stores import stored
from .tracing.values import BufferView

if TYPE_CHECKING:
    from .tracing.taken import Number, Tile


def im2col(
    img: Tile, col: Tile, nhw_step: Number, c_step: Number, kernel: int, stride: int, dilation: int, pad: int,
    eviction_policy: str | None = None,
) -> None:  # fmt: skip
    """Fill a tile with what a convolution multiplies: `T.im2col(X, X_s, by, ko, 3, 1, 1, 1)`.

    `img` is (batch, height, width, channels). Seen as a matrix it has a row for each place of the output, in
    the order (batch, row, column), and a column for each number that is weighed there, in the order (kernel
    row, kernel column, channel) of a square kernel. `col` gets the box of its own size number `nhw_step` down
    and `c_step` across, with zeros for the padding and beyond both ends: a T.Parallel over the tile. Raises
    `ShapeError` for an image without four dimensions and a tile without two.
    """
    builder = for_tiles("T.im2col")
    tile = whole_part(col, "T.im2col").view
    if not isinstance(img, BufferView) or img.ndim != 4:
        raise ShapeError("T.im2col reads a whole image (batch, height, width, channels)", found=f"{img!r}")
    if tile.ndim != 2:
        raise ShapeError("T.im2col fills a tile of two dimensions", found=f"{tile!r}")
    size, step = positive(kernel, "T.im2col", "kernel"), positive(stride, "T.im2col", "stride")
    apart, padding = (
        positive(dilation, "T.im2col", "dilation"), at_least(0, pad, "T.im2col", "pad"),
    )  # fmt: skip
    note_unused("T.im2col", eviction_policy=eviction_policy)
    batch, height, width, channels = img.shape
    rows, columns = ((x + 2 * padding - apart * (size - 1) - 1) // step + 1 for x in (height, width))
    names = tuple(Var(builder.unique(name)) for name in ("i0", "i1"))
    place = nhw_step * tile.shape[0] + Value(names[0])
    weight = c_step * tile.shape[1] + Value(names[1])
    row = place // columns % rows * step + weight // channels // size * apart - padding
    column = place % columns * step + weight // channels % size * apart - padding
    inside = (row >= 0, row < height, column >= 0, column < width)
    there = (weight < size * size * channels, place < batch * rows * columns)
    seen = Value(logical("and", [truth(each.expr) for each in (*inside, *there)]))
    read: Any = img[place // (rows * columns), row, column, weight % channels]
    number = if_then_else(seen, read, 0)
    store = Store(tile.buffer, names, stored(number, tile.buffer.dtype), place=builder.place)
    builder.emit(Parallel(tile.shape, names, (store,), place=builder.place))
