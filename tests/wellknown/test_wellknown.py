"""The well-known kernels on the reference, the CPU and the simulator against float64, and as code for two
cards and, in turns, one of two others."""

from __future__ import annotations

import pytest

from tests.wellknown.case import Case
from tests.wellknown.roads import ROADS, wrong
from tests.wellknown.table import CASES

SMALL = [pytest.param(case, id=case.name) for case in CASES if not case.large]
OTHERS = ("sm_75", "sm_89")
CODE = [
    pytest.param(case, arch, id=f"{case.name}-{arch}")
    for number, case in enumerate(CASES) if not case.large for arch in (*case.archs, OTHERS[number % 2])
]  # fmt: skip


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("case", SMALL)
def test_right(case: Case, road: str) -> None:
    assert wrong(case, road) == []


@pytest.mark.parametrize(("case", "arch"), CODE)
def test_code(case: Case, arch: str) -> None:
    """NVRTC takes the text, and registers are not spilled."""
    kernel = case.kernel.using(target=f"cuda:{arch}")(**case.parameters)
    assert kernel.resources.spill_store_bytes == 0


def test_names() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
