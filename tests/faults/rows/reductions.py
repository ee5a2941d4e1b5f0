"""Faults in reductions on warps: who meets whom, in which dtype, from which neutral value."""

from __future__ import annotations

from ..fault import Fault

REDUCE = ("tests/passes/test_threads_reduce.py",)
EXCHANGES = ("tests/passes/test_exchanges.py",)

FAULTS = (
    Fault(
        "reductions/nan-in-the-second-is-lost",
        "a maximum that hands NaN on keeps the old value beside a NaN on the CPU",
        "tilebench.targets.cpu.llvm.lanes:combine",
        "f.select(f.compare('uno', b, b), b, taken)",
        "taken",
        ("tests/language/test_reductions_of_all_kinds.py::test_nan_is_handed_on",),
    ),
    Fault(
        "reductions/running-maxima-are-sums",
        "T.cummax adds along a line that a thread has to itself",
        "tilebench.passes.threads.rows.scan:_by_thread",
        "combine(scan.kind, before, Load(sums, (spot,)))",
        "combine('sum', before, Load(sums, (spot,)))",
        ("tests/language/test_reductions_of_all_kinds.py::test_running_maxima",),
    ),
    Fault(
        "exchange/threads-that-are-no-power-of-two",
        "192 or 224 threads meet by shuffles as 64 or 32 would",
        "tilebench.passes.analysis.exchanges:exchange_of",
        "inside > 1 and _power(count)",
        "inside > 1",
        EXCHANGES,
    ),
    Fault(
        "exchange/lanes-that-are-no-neighbours",
        "a distance that is no power of two is shuffled over",
        "tilebench.passes.analysis.exchanges:exchange_of",
        "divisor < warp and _power(divisor)",
        "divisor < warp",
        EXCHANGES,
    ),
    Fault(
        "exchange/distance",
        "each shuffle goes twice as far",
        "tilebench.passes.analysis.exchanges:exchange_of",
        "shuffles.append(step)",
        "shuffles.append(step * 2)",
        EXCHANGES,
    ),
    Fault(
        "exchange/a-step-is-missing",
        "the farthest shuffle is left out",
        "tilebench.passes.analysis.exchanges:exchange_of",
        "step < divisor * inside",
        "step * 2 < divisor * inside",
        EXCHANGES,
    ),
    Fault(
        "exchange/past-the-warp",
        "partners in another warp are met by shuffles",
        "tilebench.passes.analysis.exchanges:exchange_of",
        "min(inside, count)",
        "count",
        EXCHANGES,
    ),
    Fault(
        "exchange/a-row-out-of-reach",
        "a row that reaches over a warp is chosen for several",
        "tilebench.passes.analysis.exchanges:_reaches",
        "all(distance * count <= row.group for distance, count in digits)",
        "True",
        EXCHANGES,
    ),
    Fault(
        "reduce/max-neutral",
        "a maximum starts from zero",
        "tilebench.passes.threads.rows.reduce:neutral",
        "dtype.least if kind == 'max' else dtype.most",
        "0 if kind == 'max' else dtype.most",
        REDUCE,
    ),
    Fault(
        "reduce/dtype-of-the-source",
        "sums are formed in the dtype of the source",
        "tilebench.language.accumulation:reduction_dtype",
        "",
        "return source",
        REDUCE,
    ),
    Fault(
        "reduce/extremes-in-the-source",
        "an old value is narrowed to the dtype of the source before it is compared",
        "tilebench.language.accumulation:reduction_dtype",
        "source == boolean or (source == target and kind != 'sum')",
        "source == boolean or kind != 'sum'",
        ("tests/language/test_reduction_dtypes.py",),
    ),
    Fault(
        "reduce/ghosts-count",
        "ghosts along the reduced dimension are summed",
        "tilebench.passes.threads.rows.reduce:_partial",
        "layout.padded[dim] > layout.extents[dim]",
        "False",
        REDUCE,
    ),
    Fault(
        "reduce/row-too-narrow",
        "parts of neighbouring results fall together in shared memory",
        "tilebench.passes.threads.rows.reduce:_across",
        "mine * size + row",
        "mine * (size - 1) + row",
        REDUCE,
    ),
    Fault(
        "reduce/one-part-less",
        "the parts of the last warp are not folded",
        "tilebench.passes.threads.rows.reduce:_across",
        "Unroll(Const(exchange.parts), _a, _b)",
        "Unroll(Const(exchange.parts - 1), _a, _b)",
        REDUCE,
    ),
    Fault(
        "reduce/no-barrier-between",
        "parts are read before all have been laid down",
        "tilebench.passes.threads.rows.reduce:_across",
        "[*write, *barrier_of(emitter, why), *read]",
        "[*write, *read]",
        REDUCE,
    ),
    Fault(
        "reduce/the-old-value-is-lost",
        "`clear=False` starts afresh",
        "tilebench.passes.threads.rows.reduce:_finish",
        "not reduction.clear",
        "False",
        REDUCE,
    ),
)
