"""Faults in what judges a kernel from outside: the reference, its check, counts of work."""

from __future__ import annotations

from ..fault import Fault

CHECK = ("tests/reference/test_check.py",)

FAULTS = (
    Fault(
        "check/poison-is-not-looked-for",
        "elements that were never written are not told apart",
        "tilebench.reference.check:compare_output",
        "poisoned(got, dtype) & outside",
        "poisoned(got, dtype) & ~outside",
        CHECK,
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
        "tilebench.passes.count_work:_inside",
        "",
        "return np.asarray(start) * 0 + size",
        ("tests/passes/test_count_work.py",),
    ),
)
