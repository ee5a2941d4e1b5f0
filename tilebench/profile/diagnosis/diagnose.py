"""The diagnosis itself: what bounds the kernel, and the causes, the heaviest first."""

from __future__ import annotations

from dataclasses import dataclass

from ...record import UNCOUNTED
from ..roofline import roofline
from .case import Case, Cause
from .counted import with_counts
from .measured_causes import MEASURED
from .static_causes import STATIC, Row

CAUSES: tuple[Row, ...] = (*STATIC, *MEASURED)
# Where no ceiling was measured, this many operations a byte divide: below every ridge in use today.
RIDGE = 8.0


@dataclass(frozen=True)
class Diagnosis:
    """`bound` is `memory`, `compute`, `latency` or `launch`, and `why` says so in words with figures."""

    bound: str
    why: str
    findings: tuple[Cause, ...] = ()

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.why} Nothing stands out that keeps it from being faster."
        return "\n".join([self.why, *(f"{k}. {each}" for k, each in enumerate(self.findings, 1))])


def diagnose(case: Case) -> Diagnosis:
    """What is known of a kernel, as a diagnosis; the same for a saved record as for a live one."""
    findings = [with_counts(case, found) for cause in CAUSES if (found := cause(case)) is not None]
    findings.sort(key=lambda each: -each.weight)
    bound, why = _bound(case)
    if any(each.cause in ("launch_bound", "too_few_blocks") and each.weight > 0.5 for each in findings):
        bound = "launch"
    return Diagnosis(bound, why, tuple(findings))


def _bound(case: Case) -> tuple[str, str]:
    run, (flops, moved) = case.run, case.ceilings
    record = case.record
    if run is not None and run.seconds and flops and moved and (run.flops or run.bytes):
        found = roofline(
            run.seconds, flops=run.flops, bytes=run.bytes, peak_flops_s=flops, bandwidth_bytes_s=moved
        )
        kind = "latency" if found.bound.startswith("latency") else found.bound
        part = 100 * max(found.of_memory, found.of_compute)
        reached = f"{part:.0f}" if part >= 10 else f"{part:.2g}"
        flags = "".join(f" {flag[0].upper()}{flag[1:]}." for flag in found.flags)
        why = f"Bound by {found.bound}: {reached} % of that ceiling is reached. {found.why}.{flags}"
        return kind, why
    if any(remark.pass_name == UNCOUNTED for remark in record.remarks):
        return "memory", "Data decides how much it computes, so what bounds it is not known from its counts."
    open_sizes = any(not isinstance(n, int) for each in record.arguments for n in each.shape)
    if not record.bytes and open_sizes:
        return "memory", (
            "Nothing is measured, and each call brings sizes: kernel.at({...}).diagnose() counts its work "
            "at those that are given."
        )
    if not record.bytes:
        return "compute", "Nothing is measured, and it moves no bytes that are counted."
    intensity = record.flops / record.bytes
    ridge = flops / moved if flops and moved else RIDGE
    kind = "compute" if intensity > ridge else "memory"
    side = "above" if kind == "compute" else "below"
    return kind, (
        f"Not measured here: {intensity:.3g} operations for each byte lie {side} the ridge of {ridge:.3g}, "
        f"so {'arithmetic' if kind == 'compute' else 'memory'} should bound it."
    )
