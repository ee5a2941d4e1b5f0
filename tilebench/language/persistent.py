"""Blocks that take one tile after another: `T.Persistent` and `T.PersistentTileScheduler`.

Both number the tiles and step through the numbers by as many as there are blocks. A number becomes
coordinates in panels: `size` tiles of one axis are done for all of the other axes before the next panel, so
that blocks that run together share operands in the cache. The last panel is as wide as what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError, ShapeError
from ..ir import If, Let, LoopStmt, Stmt, Var, int32
from .elementwise import ceildiv, max, min
from .launch import LoopSpec
from .memory import alloc_var
from .structure import Serial
from .tracing.builder import for_tiles, here, inside_kernel
from .tracing.expressions import Value
from .tracing.operands import at_least, positive
from .tracing.promote import convert, expr_of
from .tracing.stores import assign_var

if TYPE_CHECKING:
    from .tracing.taken import Whole
    from .tracing.values import VarRef


def _whole(given: Any, word: str, what: str, least: int) -> Any:
    """A count of tiles or blocks: a number of Python, or a value of the running kernel."""
    if not isinstance(given, Value):
        return at_least(least, given, word, what)
    if not given.expr.dtype.is_integer:
        raise LanguageError(
            "{what} of {word} must be an integer, found {dtype}", what=what, word=word,
            dtype=given.expr.dtype,
        )  # fmt: skip
    return given


def panelled(number: Any, panelled_axis: Any, others: Any, size: Any) -> tuple[Any, Any]:
    """The index along the axis that panels divide, and the number along all others, of a tile's number.

    `panelled_axis` and `others` count tiles. A number past the end gives an index past the end.
    """
    panel = number // (others * size)
    first = panel * size
    whole = isinstance(panelled_axis, int) and isinstance(size, int) and panelled_axis % size == 0
    # A number past the end divides by no zero.
    width = size if whole else max(min(size, panelled_axis - first), 1)
    inside = number - panel * (others * size)
    return first + inside % width, inside // width


def Persistent(
    domain: Sequence[Whole], wave_size: Whole, index: Whole, group_size: Whole | None = 8
) -> LoopSpec:
    """The tiles of one block of many: `for bx, by in T.Persistent([m, n], blocks, block_id):`.

    `domain` counts the tiles of each axis; block `index` of `wave_size` does the tiles with the numbers
    `index`, `index + wave_size` and so on, every tile once. `group_size` neighbours along the last axis are
    numbered for all of the other axes before the next ones. Sizes may be of the running kernel. Raises
    `ShapeError` for an empty domain or a size below one, and `LanguageError` for what is no integer.
    """
    word = "T.Persistent"
    for_tiles(word)
    sizes = [_whole(each, word, f"extent {axis}", 0) for axis, each in enumerate(domain)]
    if not sizes:
        raise ShapeError("T.Persistent needs at least one extent")
    wave, group = (
        _whole(each, word, what, 1)
        for each, what in (
            (wave_size, "the wave size"),
            (8 if group_size is None else group_size, "the group size"),
        )
    )
    others, total = 1, 1
    for each in sizes[:-1]:
        others = others * each
    total = others * sizes[-1]
    block = Value(convert(expr_of(index), int32))

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        builder, place = inside_kernel(word), here()
        turn, tile = (Var(builder.unique(name), place=place) for name in ("wave", "tile"))
        along, rest = panelled(Value(tile), sizes[-1], others, group)
        coordinates: list[Any] = [along]
        for size in reversed(sizes[1:-1]):
            coordinates.insert(0, rest % size)
            rest = rest // size
        if len(sizes) > 1:
            coordinates.insert(0, rest)
        lets = [Let(var, expr_of(each), place=place) for var, each in zip(vars, coordinates, strict=True)]
        number = Let(tile, expr_of(Value(turn) * wave + block), place=place)
        inside = If(expr_of(Value(tile) < total), (*lets, *body), (), place=place)
        return Serial(expr_of(ceildiv(total, wave)), (turn,), (number, inside), place=place)

    return LoopSpec(word, "serial", len(sizes), build, empty=isinstance(total, int) and total == 0)


class PersistentTileScheduler:
    """Tiles of a grid for blocks that take one after another, with its place kept in scalars.

        sched = T.PersistentTileScheduler(m_tiles, n_tiles, swizzle_size=8)
        sched.init(block_id)
        while sched.valid():
            bx, by = sched.m_idx, sched.n_idx
            ...
            sched.next_tile()

    Worker `w` of `num_workers` (the blocks of the launch, where none are given) does the tiles with the
    numbers w, w + num_workers and so on. `swizzle_size` tiles of the slow axis are swept along the fast one
    together: m with `column_major`, else n. With a `cluster_size` m counts clusters of so many rows.
    `stateful=False` leaves `coord(number)` alone. Raises `ShapeError` for a size below one.
    """  # fmt: skip

    def __init__(
        self,
        num_m_tiles: Whole,
        num_n_tiles: Whole,
        num_workers: Whole | None = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ) -> None:
        word = "T.PersistentTileScheduler"
        builder = inside_kernel(word)
        rows, columns = (
            _whole(num_m_tiles, word, "num_m_tiles", 1),
            _whole(num_n_tiles, word, "num_n_tiles", 1),
        )
        self.cluster_size = positive(cluster_size, word, "cluster_size")
        self.swizzle_size = positive(swizzle_size, word, "swizzle_size")
        if num_workers is None:
            first = builder.grid[0]
            num_workers = (first if isinstance(first, int) else Value(first)) // self.cluster_size
        self.num_workers: Any = _whole(num_workers, word, "num_workers", 1)
        clusters = ceildiv(rows, self.cluster_size)
        self.total_tiles: Any = clusters * columns
        self.column_major = column_major
        self.fast, self.slow = (clusters, columns) if column_major else (columns, clusters)
        self.state: dict[str, VarRef] = {}
        if stateful:
            names = ("m_idx", "n_idx", "linear_idx", "current_iter")
            self.state = {each: _scalar(f"{name}_{each}" if name else each) for each in names}

    def coord(self, tile_id: Any) -> tuple[Any, Any]:
        """The tile (m, n) of a number."""
        slow, fast = panelled(tile_id, self.slow, self.fast, self.swizzle_size)
        return (fast, slow) if self.column_major else (slow, fast)

    def init(self, worker_id: Any) -> None:
        """Begin with the first tile of a worker."""
        self._go_to(worker_id, 0)

    def next_tile(self) -> None:
        """Go on to the worker's next tile."""
        self._go_to(self.linear_idx + self.num_workers, self.current_iter + 1)

    def valid(self) -> Value:
        """Whether the tile at hand is one of the grid."""
        return self.linear_idx < self.total_tiles

    @property
    def m_idx(self) -> Value:
        return self._now("m_idx")

    @property
    def n_idx(self) -> Value:
        return self._now("n_idx")

    @property
    def linear_idx(self) -> Value:
        return self._now("linear_idx")

    @property
    def current_iter(self) -> Value:
        return self._now("current_iter")

    def _now(self, name: str) -> Any:
        return Value(self._kept(name).expr)

    def _kept(self, name: str) -> VarRef:
        if name not in self.state:
            raise LanguageError(
                "this T.PersistentTileScheduler keeps no {name}", name=name,
                hint="make it without stateful=False, or ask for coord(number)",
            )  # fmt: skip
        return self.state[name]

    def _go_to(self, number: Any, turn: Any) -> None:
        assign_var(self._kept("current_iter"), turn)
        assign_var(self._kept("linear_idx"), number)
        for name, value in zip(("m_idx", "n_idx"), self.coord(self.linear_idx), strict=True):
            assign_var(self._kept(name), value)


def _scalar(name: str) -> VarRef:
    builder = inside_kernel("T.PersistentTileScheduler")
    before, builder.target = builder.target, name
    try:
        return alloc_var("int32", init=0)
    finally:
        builder.target = before


__all__ = ["Persistent", "PersistentTileScheduler"]
