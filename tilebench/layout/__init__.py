"""Layouts: the CuTe algebra, swizzled shared memory, fragments, and their computed costs."""

from .algebra import (
    IntTuple,
    Layout,
    Tiler,
    coalesce,
    column_major,
    complement,
    compose,
    from_modes,
    join,
    left_inverse,
    logical_divide,
    logical_product,
    offsets,
    right_inverse,
    row_major,
    zipped_divide,
)
from .fragment import REPLICATED, Digit, Fragment, FragmentMode
from .spread import gemm_microtile, spread
from .swizzle import SharedLayout, Swizzle

__all__ = [
    "REPLICATED",
    "Digit",
    "Fragment",
    "FragmentMode",
    "IntTuple",
    "Layout",
    "SharedLayout",
    "Swizzle",
    "Tiler",
    "coalesce",
    "column_major",
    "complement",
    "compose",
    "from_modes",
    "gemm_microtile",
    "join",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "offsets",
    "right_inverse",
    "row_major",
    "spread",
    "zipped_divide",
]
