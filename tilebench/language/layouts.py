"""Layouts as a person gives them: `T.Layout`, `T.Fragment` and `make_*_layout`.

A function of an element's indices is asked once, with names for the indices, and gives expressions. Of
memory on chip they are a hint, which changes no result: asked at each element they are a table, in which
`layout.fitted` finds a shape and strides, a swizzle, or digits of threads. Of an array in global memory
they say where each element lies, and every target obeys them (`placement.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..ir import Expr, Var, substitute
from ..layout import REPLICATED, Fragment, SharedLayout, atom_layout
from ..layout.fitted import fitted_fragment
from ..layout.permutation import refuse_strange, values_of
from .notes import note
from .tracing.builder import shown
from .tracing.expressions import Value
from .tracing.kinds import Scalar
from .tracing.promote import expr_of
from .tracing.values import BufferView

Forward = Callable[..., Any]


def _several(given: Any) -> Any:
    """What was given, or it alone."""
    several: Any = (tuple, list)
    return given if isinstance(given, several) else (given,)


def _sizes(shape: object) -> tuple[int | Expr, ...]:
    return tuple(size.expr if isinstance(size, Scalar) else int(size) for size in _several(shape))


def _asked(function: Forward, names: Sequence[str], extra: Sequence[str] = ()) -> Any:
    """What a function says of indices that are names."""
    return function(*(Value(Var(name)) for name in (*names, *extra)))


def _expressions(given: object) -> tuple[Expr, ...]:
    """An index or several, as expressions."""
    found = tuple(expr_of(part) for part in _several(given))
    for part in found:
        if not part.dtype.is_integer:
            raise LayoutError("a layout gives whole numbers, found {dtype}", dtype=part.dtype)
    return found


class ForwardLayout:
    """`T.Layout(shape, lambda i, j: [j, i])`: element (i, j) lies where (j, i) of a row-major array would.

    The extents of that array are one more than the greatest value of each index. The function gives an
    index, or a tuple or list of them, in whole-number arithmetic of its arguments. Raises `LayoutError` for
    anything else.
    """

    def __init__(self, shape: Any, forward_fn: Forward) -> None:
        self.shape = _sizes(shape)
        self.names = tuple(f"i{axis}" for axis in range(len(self.shape)))
        self.forward = _expressions(_asked(forward_fn, self.names))

    @property
    def index(self) -> list[Value]:
        """The index of an element's place, in names i0, i1, ... for its own indices."""
        return [Value(part) for part in self.forward]

    def get_input_shape(self) -> list[Any]:
        """The extents of what is laid out."""
        return [Value(size) if isinstance(size, Expr) else size for size in self.shape]

    def get_output_shape(self) -> list[int]:
        """The extents that the places span. Raises `LayoutError` where an extent is no number."""
        return [int(part.max(initial=0)) + 1 for part in self.tables()]

    def map_forward_index(self, indices: Sequence[Any]) -> list[Value]:
        """The index of the place of the element at these indices."""
        values = {name: expr_of(each) for name, each in zip(self.names, indices, strict=True)}
        return [Value(substitute(part, values)) for part in self.forward]

    def tables(self) -> list[Any]:
        """Each index of the place, for all elements."""
        extents = [size for size in self.shape if isinstance(size, int)]
        if len(extents) != len(self.shape):
            raise LayoutError("a layout of memory on chip has extents that are numbers")
        refuse_strange(dict(zip(self.names, self.shape, strict=True)), self.forward)
        return [values_of(part, self.names, extents) for part in self.forward]

    def offsets(self) -> Any:
        """The place of each element as one number."""
        number: Any = 0
        for part in self.tables():
            number = number * (int(part.max(initial=0)) + 1) + part
        return np.asarray(number, np.int64)


class ForwardFragment:
    """Which thread has which element of a tile: `T.Fragment(shape, lambda i, j: (thread, index))`.

    `forward_fn` takes the element's indices, and where `replicate` is more than 1 the number of the
    replica, and gives the thread and the number of the element there. `forward_thread_fn` gives the
    thread alone, and `forward_index_fn` the number. Raises `LayoutError` for what is no whole-number
    arithmetic.
    """

    def __init__(
        self, shape: Any, forward_fn: Forward | None = None, forward_thread_fn: Forward | None = None,
        replicate: int = 1, forward_index_fn: Forward | None = None,
    ) -> None:  # fmt: skip
        self.shape = _sizes(shape)
        self.names = tuple(f"i{axis}" for axis in range(len(self.shape)))
        self.replicate = replicate
        replica = ("rep",) if replicate > 1 else ()
        if forward_fn is not None:
            thread, index = _asked(forward_fn, self.names, replica)
        elif forward_thread_fn is not None:
            thread = _asked(forward_thread_fn, self.names, replica)
            index = _asked(forward_index_fn, self.names) if forward_index_fn is not None else [0]
        else:
            raise LayoutError("T.Fragment takes forward_fn, or forward_thread_fn and forward_index_fn")
        self.forward_thread = _expressions(thread)[0]
        self.forward_index = _expressions(index)

    def spread(self) -> Fragment | None:
        """The same in digits of the thread's and the element's number, None where it is no such layout."""
        extents = tuple(size for size in self.shape if isinstance(size, int))
        sizes = dict(zip(self.names, extents, strict=True))
        refuse_strange({**sizes, "rep": self.replicate}, (self.forward_thread,))
        refuse_strange(sizes, self.forward_index)
        thread = values_of(self.forward_thread, ("rep", *self.names), (self.replicate, *extents))
        number: Any = np.zeros(extents, np.int64)
        for part in (values_of(part, self.names, extents) for part in self.forward_index):
            number = number * (int(part.max(initial=0)) + 1) + part
        if thread.min(initial=0) < 0 or number.min(initial=0) < 0:
            raise LayoutError("a fragment's threads and their elements are numbered from 0 on")
        return fitted_fragment(extents, thread, number)


def loop_map(given: object, extents: tuple[int, ...] | None, word: str) -> Fragment | None:
    """The mapping of a loop's elements that `loop_layout=` asks for; None where nothing can be made of it.

    Raises `LayoutError` for what is no fragment, and one of other extents than the loop's.
    """
    if given is None:
        return None
    if not isinstance(given, (ForwardFragment, Fragment)):
        raise LayoutError(
            "{word}(loop_layout=...) takes a T.Fragment", word=word, text=shown(given), found="{text}"
        )
    found = given.spread() if isinstance(given, ForwardFragment) else given
    shape = given.shape if isinstance(given, ForwardFragment) else given.extents
    if extents is not None and shape != extents:
        raise LayoutError(
            "a mapping of extents {shape} does not fit a loop over {extents}", shape=shape, extents=extents
        )
    if found is None:
        note(f"{word}(loop_layout=...) is no digits of threads and values: the compiler chooses a mapping")
    return found


class Asked:
    """A layout of which a kind is asked for, and the compiler finds the rest: swizzled or not."""

    def __init__(self, swizzled: bool) -> None:
        self.swizzled = swizzled


def _extents(buffer: Any) -> tuple[int, ...]:
    return tuple(size for size in _sizes(buffer.shape) if isinstance(size, int))


def make_swizzled_layout(buffer: BufferView, k_major: bool = True, allow_pad: bool = True) -> Asked:
    """A layout without bank conflicts; which one is the compiler's to choose."""
    return Asked(True)


def make_mma_swizzle_layout(shared_buf: BufferView, is_smooth: bool = False) -> Asked:
    """A layout without bank conflicts, or with `is_smooth` rows one behind the other."""
    return Asked(not is_smooth)


def make_volta_swizzled_layout(buffer: BufferView, is_a: bool = True, k_inner: bool = True) -> Asked:
    """A layout without bank conflicts; which one is the compiler's to choose."""
    return Asked(True)


def make_wgmma_swizzled_layout(
    buffer: BufferView, continuity: int | None = None, k_major: bool = True
) -> SharedLayout | Asked:
    """The widest swizzle of `make_*_bank_swizzled_layout` that fits `continuity` elements of a row."""
    row = (continuity or _extents(buffer)[-1]) * buffer.dtype.bits // 8
    fitting = [width for width in (128, 64, 32) if row % width == 0]
    return _atom(buffer, fitting[0]) if fitting and len(_extents(buffer)) > 1 else Asked(True)


def _atom(buffer: BufferView, width: int) -> SharedLayout:
    return atom_layout(_extents(buffer), buffer.dtype.bits, width)


def make_full_bank_swizzled_layout(buffer: BufferView) -> SharedLayout:
    """Panels of 128 bytes, 16-byte units exchanged by XOR. `LayoutError` for narrower tiles."""
    return _atom(buffer, 128)


def make_half_bank_swizzled_layout(buffer: BufferView) -> SharedLayout:
    """Panels of 64 bytes, 16-byte units exchanged by XOR. `LayoutError` for narrower tiles."""
    return _atom(buffer, 64)


def make_quarter_bank_swizzled_layout(buffer: BufferView) -> SharedLayout:
    """Panels of 32 bytes, 16-byte units exchanged by XOR. `LayoutError` for narrower tiles."""
    return _atom(buffer, 32)


def make_linear_layout(buffer: BufferView) -> Asked | ForwardLayout:
    """Rows one behind the other."""
    return (
        ForwardLayout(buffer.shape, lambda *index: list(index)) if buffer.scope == "global" else Asked(False)
    )


def make_gemm_fragment_8x8() -> ForwardFragment:
    """8 by 8 elements of a warp, two neighbours of a row a thread."""

    def forward(i: Any, j: Any) -> tuple[Any, Any]:
        return i * 4 + j // 2, j % 2

    return ForwardFragment((8, 8), forward)


def make_gemm_fragment_8x8_transposed() -> ForwardFragment:
    """8 by 8 elements of a warp, two neighbours of a column a thread."""

    def forward(i: Any, j: Any) -> tuple[Any, Any]:
        return j * 4 + i // 2, i % 2

    return ForwardFragment((8, 8), forward)


def make_fully_replicated_layout_fragment(buffer: BufferView, threads: int) -> Fragment:
    """All elements in each of `threads` threads."""
    extents = _extents(buffer)
    value = tuple((extent, dim, 1) for dim, extent in reversed(list(enumerate(extents))))
    return Fragment(extents, ((threads, REPLICATED, 0),), value)
