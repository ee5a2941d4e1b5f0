"""Arrays behind addresses that the kernel reads: `T.make_tensor`, and `T.ptr` for tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import AllocStmt, Buffer, Expr, Word, attribute, node, operand, result
from .dynamic import global_shape, size_of
from .stages import EVERY
from .tracing.builder import for_tiles, here, in_trace
from .tracing.dtype_words import plain
from .tracing.expressions import WORDS as DTYPES
from .tracing.operands import shape_of, whole_number
from .tracing.promote import expr_of
from .tracing.values import BufferView

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Shape, Whole

# What an address of a card is: tables of them are arrays of it.
ptr = DTYPES["int64"]


@node
class TensorAt(AllocStmt):
    """`A = T.make_tensor((M, K), T.float16, A_ptrs[i])`: the array in device memory at an address."""

    word = "make_tensor"
    stages = EVERY
    scope = "global"
    buffer: Buffer = result()
    address: Expr = operand()
    strides: tuple[int | Expr, ...] | None = attribute(default=None)
    align: int = attribute(default=16)

    @property
    def of_call(self) -> bool:
        return False

    @classmethod
    def named(cls, buffer: Buffer, fields: Mapping[str, Any]) -> Buffer:
        return replace(buffer, strides=fields.get("strides"), align=fields.get("align", 16))


def make_tensor(
    ptr: Whole,
    shape: Shape,
    dtype: DTypeLike = "float32",
    strides: Shape | None = None,
    align: int = 16,
) -> BufferView:
    """The array in device memory at an address: `A = T.make_tensor(A_ptrs[i], (M, K), "float16")`.

    `A_ptrs` is a table of addresses, `T.Tensor((n,), T.ptr)`, which are int64 (`x.data_ptr()`); `ptr` may be
    a scalar of such. `shape` are constant extents, rows lie behind each other or `strides` elements apart;
    in front of `with T.Kernel` both may be made of scalars of the signature, `m: T.int32`. The address is a
    multiple of `align` bytes, as every library's arrays are; indices outside of the shape are tested as of
    any array. Nobody can check the rest: that it lies there, and that no two such
    arrays, of which one is written, share elements. Only a card runs it. Raises `LanguageError` in
    T.Pipelined and where the address is another in each thread, `DTypeError` for what is no address,
    `ShapeError` for strides of another number of dimensions.
    """
    builder = in_trace("T.make_tensor")
    in_front = len(builder.frames) == 1
    if not in_front:
        for_tiles("T.make_tensor")
    if builder.within("pipelined") is not None:
        raise LanguageError(
            "T.make_tensor stands inside T.Pipelined",
            hint="make it in front of the loop, and index it inside",
        )
    address = expr_of(ptr)
    if address.dtype.name not in ("int64", "uint64"):
        raise DTypeError(
            "T.make_tensor takes an address", found="{dtype}", dtype=address.dtype,
            expected="int64 or uint64: a table is T.Tensor((n,), T.ptr)",
        )  # fmt: skip
    sizes = global_shape if in_front else shape_of
    extents, element = sizes(shape, "T.make_tensor"), plain(dtype)
    steps = None if strides is None else _steps(strides, len(extents), in_front)
    least = max(1, element.bits // 8)
    if align < least or align & (align - 1):
        raise LanguageError(
            "T.make_tensor has align={align}", align=align, least=least,
            expected="a power of two of at least {least} bytes",
        )  # fmt: skip
    name = builder.allocation_name("T.make_tensor")
    buffer = Buffer(name, extents, element, "global", steps, align)
    made = TensorAt(buffer, address, strides=steps, align=align, place=here())
    if in_front:
        builder.tensors.append(made)
    else:
        builder.emit(made)
    return BufferView(buffer, builder.frames[-1], builder.place)


def _steps(strides: Shape, rank: int, in_front: bool) -> tuple[int | Expr, ...]:
    """Strides in elements: numbers, and in front of the kernel what is made of a call's scalars."""
    word, given = "T.make_tensor", tuple(cast("Iterable[Whole]", strides))
    if len(given) != rank:
        raise ShapeError(
            "T.make_tensor has {count} strides for {rank} dimensions", count=len(given), rank=rank
        )
    if in_front:
        return tuple(size_of(step, word, "a stride", least=1) for step in given)
    return tuple(whole_number(step, word, "a stride") for step in given)


def make_tensor_from_addr(
    addr: Whole,
    shape: Shape,
    dtype: DTypeLike = "float32",
    strides: Shape | None = None,
    storage_scope: str = "global",
) -> BufferView:
    """`T.make_tensor(addr, shape, dtype, strides)`. Raises `LanguageError` for memory on chip."""
    if storage_scope != "global":
        raise LanguageError(
            "T.make_tensor_from_addr has no storage_scope {scope!r}", scope=storage_scope, expected="'global'"
        )
    return make_tensor(addr, shape, dtype, strides)


WORDS = (("make_tensor", Word(TensorAt)),)

__all__ = ["make_tensor", "make_tensor_from_addr", "ptr"]
