"""Faults in what judges a kernel from outside: the reference, its check, counts of work."""

from __future__ import annotations

from ..fault import Fault

CHECK = ("tests/reference/test_check.py",)

FAULTS = (
    Fault(
        "reference/no-overflow-on-the-way",
        "a sum whose parts overflow is bound to what it would be without",
        "tilebench.language.meanings.tiles:_with_overflow_on_the_way",
        "",
        "return carried",
        ("tests/reference/test_bounds_overflow.py::test_a_sum_that_overflows_on_the_way_has_no_bound",),
    ),
    Fault(
        "check/poison-is-not-looked-for",
        "elements that were never written are not told apart",
        "tilebench.reference.check:compare_output",
        "poisoned(got, dtype) & outside",
        "poisoned(got, dtype) & ~outside",
        CHECK,
    ),
    Fault(
        "check/what-nobody-stores-passes",
        "an element that the kernel never stores is right where the call makes the array",
        "tilebench.reference.check:compare_output",
        "np.where(never, np.inf, error)",
        "error",
        ("tests/kernel/test_unwritten.py",),
    ),
    Fault(
        "check/nan-passes",
        "a NaN where a number belongs is within its bound",
        "tilebench.reference.check:compare_output",
        "np.where(np.isnan(error), np.inf, error)",
        "np.where(np.isnan(error), 0.0, error)",
        CHECK,
    ),
    Fault(
        "check/outputs-are-not-poisoned",
        "arrays that a kernel only writes hold zeros before it",
        "tilebench.reference.check:poison",
        "",
        "array[...] = 0",
        ("tests/reference",),
    ),
    Fault(
        "check/integers-as-doubles",
        "integers near 2^63 fall together",
        "tilebench.reference.check:compare_output",
        "got == bounded.value",
        "a == b",
        CHECK,
    ),
    Fault(
        "work/ghosts-are-counted",
        "elements outside an array are counted as work",
        "tilebench.passes.analysis.loop_extents:inside",
        "",
        "return np.asarray(start) * 0 + size",
        ("tests/passes/test_count_work.py",),
    ),
    Fault(
        "work/unit-dimensions-are-rows",
        "the extents of an array's part are taken for those of a tile from the right, units and all",
        "tilebench.passes.analysis.true_extents:_lined_up",
        "next(partners, size)",
        "true[-1]",
        ("tests/passes/test_work_of_kernels.py",),
    ),
    Fault(
        "work/ragged-loops-run-whole",
        "a loop whose bound depends on the block counts as its most turns",
        "tilebench.passes.analysis.loop_points:LoopPoints.loop",
        "number < _deeper(turns)",
        "number < most",
        ("tests/passes/test_work_of_kernels.py",),
    ),
)
