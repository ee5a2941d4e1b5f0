"""What operations on tiles mean in NumPy, and their error bounds.

A row of `MEANINGS` belongs to one class of statements. The reference gives it the boxes that the
statement reads and the scalars it holds, and stores what comes back into the box it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.dtypes import DType
from ..accumulation import reduction_dtype
from ..copy import Copy, Fill
from ..extensions import meaning_of as _meaning_elsewhere
from ..gemm import Gemm
from ..reduce import BITS, Reduce, Scan
from ..votes import WarpVote
from .conversion import cast_bound, cast_meaning
from .inexact import DOUBLE_ROUNDOFF, Inexact, exact, inexact, limits, narrows, rounded, settled
from .rounding import narrowed
from .votes import vote_bound, vote_meaning


@dataclass(frozen=True)
class TileMeaning:
    """What one class of statements gives: `plain` the values, `bound` the same with bounds of their errors.

    Both take the statement, then its scalar operands, then the boxes that it reads, each in the order
    of the node's fields; the marks of the fields say which those are and which region takes the result.
    """

    plain: Callable[..., Any]
    bound: Callable[..., Any]
    # Operations for each element of the first region read; those of a gemm follow from its extents.
    operations: float = 0.0


# -- copy and fill


def copy_meaning(op: Copy, source: Any) -> Any:
    """`T.copy`: every element converted to the dtype of the other side."""
    return cast_meaning(source, op.src.buffer.dtype, op.dst.buffer.dtype)


def copy_bound(op: Copy, source: Any) -> Any:
    """A copy adds an error only where it narrows."""
    return cast_bound(source, op.src.buffer.dtype, op.dst.buffer.dtype)


def fill_meaning(op: Fill, value: Any) -> Any:
    """`T.fill`: one value for the whole box."""
    return value


def _with_overflow_on_the_way(
    value: Any, sizes: Any, carried: Any, dtype: DType, finite_sizes: Callable[[], Any], cut: bool = False
) -> Any:
    """The carried error of sums, infinite where a partial sum may leave the dtype though the whole does not.

    `sizes` are the sums of magnitudes: as large as the whole where all terms have one sign. A whole that is
    infinite by a term of its own is NaN where the other terms, of `finite_sizes`, leave the dtype first. Of
    sums that are `cut` off towards zero no overflow is sure: they may stop at the largest number.
    """
    edge = limits(dtype).overflow
    # Any, not the largest: that is NaN where one element is.
    if not (sizes >= edge).any():
        return carried
    passes = (sizes >= edge) & np.isfinite(value) & (cut | (np.abs(value) < sizes))
    infinite = np.isinf(value)
    if infinite.any():
        passes |= infinite & (finite_sizes() >= edge)
    return np.where(passes, np.inf, carried)


def _finite(sizes: Any) -> Any:
    return np.where(np.isfinite(sizes), sizes, 0.0)


# -- matrix product


def accumulation_roundoff(operand: DType, accumulator: DType, cut: bool = False) -> float:
    """The relative error of one addition inside a gemm.

    Matrix units cut off instead of rounding when operands are narrower than the accumulator: 2u
    (Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, 2021). Those of
    Hopper cut off each term of 32 8-bit float products 13 bits behind the largest's point, and their sum
    once more. `cut`: operands are cut off to fewer bits.
    """
    if operand.is_float and operand.bits == 8:
        return max(2.0**-13 * 35 / 32, 2 * accumulator.unit_roundoff)
    return (2.0 if cuts_off(operand, cut) else 1.0) * accumulator.unit_roundoff


def cuts_off(operand: DType, cut: bool = False) -> bool:
    """Whether matrix units may cut off the sums of such operands instead of rounding them."""
    return operand.bits < 32 or cut


def gamma(count: int, u: float) -> float:
    """`count * u / (1 - count * u)`, infinity when that bound breaks down (Higham, lemma 3.1)."""
    return count * u / (1.0 - count * u) if count * u < 1.0 else float("inf")


def _matrices(op: Gemm, a: Any, b: Any) -> tuple[Any, Any]:
    a, b = a.reshape(a.shape[-2:]), b.reshape(b.shape[-2:])
    return (a.T if op.transpose_A else a), (b.T if op.transpose_B else b)


def gemm_meaning(op: Gemm, clear: Any, a: Any, b: Any, c: Any = None) -> Any:
    """`T.gemm`: `C + op(A) @ op(B)`, or the product alone when `clear`.

    Floats are multiplied and summed in the accumulator's dtype, float32 at least, and rounded to it
    once; integers are exact modulo 2**bits. Leading extents of operands are 1.
    """
    target = op.c.buffer.dtype
    x, y = _matrices(op, a, b)
    if target.is_float:
        kind: Any = np.float64 if target.bits == 64 else np.float32
        product = x.astype(kind) @ y.astype(kind)
        return narrowed(product if clear else product + c.reshape(product.shape).astype(kind), target)
    product = _integer_product(x, y, op.a.buffer.dtype, target)
    return product if clear else product + c.reshape(product.shape)


def _integer_product(x: Any, y: Any, operand: DType, target: DType) -> Any:
    # A double holds every partial sum of 8- and 16-bit products exactly (2**30 * k < 2**53), and
    # its product is 20 times as fast as NumPy's for integers.
    if operand.bits <= 16:
        return (x.astype(np.float64) @ y.astype(np.float64)).astype(np.int64).astype(target.numpy)
    return x.astype(target.numpy) @ y.astype(target.numpy)


def gemm_bound(op: Gemm, clear: Any, a: Any, b: Any, c: Any = None) -> Any:
    """The same with a bound for sums in any order, fused or not.

    With E the operands' errors: `|A| Eb + Ea |B| + Ea Eb` is carried, and the k products and the old
    C pass through at most k + 1 roundings: `gamma(k + 1) * (|A| |B| + |C| + carried)` (Higham,
    equation 3.13 and the running form of section 3.3). The final rounding of a narrow C is in it.
    """
    target = op.c.buffer.dtype
    if not target.is_float:
        return _integer_bound(op, clear, a, b, c)
    x, y = inexact(a), inexact(b)
    left, right = _matrices(op, x.value, y.value)
    left_error, right_error = _matrices(op, x.error, y.error)
    if op.allow_tf32:
        left_error, right_error = left_error + _cut_to_tf32(left), right_error + _cut_to_tf32(right)
    k = left.shape[-1]
    # A magnitude of infinity times a zero of the other side is NaN in the value, and handled there.
    left_size, right_size = np.abs(left), np.abs(right)
    sizes = left_size @ right_size
    value = left @ right
    carried: Any = left_size @ right_error if right_error.any() else np.zeros(value.shape)
    if left_error.any():
        carried += left_error @ (right_size + right_error)
    wild: Any = (left_error == np.inf).any(axis=1)[:, None] | (right_error == np.inf).any(axis=0)
    if wild.any():
        # What may be infinite makes a zero beside it NaN.
        carried = np.where(wild, np.inf, carried)
    if not clear and c is not None:
        old = inexact(c)
        before = old.value.reshape(value.shape)
        value += before
        sizes += np.abs(before)
        carried += old.error.reshape(value.shape)
    else:
        before = np.zeros(())

    def finite_sizes() -> Any:
        return _finite(left_size) @ _finite(right_size) + _finite(np.abs(before))

    cut = target.bits == 32 and cuts_off(op.a.buffer.dtype, op.allow_tf32)
    carried = _with_overflow_on_the_way(value, sizes, carried, target, finite_sizes, cut)
    u = accumulation_roundoff(op.a.buffer.dtype, target, op.allow_tf32) + DOUBLE_ROUNDOFF
    lost = (k + 1) * 0.5 * limits(target).subnormal
    # In place: with a dozen temporaries of the tile's size this was half the time of a gemm's bound.
    error = sizes + carried
    error *= gamma(k + 1, u)
    error += carried
    error += lost if sizes.min(initial=np.inf) > 0 else np.where(sizes > 0, lost, 0.0)
    return settled(value, error, carried, target)


def _cut_to_tf32(values: Any) -> Any:
    """What operands lose that are cut off behind 10 bits of mantissa: at most 2^-10, and all below 2^-126."""
    return np.where(np.isfinite(values), np.abs(values) * 2.0**-10 + 2.0**-126 * (values != 0), 0.0)


def _integer_bound(op: Gemm, clear: Any, a: Any, b: Any, c: Any) -> Any:
    sides = [inexact(each) for each in ((a, b) if c is None else (a, b, c))]
    value = gemm_meaning(op, clear, *(each.value for each in sides))
    left, right = _matrices(op, sides[0].value.astype(np.float64), sides[1].value.astype(np.float64))
    left_error, right_error = _matrices(op, sides[0].error, sides[1].error)
    error = np.abs(left) @ right_error + left_error @ (np.abs(right) + right_error)
    if not clear and c is not None:
        error = error + sides[2].error.reshape(error.shape)
    return Inexact(value, error)


# -- reductions

_FOLD: Mapping[str, Any] = {
    "sum": np.add, "max": np.fmax, "min": np.fmin, "max_nan": np.maximum, "min_nan": np.minimum,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}  # fmt: skip


def _computed(dtype: DType) -> Any:
    """The dtype that NumPy computes in: narrow floats in float32, which holds all of them."""
    return np.float32 if dtype.is_float and dtype.bits < 32 else dtype.numpy


def _formed(op: Reduce) -> DType:
    return reduction_dtype(op.kind, op.src.buffer.dtype, op.dst.buffer.dtype)


def _start(op: Reduce) -> Any:
    """What a reduction starts from: 0, the least or the most of the dtype it is formed in."""
    return start_of(op.kind, _formed(op))


def start_of(kind: str, dtype: DType) -> Any:
    """The value that changes no result of a reduction."""
    if kind in ("sum", "bitor", "bitxor"):
        return 0
    if kind == "bitand":
        return dtype.most if dtype.kind == "uint" else -1
    return dtype.least if kind.startswith("max") else dtype.most


def reduce_meaning(op: Reduce, source: Any, old: Any = None) -> Any:
    """`T.reduce_sum` and its kin along one dimension; without `clear` the old result is folded in, once.

    They are formed in the wider of both dtypes, of floats float32 at least, and converted once. Of maxima
    and minima a NaN loses against a number, as in `T.max`, and a line of NaN alone gives the start: minus
    infinity of a maximum.
    """
    target, fold = op.dst.buffer.dtype, _FOLD[op.kind]
    kind: Any = _computed(_formed(op))
    total = fold.reduce(source.astype(kind), axis=op.dim, initial=_start(op))
    if old is not None:
        total = fold(total, old.reshape(total.shape).astype(kind))
    return narrowed(total, target) if target.is_float else total.astype(target.numpy)


def reduce_bound(op: Reduce, source: Any, old: Any = None) -> Any:
    """The same with a bound: a sum of n in any order has `gamma(n - 1) * sum |x|` (Higham, equation
    4.4); of maxima and minima the largest error of an element, which only candidates can contribute.
    """
    read, target = inexact(source), op.dst.buffer.dtype
    before = None if old is None else inexact(old)
    if op.kind == "sum":
        return _sum_bound(op, read, before, target)
    if op.kind in BITS:
        known = inexact(reduce_meaning(op, read.value, None if before is None else before.value))
        unsure = np.any(read.error > 0, axis=op.dim)
        if before is not None:
            unsure = unsure | (before.error.reshape(known.value.shape) > 0)
        return Inexact(known.value, np.where(unsure, np.inf, 0.0))
    fold = _FOLD[op.kind]
    elements = read.value if target.is_float else read.value.astype(_formed(op).numpy)
    value = fold.reduce(elements, axis=op.dim, initial=_start(op))
    sign = 1.0 if op.kind.startswith("max") else -1.0
    # An element whose interval lies wholly below the winner's cannot win.
    floor = np.fmax.reduce(sign * read.value - read.error, axis=op.dim, keepdims=True)
    candidate = sign * read.value + read.error >= floor
    error = np.max(np.where(candidate | np.isposinf(read.error), read.error, 0.0), axis=op.dim)
    if before is not None:
        error = np.maximum(error, before.error.reshape(value.shape))
        value = fold(value, before.value.reshape(value.shape))
    if not target.is_float:
        return Inexact(value.astype(target.numpy), error)
    if target.saturates and op.src.buffer.dtype == target:
        return settled(value, error, error, target)
    return cast_bound(Inexact(value, error), _formed(op), target)


def _sum_bound(op: Reduce, read: Inexact, before: Inexact | None, target: DType) -> Any:
    count = read.value.shape[op.dim]
    if not target.is_float:
        plain = reduce_meaning(op, read.value, None if before is None else before.value)
        carried = np.sum(read.error, axis=op.dim)
        return Inexact(plain, carried if before is None else carried + before.error.reshape(carried.shape))
    value = np.sum(read.value, axis=op.dim)
    sizes = np.sum(np.abs(read.value), axis=op.dim)
    carried = np.sum(read.error, axis=op.dim)
    if not op.src.buffer.dtype.is_float:
        carried = carried + target.unit_roundoff * sizes  # each integer is rounded on its way into the sum
    additions = max(count - 1, 0)
    if before is not None:
        value = value + before.value.reshape(value.shape)
        sizes = sizes + np.abs(before.value.reshape(sizes.shape))
        carried = carried + before.error.reshape(carried.shape)
        additions += 1

    def finite_sizes() -> Any:
        sums = np.sum(_finite(np.abs(read.value)), axis=op.dim)
        return sums if before is None else sums + _finite(np.abs(before.value.reshape(sums.shape)))

    carried = _with_overflow_on_the_way(value, sizes, carried, target, finite_sizes)
    # A sum of float32 into a float16 may be formed in either.
    error = carried + gamma(additions, target.unit_roundoff + DOUBLE_ROUNDOFF) * (sizes + carried)
    if narrows(op.src.buffer.dtype, target):
        return rounded(value, error, target)
    return settled(value, error, carried, target)


# -- scans


def scan_meaning(op: Scan, source: Any) -> Any:
    """`T.cumsum`: running sums along a dimension, formed as `T.reduce_sum` forms its own."""
    target = op.dst.buffer.dtype
    formed = reduction_dtype(op.kind, op.src.buffer.dtype, target)
    kind: Any = _computed(formed)
    turned = np.flip(source, op.dim).astype(kind) if op.reverse else source.astype(kind)
    if op.kind == "max":
        # A NaN in front gives where maxima start, as T.reduce_max of it does.
        sums = np.fmax(np.fmax.accumulate(turned, axis=op.dim), np.asarray(formed.least, kind))
    else:
        sums = np.cumsum(turned, axis=op.dim, dtype=kind)
    sums = np.flip(sums, op.dim) if op.reverse else sums
    return narrowed(sums, target) if target.is_float else sums.astype(target.numpy)


def scan_bound(op: Scan, source: Any) -> Any:
    """The same with a bound: element i is a sum of i + 1 in any order, `gamma(i) * sum |x|` (Higham, 4.4)."""
    known, target = inexact(source), op.dst.buffer.dtype

    def along(values: Any, total: Any = np.add) -> Any:
        turned = np.flip(values, op.dim) if op.reverse else values
        sums = total.accumulate(turned, axis=op.dim)
        return np.flip(sums, op.dim) if op.reverse else sums

    if op.kind == "max":
        formed = reduction_dtype("max", op.src.buffer.dtype, target)
        value = np.fmax(along(known.value, np.fmax), formed.least)
        error = along(known.error, np.maximum)
        if not target.is_float:
            return Inexact(value.astype(target.numpy), error)
        if target.saturates and formed == target:
            return settled(value.astype(np.float64), error, error, target)
        return cast_bound(Inexact(value.astype(np.float64), error), formed, target)

    carried = along(known.error)
    if not target.is_float:
        return Inexact(scan_meaning(op, known.value), carried)
    value, sizes = along(known.value), along(np.abs(known.value))
    carried = _with_overflow_on_the_way(
        value, sizes, carried, target, lambda: along(_finite(np.abs(known.value)))
    )
    count = known.value.shape[op.dim]
    u = target.unit_roundoff + DOUBLE_ROUNDOFF
    error = carried + gamma(max(count - 1, 0), u) * (sizes + carried)
    if narrows(op.src.buffer.dtype, target):
        return rounded(value, error, target)
    return settled(value, error, carried, target)


def _fill_bound(op: Fill, value: Any) -> Any:
    return value if isinstance(value, Inexact) else exact(value)


MEANINGS: Mapping[type, TileMeaning] = {
    Copy: TileMeaning(copy_meaning, copy_bound),
    Fill: TileMeaning(fill_meaning, _fill_bound),
    Gemm: TileMeaning(gemm_meaning, gemm_bound),
    Reduce: TileMeaning(reduce_meaning, reduce_bound, operations=1.0),
    Scan: TileMeaning(scan_meaning, scan_bound, operations=1.0),
    WarpVote: TileMeaning(vote_meaning, vote_bound),
}


def meaning_of(cls: type) -> TileMeaning | None:
    """The meaning of a class of statements: the language's own, or that of the package that brings it."""
    return MEANINGS.get(cls) or _meaning_elsewhere(cls)
