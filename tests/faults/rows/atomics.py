"""Faults of elements that threads and blocks change together."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/language/test_atomic.py::test_"
FOUND = "tests/language/test_atomic_found.py::test_"

FAULTS = (
    Fault(
        "atomic/stored-as-a-vector",
        "neighbours that are added to are stored by one wide access",
        "tilebench.passes.threads.vector:Vector.access_width",
        "isinstance(access, Store) and access.atomic and (not self._adds_vectors(access))",
        "False",
        (f"{TEST}tiles",),
    ),
    Fault(
        "atomic/lost-on-the-way-down",
        "an atomic store of one element is a plain one in the code of a thread",
        "tilebench.passes.threads.scalars:lower_one",
        "statement.but(buffer=buffer, index=index, value=new, version=None)",
        "Store(buffer, index, new, place=statement.place)",
        (f"{TEST}a_histogram_in_shared_memory_and_its_sum_over_blocks",),
    ),
    Fault(
        "atomic/vectors-on-the-processor",
        "lanes of one vector add to one element at the same time",
        "tilebench.targets.cpu.lowerings.elementwise:_keeps_state",
        "not node.plain",
        "False",
        (f"{TEST}blocks_change_elements_together",),
    ),
    Fault(
        "atomic/plain-accesses-beside",
        "an access that is not atomic may come near atomic ones without an order",
        "tilebench.simulator.history:History._after_atomics",
        "None if self.atomics is None else self.atomics._after_reads(cells, party, clocks)",
        "None",
        (f"{TEST}a_plain_access_near_atomic_ones_is_a_race",),
    ),
    Fault(
        "atomic/bound-of-one-order",
        "the bound of a sum is that of the reference's own order",
        "tilebench.reference.atomics:_bounded_sum",
        "before + most + count[spot] * most",
        "np.abs(old.value + new.value)",
        (f"{TEST}the_bound_of_a_sum_holds_for_every_order",),
    ),
    Fault(
        "atomic/found-by-copies",
        "threads that hold copies of one element keep what only one of them found",
        "tilebench.passes.analysis.body_accesses:BodyAccesses.is_of_one",
        "found or self.reads_its_stores",
        "self.reads_its_stores",
        (f"{FOUND}a_fragment_that_several_threads_hold",),
    ),
    Fault(
        "atomic/found-and-forgotten",
        "the scalar that an atomic finds something for is taken to be what it was before",
        "tilebench.passes.bounded.name_values:_lost",
        "found is not None",
        "False",
        (f"{FOUND}what_an_element_was_before",),
    ),
    Fault(
        "atomic/one-order",
        "the reference takes what its own order gives for the only right thing",
        "tilebench.reference.orders:orders_of",
        "[None, Order(), Order(seed=1), Order(parts=64), Order(parts=64, forwards=True)] if free else [None]",
        "[None]",
        (f"{FOUND}the_reference_knows_what_the_order_decides",),
    ),
    Fault(
        "atomic/handed-on-by-one-thread",
        "an atomic of the block hands on what one thread did, and not what the others did",
        "tilebench.language.closing.block_atomics:_ordered",
        "before if orders & set(RELEASES) else ()",
        "()",
        (f"{FOUND}an_order_of_the_block_has_barriers",),
    ),
    Fault(
        "atomic/ahead-of-an-order",
        "copies of a pipelined loop run ahead of an atomic that they have to come behind",
        "tilebench.passes.bounded.plan_pipeline:LoopTraffic.why_not_ahead",
        "self.ordered",
        "False",
        (f"{FOUND}a_copy_does_not_run_ahead_of_an_atomic_that_orders",),
    ),
)
