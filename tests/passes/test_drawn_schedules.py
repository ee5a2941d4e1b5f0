"""A sample of the drawn schedules; `python -m tests.passes.drawn_schedules FAMILY FIRST COUNT` runs more."""

from __future__ import annotations

import pytest

from tests.passes.drawn_schedules import FAMILIES, campaign


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_drawn_schedule_is_right_or_refused(family: str) -> None:
    assert campaign(family, 0, {"attention": 15, "warp groups": 15}.get(family, 40)) == []
