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
    offsets,
    right_inverse,
    row_major,
)
from .analysis import (
    BankConflicts,
    Coalescing,
    ConversionCost,
    bank_conflicts,
    coalescing,
    conversion_cost,
    vector_width,
)
from .choose import Access, Choice, best_swizzle, candidates, price
from .divide import logical_divide, logical_product, zipped_divide
from .draw import draw_banks, draw_fragment
from .fragment import REPLICATED, Digit, Fragment, FragmentMode
from .spread import gemm_microtile, spread
from .swizzle import SharedLayout, Swizzle

__all__ = [
    "REPLICATED",
    "Access",
    "BankConflicts",
    "Choice",
    "Coalescing",
    "ConversionCost",
    "Digit",
    "Fragment",
    "FragmentMode",
    "IntTuple",
    "Layout",
    "SharedLayout",
    "Swizzle",
    "Tiler",
    "bank_conflicts",
    "best_swizzle",
    "candidates",
    "coalesce",
    "coalescing",
    "column_major",
    "complement",
    "compose",
    "conversion_cost",
    "draw_banks",
    "draw_fragment",
    "from_modes",
    "gemm_microtile",
    "join",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "offsets",
    "price",
    "right_inverse",
    "row_major",
    "spread",
    "vector_width",
    "zipped_divide",
]
