"""The dtypes in which sums are formed: one rule for lowerings and for the memory they need."""

from __future__ import annotations

from ..ir.dtypes import DType, float32


def gemm_sum_dtype(accumulator: DType) -> DType:
    """The dtype a gemm sums in: C's, or float32 for a narrower float."""
    return float32 if accumulator.is_float and accumulator.bits < 32 else accumulator


def reduction_dtype(kind: str, source: DType, target: DType) -> DType:
    """The dtype of a partial result.

    Sums of floats narrower than float32 are formed in float32, sums of integers in the wider of both
    dtypes, so that 300 ones of int8 are 300 in an int32; maxima and minima are what they came from.
    """
    if kind != "sum":
        return source
    if source.is_float:
        return float32 if source.bits < 32 else source
    return target if target.bits > source.bits else source
