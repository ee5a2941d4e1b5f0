"""Calls of a kernel function whose own body is the kernel: arrays go in, what `T.empty` made comes back."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, nearest
from ...frontend.eager import EagerForm, constants_of
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
        plain = quick_key((), compiled, "")
        found = self._known.get((plain, shapes)) if plain is not None else None
        if found is not None and found[0].holds():
            return found[1]
        values = self.kernels.completed(compiled)
        known = {
            name: shape for name, shape in zip(self.form.passed, shapes, strict=True) if shape is not None
        }
        numbers = constants_of(self.kernels.function, self.kernels.text, self.form, values, known)
        if plain is not None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            self._known[plain, shapes] = self.kernels.outside(), numbers
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
    shape = getattr(array, "shape", None)
    return tuple(int(extent) for extent in shape) if shape is not None else None


__all__ = ["EagerCalls"]
