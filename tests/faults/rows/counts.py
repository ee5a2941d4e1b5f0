"""Faults in counts of work: rates that are wrong though the time is right."""

from __future__ import annotations

from ..fault import Fault

COUNTING = ("tests/reference/test_counting.py",)

FAULTS = (
    Fault(
        "counts/rows-that-nobody-stores",
        "a product counts rows of another group, which are computed and thrown away",
        "tilebench.passes.analysis.needed_extents:_narrow",
        "holds is not None",
        "False",
        COUNTING,
    ),
    Fault(
        "counts/loops-leave-tiles-whole",
        "what a loop fills counts with the part that sticks out",
        "tilebench.passes.analysis.true_extents:TrueExtents._stored_by",
        "len(axes) != len(store.index) or _a",
        "True",
        COUNTING,
    ),
    Fault(
        "counts/a-step-of-many",
        "an index that goes on by groups bounds a loop as if it went on by elements",
        "tilebench.passes.analysis.loop_extents:first_of",
        "np.any(np.asarray(last) - first != extent - 1)",
        "False",
        COUNTING,
    ),
    Fault(
        "counts/atomics-for-nothing",
        "the additions of a split sum are no operations",
        "tilebench.passes.analysis.count_work:_of_expressions",
        "expr.atomic in _COMBINES",
        "False",
        COUNTING,
    ),
    Fault(
        "counts/a-guess-shown",
        "a count that data decides is shown as one",
        "tilebench.passes.analysis.count_work:Work.known",
        "self.doubt is None",
        "True",
        COUNTING,
    ),
    Fault(
        "counts/anothers-vector",
        "an array that a loop reads element by element is taken to be read in the vectors of what it stores",
        "tilebench.passes.analysis.global_accesses:_beside",
        "max(_a)",
        "elements",
        ("tests/profile/test_diagnosis.py",),
    ),
    Fault(
        "counts/one-turn-for-all",
        "loops of too many turns count as their first one, where a condition may never hold",
        "tilebench.passes.analysis.loop_points:LoopPoints.loop",
        "_evenly(self.loops) * turns",
        "0 * turns",
        ("tests/passes/test_count_work.py",),
    ),
    Fault(
        "counts/a-side-for-both",
        "a choice between two halves of a tile counts as if only one half were there",
        "tilebench.passes.analysis.loop_extents:_certain",
        "1 if chosen else None",
        "None",
        COUNTING,
    ),
)
