"""Faults of blocks in clusters: what is taken for the same in all of them, and who waits for whom."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/targets/cuda/test_clusters.py::test_"
TEXT = ("tests/passes/test_texts.py",)

FAULTS = (
    Fault(
        "clusters/what-memory-says-is-the-same",
        "a box at a place that is read from memory is taken for the same in all blocks",
        "tilebench.passes.scheduled.make_clusters:_varies",
        "isinstance(part, Load) or (isinstance(part, Var) and part.name in varying)",
        "isinstance(part, Var) and part.name in varying",
        TEXT,
    ),
    Fault(
        "clusters/some-blocks-do-not-come",
        "a copy under a condition that one block alone meets is shared",
        "tilebench.passes.scheduled.make_clusters:_Marking._mark",
        "_varies(statement.condition, self.varying)",
        "False",
        TEXT,
    ),
    Fault(
        "clusters/rank-through-a-name",
        "a place that depends on the rank through another name is taken for the same",
        "tilebench.passes.scheduled.make_clusters:_Marking._mark",
        "self.varying.add(statement.var.name)",
        "None",
        TEXT,
    ),
    Fault(
        "clusters/own-readers-alone",
        "a tile is filled again before the other block's warps have read it",
        "tilebench.passes.pipelined.copy_barriers:CopyBarriers.filling",
        "readers * (blocks or 1)",
        "readers",
        (TEST + "a_product_in_clusters_is_right",),
    ),
    Fault(
        "clusters/every-block-brings-the-first-part",
        "each block of a cluster brings the part of the first",
        "tilebench.targets.cuda.instructions.tma:copy",
        "base + emitter.rank * share.stride",
        "base",
        (TEST + "a_product_in_clusters_is_right",),
    ),
    Fault(
        "clusters/nobody-waits-at-the-end",
        "a block ends while others may still send to it",
        "tilebench.passes.pipelined.copy_barriers:CopyBarriers.at_the_end",
        "not self.across_blocks",
        "True",
        (TEST + "a_product_in_clusters_is_right",),
    ),
    Fault(
        "clusters/what-was-sent-is-under-way",
        "the barrier at the end does not wait for what was sent, which a card answers with a failed launch",
        "tilebench.simulator.clusters:ClusterWait.__init__",
        "not stmt.relaxed",
        "True",
        (TEST + "what_a_card_must_not_do_is_refused",),
    ),
    Fault(
        "clusters/simulated-apart",
        "the simulator lets the reads of one block's barrier pass for another's",
        "tilebench.simulator.clocks:Clocks._column_of",
        "(agents - 1) // self.threads % self.cluster * self.groups + group",
        "group",
        (TEST + "a_product_in_clusters_is_right", TEST + "what_a_card_must_not_do_is_refused"),
    ),
    Fault(
        "launch/touches-before-it-waits",
        "a launch that begins early reads what the one before has not written yet",
        "tilebench.passes.threaded.wait_for_launch:_touches_memory",
        "effect.buffer.scope == 'global'",
        "effect.buffer.scope == 'global' and effect.writes",
        (*TEXT, "tests/targets/cuda/test_dependent_launch.py"),
    ),
)
