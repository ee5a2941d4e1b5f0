"""Faults of elements that threads and blocks change together."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/language/test_atomic.py::test_"

FAULTS = (
    Fault(
        "atomic/stored-as-a-vector",
        "neighbours that are added to are stored by one wide access",
        "tilebench.passes.threads.vector:Vector.access_width",
        "isinstance(access, Store) and access.atomic",
        "False",
        (f"{TEST}tiles",),
    ),
    Fault(
        "atomic/lost-on-the-way-down",
        "an atomic store of one element is a plain one in the code of a thread",
        "tilebench.passes.threads.scalars:lower_one",
        "Store(buffer, index, new, atomic=statement.atomic, place=statement.place)",
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
)
