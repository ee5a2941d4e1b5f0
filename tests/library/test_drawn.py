"""A sample of the drawn schedules; `python -m tests.library.drawn OPERATOR FIRST COUNT` runs more."""

from __future__ import annotations

import pytest

from tests.library.drawn import CHOICES, campaign
from tilebench.library import OPERATORS


def test_every_operator_has_choices() -> None:
    """The parameters of its kernel that are neither sizes nor options."""
    assert set(CHOICES) == set(OPERATORS)
    for name, operator in OPERATORS.items():
        problem = operator.problem(**dict.fromkeys(operator.dims, 1))
        given = {*problem.sizes, *problem.options, *operator.fixed, "dtype"}
        assert set(operator.kernel.signature.parameters) - given == set(CHOICES[name])


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_a_drawn_schedule_is_right_or_refused(name: str) -> None:
    assert campaign(name, 0, 8) == []
