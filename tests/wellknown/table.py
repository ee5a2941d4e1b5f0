"""All cases, by families."""

from __future__ import annotations

from tests.wellknown import (
    attention,
    attention_backward,
    decode,
    gemm,
    norms,
    others,
    programs,
    rows,
    states,
    sums,
    workers,
)
from tests.wellknown.case import Case

CASES: tuple[Case, ...] = (
    *gemm.CASES,
    *norms.CASES,
    *attention.CASES,
    *attention_backward.CASES,
    *decode.CASES,
    *others.CASES,
    *states.CASES,
    *programs.CASES,
    *rows.CASES,
    *sums.CASES,
    *workers.CASES,
)
