"""What the buffers of a kernel stand for while it is traced: elements, tiles and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ...errors import LanguageError, Place, ShapeError
from ...ir import Buffer, Const, Expr, Load, Region, show
from .builder import BodyFrame, here, in_trace
from .expressions import DTypeWord, Value, refuse, word_for
from .indexing import UnknownExtent, index_box, index_expr
from .kinds import SideBySide, Tile
from .stores import assign_var, store_element


class _Stored(Value):
    """What a kernel reads from and assigns to: one scalar in the memory of a buffer."""

    __slots__ = ("view",)

    def __init__(self, view: BufferView) -> None:
        self.view = view

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def dtype(self) -> DTypeWord:
        return self.view.dtype


class ElementRef(_Stored):
    """`A[i, j]`: an element where a value is needed, the head of a tile where a region is."""

    __slots__ = ("index", "place")

    def __init__(self, view: BufferView, index: tuple[Expr, ...]) -> None:
        super().__init__(view)
        self.index = index
        self.place = here()

    @property
    def expr(self) -> Expr:
        self.view.check_element("read")
        return Load(self.view.buffer, self.index, place=self.place)

    def __repr__(self) -> str:
        return show(Load(self.view.buffer, self.index))


class VarRef(_Stored):
    """A scalar made by `T.alloc_var`: reads as a value, and assignment stores to it."""

    __slots__ = ()

    @property
    def expr(self) -> Expr:
        self.view.check_scope()
        return Load(self.view.buffer, (), place=here())

    def __getitem__(self, key: object) -> Value:
        """`x[0]`: the scalar, as TileLang writes an array of one. Raises `ShapeError` for another index."""
        self._only(key)
        return Value(self.expr)

    def __setitem__(self, key: object, value: object) -> None:
        self._only(key)
        assign_var(self, value)

    def _only(self, key: object) -> None:
        number = key.expr.value if isinstance(key, Value) and isinstance(key.expr, Const) else key
        if number != 0:
            raise ShapeError(
                "{name} is one scalar", name=self.name, expected="{name}, or {name}[0]", found=f"{key!r}"
            )

    def __repr__(self) -> str:
        return self.name


class RegionRef(Tile):
    """`A[i : i + 8, :]`: a box of a buffer, `extent` elements a dimension."""

    __slots__ = ("region", "view")

    def __init__(self, view: BufferView, region: Region) -> None:
        self.view = view
        self.region = region

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the box."""
        return self.region.extent or ()

    @property
    def dtype(self) -> DTypeWord:
        return self.view.dtype

    def __repr__(self) -> str:
        return show(self.region)


class MovingRef(RegionRef):
    """`A[lo : lo + n]` with an `n` of the running kernel: `T.fill`, `T.clear` and `T.copy` take it alone.

    To every other word it is the error that says so.
    """

    __slots__ = ("error", "sizes", "start")

    def __init__(
        self, view: BufferView, start: tuple[Expr, ...], sizes: tuple[int | Expr, ...], error: ShapeError
    ) -> None:
        self.view = view
        self.start = start
        self.sizes = sizes
        self.error = error

    @property
    def region(self) -> Region:  # pyright: ignore[reportIncompatibleVariableOverride]  # it has none
        raise self.error

    def __repr__(self) -> str:
        return f"a part of {self.name}"


@dataclass(frozen=True, eq=False)
class Storage:
    """The memory of a buffer."""

    view: BufferView


class BufferView(Tile):
    """An array of a kernel: a parameter or an allocated tile. `A[...]` is an element or a box."""

    __slots__ = ("buffer", "frame", "place")

    def __init__(self, buffer: Buffer, frame: BodyFrame | None, place: Place | None) -> None:
        self.buffer = buffer
        self.frame = frame
        self.place = place

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents, in elements: integers, or values where a size is known only at a launch."""
        return tuple(size if isinstance(size, int) else Value(size) for size in self.buffer.shape)

    @property
    def ndim(self) -> int:
        return self.buffer.rank

    @property
    def dtype(self) -> DTypeWord:
        """The element type, which is also callable as a conversion."""
        return word_for(self.buffer.dtype)

    @property
    def scope(self) -> str:
        """`global`, `shared`, `fragment` or `local`."""
        return self.buffer.scope

    @property
    def data(self) -> Storage:
        """Its memory, for a second view of it: `T.Tensor(shape, dtype, A.data)`."""
        return Storage(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        refuse("a buffer cannot be looped over", "loop over its indices: for i in T.Parallel(...)")

    def __repr__(self) -> str:
        return f"{self.name}{list(self.shape)}: {self.buffer.dtype} in {self.scope} memory"

    def __getitem__(self, key: object) -> Any:
        """An element (all integers) or a box (any slice). Raises `ShapeError` for a wrong rank or range."""
        self.check_scope()
        parts = self._parts(key)
        for part in parts:
            if isinstance(part, SideBySide):
                return part.load(self, parts)
        if any(isinstance(each, slice) for each in parts):
            return self._box(parts)
        return ElementRef(self, tuple(index_expr(self, axis, each) for axis, each in enumerate(parts)))

    def __setitem__(self, key: object, value: object) -> None:
        target = self[key]
        if not isinstance(target, ElementRef):
            raise LanguageError(
                "a whole region of {name} cannot be assigned", name=self.name, hint="use T.copy"
            )
        store_element(target, value)

    def _box(self, parts: list[object]) -> RegionRef:
        """A box; one of which an extent is a value of the running kernel is a `MovingRef`."""
        start: list[Expr] = []
        extent: list[int] = []
        sizes: list[int | Expr] = []
        unknown: UnknownExtent | None = None
        for axis, part in enumerate(parts):
            try:
                lo, n = index_box(self, axis, part)
                extent.append(n)
                sizes.append(n)
            except UnknownExtent as error:
                unknown, lo = unknown or error, error.start
                sizes.append(error.size)
            start.append(lo)
        if unknown is not None:
            return MovingRef(self, tuple(start), tuple(sizes), unknown)
        return RegionRef(self, Region(self.buffer, tuple(start), extent=tuple(extent), place=here()))

    def _parts(self, key: object) -> list[object]:
        parts: list[object] = list(key) if isinstance(key, tuple) else [key]  # pyright: ignore[reportUnknownArgumentType]
        if any(each is Ellipsis for each in parts):
            dots = next(k for k, each in enumerate(parts) if each is Ellipsis)
            parts[dots : dots + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        if len(parts) != self.ndim:
            raise ShapeError(
                "{name} has {rank} dimensions, found indices for {count}",
                name=self.name,
                rank=self.ndim,
                count=len(parts),
                shape=self.shape,
                expected="one index for each dimension of {shape}",
                also=[("{name} is declared here", self.place)],
            )
        return parts

    # -- checks
    def check_scope(self) -> None:
        """Raise `LanguageError` when the body that allocated the buffer has ended."""
        if self.frame is None or self.frame in in_trace(self.name).frames:
            return
        raise LanguageError(
            "{name} is used after the block that allocates it has ended",
            name=self.name,
            also=[("{name} is allocated here", self.place)],
            hint="allocate it before the loop or branch",
        )

    def check_element(self, how: str) -> None:
        """Raise `LanguageError` where an element of this buffer cannot be read or written."""
        self.check_scope()
        builder = in_trace(self.name)
        if len(builder.frames) == 1:
            builder.outside(f"an element of {self.name}")
        if self.scope == "fragment" and builder.within("parallel") is None:
            # Every thread needs such an element; the fragment is kept where all see it.
            behind = builder.views.get(self.name, self.buffer)
            builder.lone.setdefault(behind.name, builder.place)
