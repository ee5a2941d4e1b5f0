"""Faults in what an editor is told: marks at another place, names that mean something else."""

from __future__ import annotations

from ..fault import Fault

MARKS = ("tests/workbench/test_marks.py",)
COMPLETING = ("tests/workbench/test_completing.py",)

FAULTS = (
    Fault(
        "editor/columns-in-bytes",
        "a mark of Python's own error stands at bytes, which are not letters",
        "tilebench.workbench.front.marks:exception_marks",
        "len(text[: column or 0].decode(errors='ignore'))",
        "column or 0",
        MARKS,
    ),
    Fault(
        "editor/outermost-line",
        "an error is marked where the cell called, not where it happened",
        "tilebench.workbench.front.marks:exception_marks",
        "steps[-1], steps[-1].tb_lineno",
        "steps[0], steps[0].tb_lineno",
        MARKS,
    ),
    Fault(
        "editor/marks-of-a-stale-picture",
        "what is said of another position stands in the cell beside an error",
        "tilebench.workbench.front.marks:picture_marks",
        "picture.problem is not None",
        "False",
        MARKS,
    ),
    Fault(
        "editor/a-sweep-offers-its-own-values",
        "values that a sweep has already are offered again",
        "tilebench.workbench.completing:_named",
        "o.text not in taken",
        "True",
        COMPLETING,
    ),
)
