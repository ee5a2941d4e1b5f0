"""A second name for the memory of a buffer: `T.view`, `T.reshape`, `T.Tensor(shape, dtype, A.data)`.

While a kernel is traced a view is a buffer of its own; at its end each use of it is one of the buffer behind
it (`closing/open_views.py`), and nobody after that has to know of two names for the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import Buffer, DType
from .dynamic import global_shape
from .tracing.builder import inside_kernel, shown
from .tracing.dtype_words import plain
from .tracing.operands import shape_of
from .tracing.values import BufferView, Storage
from .view_index import Size, product, same_size

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Shape


def view(src: BufferView, shape: Shape | None = None, dtype: DTypeLike | None = None) -> BufferView:
    """The memory of a buffer under another shape, dtype or both: `T.view(S, dtype="uint16")`.

    Without `shape` the last extent grows or shrinks with the dtype. Bytes are kept, the least significant
    first. Elements of a wider dtype can be read and written, those of a narrower one only read: two threads
    would write parts of one element. Raises `ShapeError` where the bits do not add up, `DTypeError` for
    bools and dtypes of 4 bits in another dtype, `LanguageError` for an array with strides.
    """
    return viewed("T.view", src, shape, dtype)


def reshape(src: BufferView, shape: Shape) -> BufferView:
    """The memory of a buffer under another shape, row-major: `T.reshape(A, (m * n, k))`. See `T.view`."""
    return viewed("T.reshape", src, shape, None)


def viewed(word: str, src: object, shape: object | None, dtype: object | None) -> BufferView:
    """The view; `src` is a buffer or what its `data` gives."""
    builder = inside_kernel(word)
    source = src.view if isinstance(src, Storage) else src
    if not isinstance(source, BufferView):
        raise LanguageError("{word} takes a buffer", word=word, text=shown(src), found="{text}")
    source.check_scope()
    root = builder.views.get(source.name, source.buffer)
    if root.strides is not None:
        raise LanguageError(
            "{word} of {name}, an array with strides of its own", word=word, name=root.name,
            also=[(f"{root.name} is declared here", source.place)],
            hint="its elements do not lie one behind the other: T.copy it into a tile first",
        )  # fmt: skip
    wanted = source.buffer.dtype if dtype is None else plain(dtype)
    _check_dtype(word, root, source, wanted)
    extents = _extents(word, source, shape, wanted)
    _check_bits(word, source, extents, wanted)
    made = Buffer(builder.allocation_name(word), extents, wanted, root.scope)
    builder.views[made.name] = root
    return BufferView(made, source.frame, builder.place)


def _extents(word: str, source: BufferView, shape: object | None, wanted: DType) -> tuple[Size, ...]:
    buffer, bits = source.buffer, wanted.bits
    if shape is not None:
        return global_shape(shape, word) if buffer.scope == "global" else shape_of(shape, word)
    last = buffer.shape[-1]
    total = last * buffer.dtype.bits
    if isinstance(total, int):
        return (*buffer.shape[:-1], total // bits)
    return (
        *buffer.shape[:-1],
        total // bits if bits > buffer.dtype.bits else last * (buffer.dtype.bits // bits),
    )


def _check_dtype(word: str, root: Buffer, source: BufferView, dtype: DType) -> None:
    if dtype != root.dtype and (
        "bool" in (dtype.kind, root.dtype.kind) or 4 in (dtype.bits, root.dtype.bits)
    ):
        raise DTypeError(
            "{word} of {a} as {b}", word=word, a=root.dtype, b=dtype,
            also=[(f"{source.name} comes from here", source.place)],
            hint="bools and dtypes of 4 bits keep their dtype",
        )  # fmt: skip


def _check_bits(word: str, source: BufferView, extents: tuple[Size, ...], dtype: DType) -> None:
    buffer = source.buffer
    old = product((*buffer.shape, buffer.dtype.bits))
    new = product((*extents, dtype.bits))
    if not same_size(old, new):
        raise ShapeError(
            "{word} gives {name} another size", word=word, name=source.name,
            a=f"{list(source.shape)} of {buffer.dtype}", b=f"{list(extents)} of {dtype}",
            expected="as many bits as {a}", found="{b}",
            also=[(f"{source.name} comes from here", source.place)],
        )  # fmt: skip


__all__ = ["reshape", "view"]
