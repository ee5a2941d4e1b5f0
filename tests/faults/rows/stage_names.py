"""Faults in what a stage's text names, and in what is told of those names."""

from __future__ import annotations

from ..fault import Fault

FAULTS = (
    Fault(
        "stage-names/one-of-the-kernel",
        "a layout takes a name that the kernel has",
        "tilebench.ir.stated_once:value_names",
        "fresh_name(_name(value, use), taken)",
        "_name(value, use)",
        ("tests/ir/test_stated_once.py",),
    ),
    Fault(
        "stage-names/a-box-of-one",
        "an index alone is a box from there to the end",
        "tilebench.ir.parse_values:ValueParser.side",
        "return self.expr(part), 1",
        "return self.expr(part), size",
        ("tests/ir/test_round_trip.py",),
    ),
    Fault(
        "stage-names/warps-beside-each-other",
        "warps are told as far apart as the threads of one",
        "tilebench.layout.words:_at_warp",
        "step * left",
        "step",
        ("tests/layout/test_words.py",),
    ),
    Fault(
        "stage-names/half-the-registers",
        "registers are told as if each held 8 bytes",
        "tilebench.passes.analysis.told_names:_with_registers",
        "REGISTER",
        "2 * REGISTER",
        ("tests/passes/test_told_names.py",),
    ),
)
