"""What stands in a kernel's signature: `T.Tensor`, `T.StridedTensor`, and `@T.prim_func` itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..errors import LanguageError, ShapeError
from ..ir import DType, Expr
from .dynamic import global_shape, size_of
from .tracing.dtype_words import plain
from .tracing.expressions import Value
from .views import viewed

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Shape
    from .tracing.values import BufferView, Storage


@dataclass(frozen=True)
class TensorSpec:
    """A parameter that is an array in global memory. `strides` are in elements, None: row-major."""

    shape: tuple[int | Expr, ...]
    dtype: DType
    strides: tuple[int | Expr, ...] | None = None


class Tensor:
    """An array in global memory, row-major: `A: T.Tensor((M, K), "float16")`.

    `T.Tensor[[M, K], "float16"]` is the same, `T.Tensor[[M, K]]` is one of float32.
    `shape` is an extent, or a tuple or list of extents, each an integer of at least 0 or made of names of
    `T.dynamic`. Gives a `TensorSpec`; with `data=A.data`, in a kernel, a view of A as `T.view` does.
    Raises `ShapeError`, `DTypeError`.
    """

    def __new__(  # type: ignore[misc]
        cls, shape: Shape, dtype: DTypeLike = "float32", data: Storage | None = None
    ) -> TensorSpec | BufferView:
        if data is not None:
            return viewed("T.Tensor", data, shape, dtype)
        return TensorSpec(global_shape(shape, "T.Tensor"), plain(dtype))

    def __class_getitem__(cls, given: Any) -> TensorSpec:
        parts = cast("list[Any]", list(given) if isinstance(given, tuple) else [given])  # pyright: ignore[reportUnknownArgumentType]
        alone = all(isinstance(part, (int, Value)) for part in parts)
        if not alone and len(parts) == 1:
            parts.append("float32")
        if not alone and len(parts) != 2:
            raise LanguageError(
                "T.Tensor[...] takes a shape and a dtype", text=repr(cast("object", given)), found="{text}",
                expected="T.Tensor[[M, K], dtype]",
            )  # fmt: skip
        shape, dtype = (parts, "float32") if alone else parts
        return TensorSpec(global_shape(shape, "T.Tensor"), plain(dtype))


class StridedTensor:
    """An array in global memory with strides of its own, in elements, one a dimension, each 1 or more.

    `T.StridedTensor[[M, N], [s, 1], dtype]` is the same as with parentheses. Extents and strides may be
    made of names of `T.dynamic`. Gives a `TensorSpec`. Raises `ShapeError` for another number of strides.
    """

    def __new__(cls, shape: Shape, strides: Shape, dtype: DTypeLike = "float32") -> TensorSpec:  # type: ignore[misc]
        extents = global_shape(shape, "T.StridedTensor")
        parts: list[object] = list(strides) if isinstance(strides, (tuple, list)) else [strides]  # pyright: ignore[reportUnknownArgumentType]
        if len(parts) != len(extents):
            raise ShapeError(
                "T.StridedTensor has {rank} dimensions and {count} strides", rank=len(extents),
                count=len(parts), expected="one stride for each dimension",
            )  # fmt: skip
        steps = tuple(
            size_of(each, "T.StridedTensor", f"stride {axis}", least=1) for axis, each in enumerate(parts)
        )
        return TensorSpec(extents, plain(dtype), steps)

    def __class_getitem__(cls, given: object) -> TensorSpec:
        if not isinstance(given, tuple) or len(given) != 3:  # pyright: ignore[reportUnknownArgumentType]
            raise LanguageError(
                "T.StridedTensor[...] takes a shape, strides and a dtype", text=repr(given), found="{text}",  # pyright: ignore[reportUnknownArgumentType]
                expected="T.StridedTensor[[M, K], [s, 1], dtype]",
            )  # fmt: skip
        return cls(*cast("tuple[Shape, Shape, DTypeLike]", given))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class PrimFunc:
    """A kernel's function, not yet traced. `scope` holds the names around its definition.

    Annotations that are text (under `from __future__ import annotations`) may use names that the
    body does not, which Python then does not keep for it; they are looked up in `scope`.
    """

    function: Callable[..., Any]
    scope: dict[str, Any]

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __call__(self, *_: object, **__: object) -> None:
        raise LanguageError(
            "a @T.prim_func is compiled, not called",
            hint="return it from a @tilebench.jit function and call what that gives",
        )


def prim_func(function: Callable[..., Any]) -> PrimFunc:
    """Mark a function as the kernel: its body is read in the tile language, never run by Python."""
    if not hasattr(function, "__code__"):
        raise LanguageError("@T.prim_func marks a function, found {kind}", kind=type(function).__name__)
    return PrimFunc(function, dict(sys._getframe(1).f_locals))  # pyright: ignore[reportPrivateUsage]
