"""The dtypes as a kernel writes them: `T.float16` names the type and, called, converts to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtypes import ALIASES, ALL, DType, dtype_of
from .builder import shown

if TYPE_CHECKING:
    from .values import Value


@dataclass(frozen=True, eq=False)
class DTypeWord(DType):
    """An element type that can be called: `T.float32(x)` is `T.cast(x, T.float32)`.

    It equals, and hashes as, the plain `DType` of the same name; it also equals that name.
    """

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):  # kernels compare `A.dtype == "float16"`
            return other == self.name
        return isinstance(other, DType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(ALL[self.name])

    def __call__(self, value: object) -> Value:
        """The value converted: floats round to nearest even, float to int goes towards zero."""
        from .promote import cast_value

        return cast_value(value, self)


WORDS: dict[str, DTypeWord] = {
    each.name: DTypeWord(each.name, each.bits, each.kind, each.mantissa) for each in ALL.values()
}
SHORT: dict[str, DTypeWord] = {name: WORDS[each.name] for name, each in ALIASES.items()}


def plain(given: object) -> DType:
    """The IR's dtype for a string, a word, a NumPy or torch type. Raises `DTypeError` for others."""
    # NumPy would take None for float64, and an array or tile for its dtype: too many slips pass.
    held: Any = given
    if isinstance(held, (DType, str, type, np.dtype)) or type(held).__module__.startswith("torch"):
        return ALL[dtype_of(given).name]
    name = getattr(given, "name", "")
    raise DTypeError(
        "{what} is no dtype",
        what=shown(given),
        name=name,
        hint="write {name}.dtype" if name and hasattr(given, "dtype") else 'write T.float16 or "float16"',
    )


def word_for(dtype: DType) -> DTypeWord:
    """The callable dtype of the same name."""
    return WORDS[dtype.name]
