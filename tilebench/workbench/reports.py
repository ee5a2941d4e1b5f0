"""Reports of checks as they come from a kernel, made visible."""

from __future__ import annotations

from typing import Any

from .check_view import CheckReport, check_body, check_html
from .style import escape, page


def report_body(report: Any) -> str:
    """A check's report as HTML without root and style sheet; its text where it has no view of its own."""
    if isinstance(report, CheckReport):
        return check_body(report)
    return f"<pre>{escape(report)}</pre>"


def report_bundle(report: Any, theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of a check's report."""
    made = check_html(report, theme) if isinstance(report, CheckReport) else page(
        f'<div class="sec">{report_body(report)}</div>', theme
    )  # fmt: skip
    return {"text/html": made, "text/plain": str(report)}
