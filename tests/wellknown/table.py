"""All cases, by families."""

from __future__ import annotations

from tests.wellknown import attention, gemm, norms, rows, sums
from tests.wellknown.case import Case

CASES: tuple[Case, ...] = (*gemm.CASES, *norms.CASES, *attention.CASES, *rows.CASES, *sums.CASES)
