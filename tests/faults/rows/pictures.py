"""Faults in what is drawn of a compilation: figures that would lie without anything failing."""

from __future__ import annotations

from ..fault import Fault

ACCESSES = ("tests/pictures/test_accesses.py",)
MEMORY = ("tests/pictures/test_memory.py",)

FAULTS = (
    Fault(
        "pictures/guards-are-forgotten",
        "lanes behind a guard count as if they took part",
        "tilebench.pictures.lane_walk:LaneWalk._branch",
        "side if mask is True else np.logical_and(mask, side)",
        "True",
        ACCESSES,
    ),
    Fault(
        "pictures/asynchronous-copies-count-twice",
        "the simulator counts the passes of a copy that goes on by itself once more as it is held",
        "tilebench.simulator.lanes:Lanes._hold",
        "self.touch(_a, _b, _c, _d, _e, counts=False)",
        "self.touch(_a, _b, _c, _d, _e)",
        (*ACCESSES, "tests/simulator/test_counters.py"),
    ),
    Fault(
        "pictures/the-other-layout-is-the-same",
        "a tile without its swizzle is shown with it",
        "tilebench.pictures.other_layouts:_table",
        "other.all_offsets()",
        "layout.all_offsets()",
        ACCESSES,
    ),
    Fault(
        "pictures/one-version-of-each-ring-fits",
        "stages that fit are counted as if rings took a single one",
        "tilebench.pictures.shared_map:most_stages",
        "life.alloc.but(versions=stages)",
        "life.alloc",
        MEMORY,
    ),
    Fault(
        "pictures/the-tail-is-left-out",
        "the last wave counts as full",
        "tilebench.pictures.residency:CardResidency.idle",
        "1 - waves / ceil(waves)",
        "0.0",
        MEMORY,
    ),
)
