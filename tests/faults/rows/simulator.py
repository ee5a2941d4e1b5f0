"""Faults in the simulator: what it must refuse, and what it must compute as a card does."""

from __future__ import annotations

from ..fault import Fault

WRONG = ("tests/simulator/test_wrong_kernels.py",)
LANES = ("tests/simulator/test_lanes.py",)

FAULTS = (
    Fault(
        "simulator/sums-over-operands-under-way",
        "a product may sum in registers that another one under way still reads",
        "tilebench.targets.cuda.instructions.wgmma_meaning:_check_chain",
        "own.flight.users(cells)",
        "()",
        ("tests/targets/cuda/test_wgmma.py::test_sums_in_registers_that_another_product_reads",),
    ),
    Fault(
        "simulator/write-after-read",
        "a write over what another thread has read is no race",
        "tilebench.simulator.history:History.write",
        "self._after_write(cells, party, clocks) or self._after_reads(cells, party, clocks)",
        "self._after_write(cells, party, clocks)",
        WRONG,
    ),
    Fault(
        "simulator/blocks-never-race",
        "blocks that write one place do not race",
        "tilebench.simulator.history:_of_other_block",
        "",
        "return np.zeros(agents.shape, bool)",
        WRONG,
    ),
    Fault(
        "simulator/maximum-of-nan",
        "a NaN wins a maximum",
        "tilebench.simulator.arithmetic:",
        "np.fmax",
        "np.maximum",
        LANES,
    ),
    Fault(
        "simulator/division-towards-zero",
        "integers divide as in C",
        "tilebench.simulator.arithmetic:_floordiv",
        "np.floor_divide(a, _b)",
        "(np.sign(a) * np.sign(_b)) * (np.abs(a) // np.abs(_b))",
        LANES,
    ),
    Fault(
        "simulator/narrow-floats-are-wide",
        "a narrow float is rounded at its end only",
        "tilebench.simulator.arithmetic:operate",
        "value if result == boolean else narrowed(value, dtype)",
        "value",
        LANES,
    ),
    Fault(
        "simulator/barriers-count-any-threads",
        "a barrier opens for other threads than it counts",
        "tilebench.simulator.barriers:Barriers.arrive",
        "(there == barrier.count) & (barrier.count > 0)",
        "(there > 0) & (barrier.count > 0)",
        (*WRONG, "tests/simulator/test_roles.py"),
    ),
)
