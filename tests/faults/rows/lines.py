"""Faults in figures of lines: sums and maps that would lie without anything failing."""

from __future__ import annotations

from ..fault import Fault

LINES = ("tests/profile/test_lines.py",)
COUNTING = ("tests/workbench/test_counting.py",)

FAULTS = (
    Fault(
        "lines/every-line-bears-its-figure",
        "lines that share one source line each count all of it",
        "tilebench.profile.lines.sums:_shared",
        "LineFigure(figures[key], False, first)",
        "LineFigure(figures[key], True, first)",
        LINES,
    ),
    Fault(
        "lines/a-macros-line-counts-too",
        "what a macro's line became counts at its call and at the line itself",
        "tilebench.profile.lines.sums:LineSums._inner",
        "LineFigure(figure, False, _a, inner=True)",
        "LineFigure(figure, True, _a, inner=True)",
        LINES,
    ),
    Fault(
        "lines/calls-side-by-side-are-one",
        "a change of the place of inlining without a row of its own is passed over",
        "tilebench.targets.cuda.compiler.line_table:_Reader.inline",
        "if self.moved:\n    self.note()",
        "pass",
        LINES,
    ),
    Fault(
        "lines/what-never-runs-moves-bytes",
        "loads under a predicate that never holds are counted",
        "tilebench.targets.cuda.compiler.sass_counts:Opcode.moved",
        "0 if self.never else _a",
        "_a",
        LINES,
    ),
    Fault(
        "lines/one-matrix-for-four",
        "an instruction that loads four matrices is counted as one of a single word",
        "tilebench.targets.cuda.compiler.sass_counts:bytes_of",
        'opcode in ("LDSM", "STSM")',
        "False",
        LINES,
    ),
    Fault(
        "lines/barriers-swapped",
        "the barrier that opens when operands are read is taken for that of the result",
        "tilebench.targets.cuda.compiler.control:control_of",
        "bits >> 5 & 7",
        "bits >> 8 & 7",
        ("tests/targets/cuda/test_control.py",),
    ),
    Fault(
        "lines/sectors-of-the-line-before",
        "what a statement does is counted on the line of the one before it",
        "tilebench.simulator.lanes:Lanes.run",
        "self.launch.counters.at(stmt)",
        "pass",
        COUNTING,
    ),
    Fault(
        "lines/a-report-is-read-in-order",
        "rows of a profiler's report are taken by their addresses alone, whatever the code",
        "tilebench.targets.cuda.ncu:read",
        "_same(_a, _b, _c)",
        "pass",
        COUNTING,
    ),
    Fault(
        "lines/a-decision-is-a-size",
        "the width of an access that doubles with a block is called a size",
        "tilebench.workbench.sizes:Sizes.explain",
        "not self._ratios or not _DECISIONS.isdisjoint(around)",
        "not self._ratios",
        ("tests/workbench/test_sizes.py",),
    ),
    Fault(
        "lines/a-part-is-read-whole",
        "an access that reads a part of its elements is drawn as if it read them all",
        "tilebench.pictures.warp_accesses:_count",
        "touch.first is None",
        "True",
        ("tests/simulator/test_counters.py",),
    ),
    Fault(
        "lines/one-piece-for-two",
        "an access from any address counts as one aligned piece",
        "tilebench.simulator.lanes:Lanes.count_pieces",
        "first + width - 1",
        "first",
        ("tests/simulator/test_counters.py",),
    ),
    Fault(
        "lines/rows-without-strides",
        "elements of an array with strides are counted where packed rows would have them",
        "tilebench.simulator.access:LaneAccess.touch",
        "start = first_bit(buffer, numbers) // 8",
        "start = sum(numbers) * stored_bits(buffer.dtype) // 8",
        ("tests/simulator/test_counters.py",),
    ),
    Fault(
        "lines/a-comma-in-a-name",
        "the comma that ends ncu's line belongs to the kernel's name",
        "tilebench.targets.cuda.ncu:_kernels",
        "filter(None, row[1:])",
        "row[1:]",
        COUNTING,
    ),
    Fault(
        "lines/kept-off-counts-in-silence",
        "sectors that ncu adds for warps that a predicate keeps off stand there as if they had moved",
        "tilebench.targets.cuda.ncu:_is_partly_off",
        "_number(row, heads, _LANES_ON) < _number(row, heads, _LANES)",
        "False",
        ("tests/targets/cuda/test_ncu_recorded.py",),
    ),
)
