"""Calls of a kernel function whose own body is the kernel: arrays go in, what `T.empty` made comes back."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, nearest
from ...frontend.eager import EagerForm, constants_of
from ...ir import Expr, show
from ...language.annotations import TensorSpec
from ...runtime.describe import describe, dtype_name
from ...runtime.dlpack import row_major
from ...runtime.packed import BYTES
from ..kept import quick_key
from ..snapshot.outside import Outside

if TYPE_CHECKING:
    from ..function import JitFunction

# Constants of calls that are kept, by the shapes of their arrays.
_MOST_SHAPES = 256


class EagerCalls:
    """Splits a call into what the kernel is compiled for and what it runs on."""

    def __init__(self, kernels: JitFunction, form: EagerForm) -> None:
        self.kernels = kernels
        self.form = form
        self.signature = inspect.signature(kernels.function)
        self._known: dict[Hashable, tuple[Outside, dict[str, int]]] = {}

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the kernel for these arrays; returns what the function returns.

        Raises `ArgumentError` for arrays that are missing or whose shapes contradict each other.
        """
        compiled, arrays = self.split(args, kwargs)
        return self.kernels.kernel((), compiled)(*arrays)

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """What a call's kernel is compiled for, by name, and what it runs on. Raises as a call does."""
        named = {name: value for name, value in kwargs.items() if name in self.form.constants}
        rest = {name: value for name, value in kwargs.items() if name not in named}
        known = [*self.signature.parameters, *self.form.constants]
        for name in rest:
            close = nearest(name, known) if name not in known else []
            if close:
                raise self._refused(f"it has no parameter {name}", f"did you mean {close[0]}?")
        try:
            given = self.signature.bind_partial(*args, **rest).arguments
        except TypeError as error:
            raise self._refused(str(error)) from None
        missing = [name for name in self.form.passed if name not in given]
        if missing:
            raise self._refused(f"the call passes no {', '.join(missing)}")
        arrays = [given.pop(name) for name in self.form.passed]
        for name, value in given.items():
            if _shape(value):
                raise self._refused(
                    f"{name} is an array, and nothing says that the kernel takes one",
                    f'say what it is in front of the kernel: {name}: T.Tensor((M, N), "float32")',
                )
        compiled = {**given, **named}
        if self.form.constants:
            compiled.update(self._constants(compiled, arrays))
        return compiled, arrays

    def _constants(self, compiled: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, int]:
        """The constants that the shapes of these arrays tell, kept while what the function sees stands."""
        shapes = tuple(_shape(array) for array in arrays)
        steps = tuple(_strides(array) for array in arrays) if self.form.strided else ()
        kinds = tuple(getattr(array, "dtype", None) for array in arrays)
        plain = quick_key((), compiled, "")
        found = self._known.get((plain, shapes, steps, kinds)) if plain is not None else None
        if found is not None and found[0].holds():
            return found[1]
        values = self.kernels.completed(compiled)
        known = {
            name: shape for name, shape in zip(self.form.passed, shapes, strict=True) if shape is not None
        }
        strides = {
            name: step for name, step in zip(self.form.passed, steps, strict=False) if step is not None
        }
        names = zip(self.form.passed, kinds, strict=True)
        packed = [name for name, kind in names if dtype_name(kind) in BYTES]
        kernels = self.kernels
        numbers = constants_of(kernels.function, kernels.text, self.form, values, known, strides, packed)
        if plain is not None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            self._known[plain, shapes, steps, kinds] = self.kernels.outside(), numbers
        return numbers

    def _refused(
        self,
        why: str,
        hint: str = "a call runs the kernel on its arrays; .compile(...) makes it for given sizes",
    ) -> ArgumentError:
        return ArgumentError(
            "{name} cannot be called so: {why}", at=self.kernels.place, name=self.kernels.name, why=why,
            expected=f"{self.kernels.name}{self.signature}".replace("{", "{{").replace("}", "}}"),
            hint=hint,
        )  # fmt: skip


def _shape(array: Any) -> tuple[int, ...] | None:
    """The shape of an array; None for a scalar, and for what has none that can be read so."""
    if isinstance(array, TensorSpec):
        return _numbers(array.shape)
    shape = getattr(array, "shape", None)
    return tuple(int(extent) for extent in shape) if shape is not None else None


def _numbers(sizes: Sequence[int | Expr]) -> tuple[int, ...]:
    """Extents or strides of what stands in the place of an array. Raises `ArgumentError` for names."""
    for size in sizes:
        if not isinstance(size, int):
            raise ArgumentError(
                "T.Tensor in the place of an array has the size {size}", size=show(size), expected="a number"
            )
    return tuple(size for size in sizes if isinstance(size, int))


def _strides(array: Any) -> tuple[int, ...] | None:
    """The strides of an array, or of what stands for one; None for a scalar, or what a call will refuse."""
    shape = _shape(array)
    if shape is None:
        return None
    if isinstance(array, TensorSpec):
        return row_major(shape) if array.strides is None else _numbers(array.strides)
    try:
        return describe(array).strides
    except ArgumentError:
        return None


__all__ = ["EagerCalls"]
