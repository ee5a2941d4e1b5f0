"""Faults of loops that are left before their end."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/language/test_control_flow.py::test_"

FAULTS = (
    Fault(
        "control/order-of-a-nan-turned-round",
        "what follows `if x < 0: continue` stands under x >= 0, which a NaN is not",
        "tilebench.frontend.exits:negated",
        "condition.args[0].dtype.is_integer",
        "True",
        (TEST + "a_nan_is_on_neither_side",),
    ),
    Fault(
        "control/rest-of-a-turn-runs",
        "behind a branch that may have left the turn the rest runs all the same",
        "tilebench.frontend.exits:Exits.unless_left",
        "(If(holds(told), rest, (), place=branch.place),)",
        "rest",
        (TEST + "ways_out_under_several_branches",),
    ),
    Fault(
        "control/place-read-from-what-changes",
        "two elements whose places are read from a scalar are compared as if it had not been stored between",
        "tilebench.passes.threaded.insert_barriers:_Search.of",
        "access.unsettled(self.changing)",
        "access",
        (TEST + "an_element_at_a_place_that_changes_meanwhile",),
    ),
    Fault(
        "control/condition-read-once",
        "the condition of a loop gets a name in front of it, as its bounds do",
        "tilebench.ir.effects:read_while_written",
        "part is not again",
        "True",
        (TEST + "a_turn_that_ends_and_a_loop_that_ends",),
    ),
)
