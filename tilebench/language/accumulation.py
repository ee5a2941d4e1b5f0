"""The dtypes in which sums are formed: one rule for meanings, lowerings and the memory they need."""

from __future__ import annotations

from ..ir.dtypes import DType, boolean, float32


def gemm_sum_dtype(accumulator: DType) -> DType:
    """The dtype a gemm sums in: C's, or float32 for a narrower float."""
    return float32 if accumulator.is_float and accumulator.bits < 32 else accumulator


def reduction_dtype(kind: str, source: DType, target: DType) -> DType:
    """The dtype of a partial result of `sum`, `max` or `min`.

    It is formed, with the old value folded in, in the wider of both dtypes, so that 300 ones of int8 are 300
    in an int32; of floats in float32 at least, but for an extreme, which is an element. Bools are counted in
    the result's dtype, and integers that are summed into a float in that, float32 at least.
    """
    if source == boolean or (source == target and kind != "sum"):
        return target
    if target.is_float and not source.is_float:
        return float32 if target.bits < 32 else target
    widest = max((source, target), key=lambda dtype: dtype.bits)
    return float32 if widest.is_float and widest.bits < 32 else widest
