"""Faults in attention's gradients and decoding, and in what their kernels are compiled with."""

from __future__ import annotations

from ..fault import Fault

TEXTS = "tests/passes/test_texts.py::test_text"
ADDS = "tests/passes/test_vector_adds.py"
DECODE = "tests/library/test_decode.py"

FAULTS = (
    Fault(
        "attention/sum-read-under-way",
        "a wait goes behind what reads the product's sum",
        "tilebench.passes.pipelined.late_waits:_touches",
        "product.c.buffer.name in read | written",
        "product.c.buffer.name in written",
        (f"{TEXTS}[late_waits.products]",),
    ),
    Fault(
        "attention/operand-written-under-way",
        "a wait goes behind what writes the product's operands",
        "tilebench.passes.pipelined.late_waits:_touches",
        "bool(written & own)",
        "False",
        (f"{TEXTS}[late_waits.products]",),
    ),
    Fault(
        "attention/met-under-way",
        "a wait goes behind a barrier for what threads wrote",
        "tilebench.passes.pipelined.late_waits:_may_meet",
        "effect.writes or effect.buffer.name in written",
        "effect.writes",
        (f"{TEXTS}[late_waits.products]",),
    ),
    Fault(
        "attention/younger-forgotten",
        "a wait lets the product itself go on",
        "tilebench.passes.pipelined.late_waits:_waited",
        "one.wait.but(later=later) if later else one.wait",
        "one.wait.but(later=later + 1)",
        (f"{TEXTS}[late_waits.products]",),
    ),
    Fault(
        "attention/found-in-vectors",
        "an atomic whose order matters is one of a vector",
        "tilebench.passes.threads.vector:Vector._adds_vectors",
        'store.atomic == "add" and store.found is None and store.order == "relaxed"',
        'store.atomic == "add"',
        (f"{ADDS}::test_what_is_found_or_ordered_goes_one_by_one",),
    ),
    Fault(
        "attention/part-of-a-tile",
        "copies of some of a tile run ahead as if they filled it",
        "tilebench.passes.analysis.filled_in_parts:filling_with",
        "len(slices) == len(found) and in_turn and ends[-1] == buffer.extents[dim]",
        "len(slices) == len(found) and in_turn",
        (f"{TEXTS}[plan_pipeline.parts]",),
    ),
    Fault(
        "attention/a-part-too-long",
        "the join takes parts that there are not",
        "tilebench.library.kernels.decode:decode_join_kernel",
        "T.if_then_else(i < parts, lse[i, by, bx], LEAST)",
        "lse[i, by, bx]",
        (f"{DECODE}::test_simulator",),
    ),
)
