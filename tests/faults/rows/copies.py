"""Faults in copies that go on by themselves, in stages that a kernel gives, and in counters of versions."""

from __future__ import annotations

from ..fault import Fault

CP_ASYNC = "tests/targets/cuda/test_cp_async.py"
STAGES = "tests/language/test_manual_stages.py"
TEXTS = "tests/passes/test_texts.py::test_text"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "copies/valid-below-zero",
        "an access behind the end has fewer than no elements inside",
        "tilebench.passes.threads.moves:_valid",
        "Call('max', (part.args[1] - part.args[0], Const(0)), type=int32)",
        "part.args[1] - part.args[0]",
        (f"{CP_ASYNC}::test_an_end_within_an_access_is_filled_behind_it",),
    ),
    Fault(
        "copies/edges-are-not-tested",
        "an access that sticks out is taken for one inside",
        "tilebench.passes.threads.moves:_valid",
        "Call('if_then_else', (all_of(alike), count, Const(0)), type=int32)",
        "count",
        (f"{CP_ASYNC}::test_rows_of_a_size_that_a_launch_brings",),
    ),
    Fault(
        "copies/one-version-for-two-stages",
        "a tile has a version less than there are iterations of it in flight",
        "tilebench.passes.analysis.stages:versions_of",
        "max(found) - min(found) + 1",
        "max(found) - min(found)",
        (STAGES,),
    ),
    Fault(
        "copies/order-within-a-stage",
        "a statement runs in front of what it needs of its own stage",
        "tilebench.passes.analysis.stages:clash_of",
        "_of_order(items)",
        "None",
        (STAGES,),
    ),
    Fault(
        "copies/one-iteration-less-ahead",
        "an early stage fills the loop for the iteration before its own",
        "tilebench.passes.pipelined.staged_ring:StagedRing._filling",
        "self.loop.start + (turn - item.stage)",
        "self.loop.start + turn",
        (STAGES, f"{TEXTS}[make_ring.stages]"),
    ),
    Fault(
        "copies/waits-for-one-less-in-stages",
        "a step of stages reads what may still be in flight",
        "tilebench.passes.pipelined.staged_ring:StagedRing._waits",
        "min(ahead) - 1",
        "min(ahead)",
        (STAGES, f"{TEXTS}[make_ring.stages]"),
    ),
    Fault(
        "copies/counter-wraps-late",
        "a counter of versions goes to one more than there are",
        "tilebench.passes.threaded.wrap_counters:_wrapped",
        "number - 1",
        "number",
        (f"{TEXTS}[wrap_counters.ring]", "tests/passes/test_rings.py"),
    ),
    Fault(
        "copies/stored-in-front",
        "what was loaded into registers is stored before the step has computed",
        "tilebench.passes.pipelined.make_ring:_Ring._parts",
        "copy.but(src=whole, src_within=None, **own) if last else copy.but(dst=whole, **own)",
        "copy.but(dst=whole, **own) if last else copy.but(src=whole, src_within=None, **own)",
        (f"{TEXTS}[make_ring.registers]",),
    ),
)
