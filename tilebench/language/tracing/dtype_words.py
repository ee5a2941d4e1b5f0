"""What a kernel may give where a dtype is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtypes import ALL, DType, dtype_of
from .builder import shown


def plain(given: object) -> DType:
    """The IR's dtype for a string, a word, a NumPy or torch type. Raises `DTypeError` for others."""
    # NumPy would take None for float64, and an array or tile for its dtype: too many slips pass.
    word: Any = given
    if isinstance(word, (DType, str, type, np.dtype)) or type(word).__module__.startswith("torch"):
        return ALL[dtype_of(given).name]
    name = getattr(given, "name", "")
    if hasattr(given, "lanes"):
        raise DTypeError(
            "T.{name} is a type of values, not of elements in memory", name=name, element=word.element,
            hint="give the buffer one more dimension, of {element!r}; A[i : i + n] = v stores a vector",
        )  # fmt: skip
    raise DTypeError(
        "{what} is no dtype",
        what=shown(given),
        name=name,
        hint="write {name}.dtype" if name and hasattr(given, "dtype") else 'write T.float16 or "float16"',
    )
