"""Faults in what kernels order themselves: barriers of groups, fences in front of them, sums in flight."""

from __future__ import annotations

from ..fault import Fault

MBARRIERS = "tests/language/test_mbarriers.py"
PRODUCTS = "tests/language/test_products_by_hand.py"
COPIES = "tests/language/test_copies_by_hand.py"

FAULTS = (
    Fault(
        "by-hand/any-barrier-of-a-ring",
        "a group takes a wait for another slot's barrier for the one behind what it did",
        "tilebench.passes.analysis.hand_barriers:_settled",
        "same_number(number, signal.number)",
        "True",
        (f"{MBARRIERS}::test_a_group_meets_for_what_it_did_itself",),
    ),
    Fault(
        "by-hand/arrival-without-fence",
        "a group arrives without a fence for what instructions read by themselves",
        "tilebench.passes.threaded.insert_barriers:_Search.statement",
        "self.orders.tells(stmt)",
        "False",
        (f"{PRODUCTS}::test_what_threads_wrote_is_fenced_once",),
    ),
    Fault(
        "by-hand/sums-in-flight-named",
        "a wait that leaves products in flight names their sums too",
        "tilebench.targets.cuda.instructions.wgmma:_wait_by_hand",
        "sums[:-1] if pending else sums",
        "sums",
        (f"{PRODUCTS}::test_the_last_product_goes_on_while_the_one_before_is_used",),
    ),
    Fault(
        "by-hand/barrier-by-its-version-alone",
        "a copy completes on the first barrier of several",
        "tilebench.targets.cuda.instructions.tma:copy",
        "barrier_of(emitter, statement.barrier, before)",
        "barrier_of(emitter, statement.barrier.but(start=(Const(0),)), before)",
        (f"{COPIES}::test_a_ring_by_hand",),
    ),
    Fault(
        "by-hand/groups-out-of-order",
        "groups that no barrier of the kernel's connects have none of the block's either",
        "tilebench.passes.analysis.accesses:GroupOrder.connected",
        "apart and bool(self.told & other.after or other.told & self.after)",
        "apart",
        (f"{MBARRIERS}::test_what_groups_hand_on_without_a_barrier_is_told",),
    ),
)
