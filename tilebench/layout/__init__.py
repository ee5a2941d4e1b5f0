"""Layouts: the CuTe algebra, swizzled shared memory, fragments, and their computed costs."""

from .address import offset_expr, swizzle_expr
from .algebra import (
    IntTuple,
    Layout,
    coalesce,
    column_major,
    from_modes,
    join,
    offsets,
    row_major,
)
from .analysis import (
    BankConflicts,
    Coalescing,
    bank_conflicts,
    coalescing,
    vector_width,
)
from .choose import AccessPattern, PricedLayout, best_swizzle, candidates, price
from .composition import Tiler, compose
from .conversion import WarpConversion, convert_in_warps
from .divide import logical_divide, logical_product, zipped_divide
from .draw import draw_banks, draw_fragment
from .fragment import REPLICATED, Digit, Fragment, FragmentMode
from .inverses import complement, left_inverse, right_inverse
from .shared import SharedLayout, atom_layout
from .spread import gemm_microtile, spread
from .swizzle import Swizzle

__all__ = [
    "REPLICATED",
    "AccessPattern",
    "BankConflicts",
    "Coalescing",
    "Digit",
    "Fragment",
    "FragmentMode",
    "IntTuple",
    "Layout",
    "PricedLayout",
    "SharedLayout",
    "Swizzle",
    "Tiler",
    "WarpConversion",
    "atom_layout",
    "bank_conflicts",
    "best_swizzle",
    "candidates",
    "coalesce",
    "coalescing",
    "column_major",
    "complement",
    "compose",
    "convert_in_warps",
    "draw_banks",
    "draw_fragment",
    "from_modes",
    "gemm_microtile",
    "join",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "offset_expr",
    "offsets",
    "price",
    "right_inverse",
    "row_major",
    "spread",
    "swizzle_expr",
    "vector_width",
    "zipped_divide",
]
