"""Reports of checks as they come from a kernel, made visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .check_view import CSS, CheckReport, WorstElement, check_body, check_text
from .style import page

if TYPE_CHECKING:
    from ..reference.check import CheckReport as Checked
    from ..reference.check import OutputReport


def views_of(report: Checked | CheckReport) -> list[CheckReport]:
    """One view for each output of a check."""
    if isinstance(report, CheckReport):
        return [report]
    return [_view(each, report.how) for each in report.outputs]


def _view(held: OutputReport, how: str) -> CheckReport:
    worst = tuple(WorstElement(w.index, w.got, w.expected, w.error, w.bound) for w in held.worst)
    notes = [how] if held.checked == held.total else [f"{held.checked} elements were compared", how]
    notes += [f"{held.unwritten} elements were never written"] if held.unwritten else []
    return CheckReport(
        held.name, held.shape, held.dtype, held.checked, held.outside, 0, worst, how="; ".join(notes)
    )


def report_body(report: Any) -> str:
    """A check's report as HTML without root and style sheet."""
    return "".join(check_body(each) for each in views_of(report))


def report_text(report: Any) -> str:
    """A check's report in plain text."""
    return "\n".join(check_text(each) for each in views_of(report))


def report_bundle(report: Any, theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of a check's report."""
    body = f'<div class="sec">{report_body(report)}</div>'
    return {"text/html": page(body, theme, CSS, "check"), "text/plain": report_text(report)}
