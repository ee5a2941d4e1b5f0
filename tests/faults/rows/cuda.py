"""Faults in CUDA's text, launches and figures."""

from __future__ import annotations

from ..fault import Fault

DRIVER = ("tests/targets/cuda/test_driver.py",)

FAULTS = (
    Fault(
        "cuda/division-of-negatives",
        "a floor division of what may be negative is C's",
        "tilebench.targets.clike.expressions:Expressions._division",
        "natural and self.rough.facts.bounds(b)[0] > 0",
        "True",
        ("tests/targets/cuda/test_render.py::test_floor_division_is_plain_where_no_operand_can_be_negative",),
    ),
    Fault(
        "cuda/signed-overflow",
        "a sum of signed integers may overflow in C",
        "tilebench.targets.clike.expressions:Expressions._overflows",
        "",
        "return False",
        ("tests/targets/cuda/test_render.py::test_integers_of_data_wrap_and_narrow_ones_are_cut_back",),
    ),
    Fault(
        "cuda/large-offsets",
        "offsets of a buffer of 2^31 elements are of 32 bits",
        "tilebench.targets.clike.expressions:Expressions.offset",
        "span >= LARGE",
        "False",
        ("tests/targets/cuda/test_render.py::test_large_buffers_are_addressed_with_64_bits",),
    ),
    Fault(
        "cuda/narrow-integers-stay-wide",
        "8-bit sums are not cut back to their type",
        "tilebench.targets.clike.expressions:Expressions._cut",
        "",
        "return spelled",
        ("tests/targets/cuda/test_render.py::test_integers_of_data_wrap_and_narrow_ones_are_cut_back",),
    ),
    Fault(
        "cuda/grid-transposed",
        "the grid's first two extents change places",
        "tilebench.targets.cuda.run.launch:_three",
        "(padded[0], padded[1], padded[2])",
        "(padded[1], padded[0], padded[2])",
        DRIVER,
    ),
    Fault(
        "cuda/arguments-in-another-order",
        "pointers are handed over from the last",
        "tilebench.targets.cuda.run.load:CudaExecutable.__call__",
        "pointers.append(pointer)",
        "pointers.insert(0, pointer)",
        ("tests/targets/cuda/test_load.py",),
    ),
    Fault(
        "cuda/parameters-without-padding",
        "a parameter stands where the one before it ends",
        "tilebench.targets.cuda.run.launch:parameter_layout",
        "-size_so_far % align",
        "0",
        DRIVER,
    ),
    Fault(
        "cuda/addresses-are-not-asked",
        "an array that no vector may read is launched on",
        "tilebench.targets.cuda.run.load:CudaExecutable.__call__",
        "bits % self.alignment",
        "False",
        ("tests/targets/cuda/test_load.py",),
    ),
    Fault(
        "cuda/occupancy-without-the-reserve",
        "shared memory that the system takes is given out",
        "tilebench.targets.cuda.occupancy:_by_shared",
        "shared_bytes + shared.reserved",
        "shared_bytes",
        ("tests/targets/cuda/test_occupancy.py",),
    ),
    Fault(
        "cuda/maps-without-a-context",
        "the driver is asked for a tensor map in whatever context is current, and in a child there is none",
        "tilebench.targets.cuda.run.tensor_maps:TensorMaps.__call__",
        "context(ordinal)",
        "context(0)",
        ("tests/targets/cuda/test_sent_errors.py",),
    ),
)
