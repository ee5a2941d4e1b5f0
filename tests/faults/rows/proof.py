"""Faults in what is said of a kernel: where it is wrong, what overlaps, what a swizzle costs."""

from __future__ import annotations

from ..fault import Fault

FAULTS = (
    Fault(
        "proof/another-threads-element",
        "an element is told as written by the thread of the row above",
        "tilebench.reference.error_map:_written_by",
        "numbers[:, 0]",
        "np.roll(numbers[:, 0], 1)",
        ("tests/reference/test_error_map.py",),
    ),
    Fault(
        "proof/nan-is-outside",
        "NaN and finite wrong numbers are one kind",
        "tilebench.reference.check:_mapped",
        "digits[outside & np.isnan(a)] = NOT_A_NUMBER",
        "pass",
        ("tests/reference/test_error_map.py",),
    ),
    Fault(
        "proof/any-share-is-a-pattern",
        "rows and columns are named of which half is right",
        "tilebench.reference.patterns:_matches",
        "both >= FILLED * np.count_nonzero(named)",
        "True",
        ("tests/reference/test_error_map.py",),
    ),
    Fault(
        "proof/steps-of-a-halved-dtype",
        "an ulp is half the distance to the next number",
        "tilebench.reference.check:step_at",
        "float(2.0 ** np.floor(np.log2(size))) * 2",
        "float(2.0 ** np.floor(np.log2(size)))",
        ("tests/reference/test_error_map.py",),
    ),
    Fault(
        "proof/copies-land-as-they-start",
        "a copy is in flight only while it is issued",
        "tilebench.profile.overlap:_in_flight",
        "waits[place].end if place < len(waits) else event.end",
        "event.end",
        ("tests/profile/test_overlap.py",),
    ),
    Fault(
        "proof/the-first-is-waited-for",
        "who comes first to a barrier is the one the others wait for",
        "tilebench.profile.overlap:_meetings",
        "Counter(max(group, key=lambda e: e.start).warp for group in complete)",
        "Counter(min(group, key=lambda e: e.start).warp for group in complete)",
        ("tests/profile/test_overlap.py",),
    ),
    Fault(
        "proof/a-swizzle-for-nothing",
        "accesses without a swizzle are counted with it",
        "tilebench.kernel.measuring.swizzles:_trade",
        "[each.access for each in without if each.access.buffer == name]",
        "[each.access for each in with_it if each.access.buffer == name]",
        ("tests/profile/test_diagnosis.py",),
    ),
)
