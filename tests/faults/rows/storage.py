"""Faults in how elements lie in memory: sizes, halves of a byte, arrays of the caller."""

from __future__ import annotations

from ..fault import Fault

PACKED = ("tests/passes/test_check_packed.py",)
ARRAYS = ("tests/runtime/test_arrays.py",)
KINDS = ("tests/runtime/test_array_kinds.py",)

FAULTS = (
    Fault(
        "packed/odd-element-first",
        "the element of even index lies in the high half of its byte",
        "tilebench.ir.packing:pack",
        "nibbles[..., 0::2] | nibbles[..., 1::2] << np.uint8(4)",
        "nibbles[..., 1::2] | nibbles[..., 0::2] << np.uint8(4)",
        ("tests/ir/test_packing.py",),
    ),
    Fault(
        "packed/last-of-an-odd-row",
        "a row of an odd count is a byte too short",
        "tilebench.ir.packing:packed_shape",
        "-(-shape[-1] // dtype.per_byte)",
        "shape[-1] // dtype.per_byte",
        ("tests/ir/test_packing.py",),
    ),
    Fault(
        "packed/half-a-byte-is-stored",
        "a store may start at the second half of a byte",
        "tilebench.passes.bounded.check_packed:_check_span",
        "divisor(start) % per_byte",
        "False",
        PACKED,
    ),
    Fault(
        "packed/half-a-byte-at-the-end",
        "a store may end within a byte",
        "tilebench.passes.bounded.check_packed:_check_span",
        "extent % per_byte and not ends_the_row",
        "False",
        PACKED,
    ),
    Fault(
        "dtype/sizes-round-down",
        "the bytes of an odd count of 4-bit integers are rounded, not refused",
        "tilebench.ir.dtypes:DType.bytes_of",
        "if rest: raise _a",
        "pass",
        ("tests/ir/test_packing.py",),
    ),
    Fault(
        "arrays/strides-are-not-asked",
        "an array that is not contiguous passes for one that is",
        "tilebench.runtime.arrays:is_row_major",
        "extent != 1 and stride != step",
        "False",
        ARRAYS,
    ),
    Fault(
        "arrays/overlap-by-one-byte",
        "arrays that share their last byte do not overlap",
        "tilebench.runtime.arrays:ArgumentChecker.__call__",
        "start < other + self.sizes[j] and other < start + self.sizes[i]",
        "start + 1 < other + self.sizes[j] and other + 1 < start + self.sizes[i]",
        ARRAYS,
    ),
    Fault(
        "arrays/other-strides-pass",
        "an array of other strides passes for a strided parameter",
        "tilebench.runtime.arrays:ArgumentChecker._strides",
        "extent != 1 and got != want",
        "False",
        ARRAYS,
    ),
    Fault(
        "arrays/dtype-is-not-asked",
        "an array of another dtype is handed over",
        "tilebench.runtime.arrays:ArgumentChecker._slow",
        "info.dtype != dtype",
        "False",
        ARRAYS,
    ),
    Fault(
        "arrays/sizes-of-strides-are-kept-by-shapes",
        "a call takes the strides that an earlier one of its shapes had",
        "tilebench.runtime.calls:CallBinder._sized_by",
        "(given.arrays, tuple([array.shape for array in arrays])) if self._by_shape else None",
        "(given.arrays, tuple([array.shape for array in arrays]))",
        ("tests/kernel/test_sizes.py",),
    ),
    Fault(
        "arrays/a-negative-view-is-its-memory",
        "a tensor that looks as one that passed is not asked for its sign",
        "tilebench.runtime.glances:_at_torch",
        "not tensor.is_neg()",
        "True",
        KINDS,
    ),
    Fault(
        "arrays/parts-of-elements",
        "strides in bytes that are no whole elements count as elements",
        "tilebench.runtime.describe:_in_elements",
        "stride % size and extent != 1 and moving",
        "False",
        KINDS,
    ),
    Fault(
        "arrays/outputs-on-themselves",
        "an output whose elements share memory is written",
        "tilebench.runtime.arrays:ArgumentChecker._strides",
        "param.written and may_share_elements(info.shape, info.strides)",
        "False",
        KINDS,
    ),
    Fault(
        "store/an-entry-serves-any-key",
        "what was kept for another kernel is loaded",
        "tilebench.targets.kept:unpacked",
        "any((meta[name] != value for name, value in _described(bodies, step, build, key).items()))",
        "meta['step'] != step.name",
        ("tests/test_compiler.py",),
    ),
    Fault(
        "files/a-record-unpacks-to-anything",
        "what a file unpacks to is not bounded",
        "tilebench.record_files:_body",
        "row.file_size > MOST_BYTES",
        "False",
        ("tests/test_record_files.py",),
    ),
)
