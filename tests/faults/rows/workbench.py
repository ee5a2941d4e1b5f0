"""Faults in what the workbench shows and measures."""

from __future__ import annotations

from ..fault import Fault

POSITIONS = ("tests/profile/test_positions.py",)

FAULTS = (
    Fault(
        "bench/measured-unasked",
        "showing another stage measures again",
        "tilebench.workbench.answered:Questions.due",
        "",
        "return wish.run if what == 'run' else wish.check",
        ("tests/workbench/test_magic_session.py::test_only_what_is_asked_for_is_measured_again",),
    ),
    Fault(
        "bench/few-runs-decide",
        "ranges of one run each that lie apart are taken for a difference",
        "tilebench.profile.positions:difference",
        "by_chance > LEVEL",
        "by_chance > 1",
        POSITIONS,
    ),
    Fault(
        "bench/runs-forgotten",
        "a run takes the place of the one before",
        "tilebench.workbench.history:MoveHistory.measured",
        "(*runs, *new)",
        "new",
        POSITIONS,
    ),
    Fault(
        "bench/cell-closes-another",
        "a bench closes those of other cells that have its kernel's name",
        "tilebench.workbench.registry:make_room",
        "b.cell.identity == cell.identity and b.cell.run != cell.run",
        "b.name == name",
        ("tests/workbench/test_registry.py::test_two_cells_may_show_one_kernel",),
    ),
    Fault(
        "bench/times-of-other-work",
        "times of positions that compute more or less than each other are compared",
        "tilebench.profile.positions:same_work",
        "",
        "return True",
        ("tests/workbench/test_launch.py::test_sizes_of_a_call_are_sliders_and_positions",),
    ),
    Fault(
        "bench/sizes-are-no-position",
        "runs at other sizes of a call are runs of one position",
        "tilebench.workbench.wish:Wish.position",
        "{**self.values, **self.choices, **self.sizes, 'target': _a}",
        "{**self.values, **self.choices, 'target': _a}",
        ("tests/workbench/test_launch.py::test_sizes_of_a_call_are_sliders_and_positions",),
    ),
)
