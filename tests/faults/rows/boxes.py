"""Copies in boxes: what a card would be told wrongly, and what would be read before it is there."""

from __future__ import annotations

from ..fault import Fault

WORDS = ("tests/targets/cuda/test_tma.py",)
RINGS = ("tests/targets/cuda/test_tma_rings.py",)
STORES = ("tests/targets/cuda/test_tma_stores.py",)
DEFAULTS = ("tests/targets/cuda/test_default_road.py",)
PHASES = ("tests/simulator/test_wrong_kernels.py", "tests/targets/cuda/test_mbarriers.py")

FAULTS = (
    Fault(
        "boxes/strides-outermost-first",
        "a map's strides are told in the order of the array's dimensions",
        "tilebench.targets.cuda.tensor_maps:encoding_of",
        "tuple(outer[::-1])",
        "tuple(outer)",
        WORDS,
    ),
    Fault(
        "boxes/coordinates-outermost-first",
        "a copy names its place in the order of the array's dimensions",
        "tilebench.targets.cuda.text.tma:_load",
        "reversed(statement.src.start)",
        "list(statement.src.start)",
        WORDS,
    ),
    Fault(
        "boxes/stored-outermost-first",
        "a store names its place in the order of the array's dimensions",
        "tilebench.targets.cuda.text.tma:_store",
        "reversed(statement.dst.start)",
        "list(statement.dst.start)",
        STORES,
    ),
    Fault(
        "boxes/stored-without-a-fence",
        "what threads wrote is stored in boxes without a fence",
        "tilebench.passes.analysis.proxies:fenced_buffers",
        'e.buffer.scope == "shared" and (e.reads or e.writes)',
        'e.buffer.scope == "shared" and e.writes',
        STORES,
    ),
    Fault(
        "boxes/stored-and-read",
        "an array of which boxes are stored may be read in between",
        "tilebench.passes.laid_out.allow_boxes:touched_otherwise",
        "frozenset(found | (loads & stored))",
        "frozenset()",
        STORES,
    ),
    Fault(
        "boxes/one-address-for-all-calls",
        "maps are kept by sizes alone",
        "tilebench.targets.cuda.run.tensor_maps:TensorMaps.__call__",
        "(*[pointers[k] for k in self._arrays], *sizes.values())",
        "tuple(sizes.values())",
        WORDS,
    ),
    Fault(
        "boxes/parity-of-the-next-phase",
        "who uses a step's tiles waits for the phase behind it",
        "tilebench.passes.pipelined.copy_barriers:Filling.parity",
        "self._modulo(step, 2 * self.versions)",
        "self._modulo(step + self.versions, 2 * self.versions)",
        RINGS,
    ),
    Fault(
        "boxes/phases-of-whole-runs",
        "the parity of a phase forgets runs that turn the ring once",
        "tilebench.passes.pipelined.copy_barriers:Filling.parity",
        "self._modulo(step, 2 * self.versions)",
        "self._modulo(step, self.versions)",
        (*RINGS, "tests/passes/test_roles.py::test_a_run_that_turns_the_ring_once"),
    ),
    Fault(
        "boxes/any-condition-ends",
        "a ring under a condition counts the turns in which it was not reached",
        "tilebench.passes.pipelined.turns:_ends",
        "grows and not mentions(test.args[1], variable) and not known.loads and not known.names & inside",
        "True",
        ("tests/passes/test_roles.py::test_turns_that_a_condition_leaves_out_are_not_counted",),
    ),
    Fault(
        "boxes/phases-start-again",
        "the phases of a ring are counted from 0 in each run of its loop",
        "tilebench.passes.pipelined.copy_barriers:Filling.number",
        "self.before + step",
        "step",
        RINGS,
    ),
    Fault(
        "boxes/any-edge-is-the-arrays",
        "a copy that ends elsewhere than its array goes in boxes",
        "tilebench.passes.analysis.boxes:_of_edges",
        "limit is not None and limit != array.shape[dim]",
        "False",
        ("tests/passes/test_texts.py",),
    ),
    Fault(
        "boxes/no-fence-for-shared-bytes",
        "threads' writes to bytes that a copy fills need no fence",
        "tilebench.passes.analysis.proxies:fenced_buffers",
        "any(places[name].meets(other) for other in theirs)",
        "False",
        RINGS,
    ),
    Fault(
        "boxes/fetched-ahead-of-the-barrier",
        "the operands of the next step are fetched before its tiles are there",
        "tilebench.passes.threaded.rotate_steps:_matched",
        "any(isinstance(s, MbarrierWait) for s in statements(loop.body))",
        "False",
        RINGS,
    ),
    Fault(
        "boxes/any-start-is-whole",
        "a row of a box starts anywhere, which a card ends the launch for",
        "tilebench.passes.analysis.boxes:_of_start",
        "facts.divides(unit, start)",
        "True",
        RINGS,
    ),
    Fault(
        "boxes/any-start-is-inside",
        "a box is stored in front of its array, which a card ends the launch for",
        "tilebench.passes.analysis.boxes:_of_start",
        "facts.proves(first.compare('>=', 0))",
        "True",
        STORES,
    ),
    Fault(
        "boxes/any-start-is-simulated",
        "the simulator takes a start that a card does not",
        "tilebench.targets.cuda.instructions.tma_meaning:box_start",
        "start[-1] * width % UNIT",
        "False",
        WORDS,
    ),
    Fault(
        "boxes/where-coordinates-do-not-reach",
        "a copy of an array beyond 32 bits goes in boxes",
        "tilebench.passes.laid_out.choose_boxes:_why_no_map",
        "wide and any(not isinstance(size, int) for size in array.shape)",
        "False",
        DEFAULTS,
    ),
    Fault(
        "boxes/few-bits-unasked",
        "sums of 8-bit floats in fewer bits are taken though nobody names them",
        "tilebench.passes.laid_out.choose_products:_why_not",
        "row.exact_k and not gemm.fast_accum",
        "False",
        DEFAULTS,
    ),
    Fault(
        "phases/nothing-is-handed-on",
        "who waits for a phase does not know what was done before it ended",
        "tilebench.simulator.phases:PhaseWait._pass",
        "clocks.learn(named.block, groups, barrier.ended[-1])",
        "None",
        PHASES,
    ),
    Fault(
        "phases/any-phase-of-the-parity-will-do",
        "a wait that might have ended with an earlier phase is borne",
        "tilebench.simulator.clocks:Clocks.knows",
        "bool((known >= stamps).all())",
        "True",
        PHASES,
    ),
)
