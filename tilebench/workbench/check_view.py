"""The report of an element-by-element check: summary, worst elements, a map of where errors are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .style import PALETTE, escape, number, page
from .table import Cell, Value, table_html, table_text

if TYPE_CHECKING:
    from ..reference.check import CheckReport, OutputReport, WorstElement

# Steps of the map, as parts of the bound; the last is outside. Lightness falls steadily, so the
# order survives every colour deficiency and a grey print; the failing step also carries a cross.
_STEPS = (0.0, 0.01, 0.1, 0.5, 1.0)
_STEP_NAMES = ("exact", "to 1 %", "to 10 %", "to 50 %", "to the bound", "outside")
_LIGHT = ("#f4f6f8", "#d3e4f5", "#9cc5ea", "#5595d1", "#1f5f9f", "#b3140f")
_DARK = ("#20262d", "#1f3a56", "#2b5f92", "#4d94de", "#a8d1ff", "#ff6b60")


def step_of(part: float) -> int:
    """Which step of the map a part of the bound falls in: 0 exact, 5 outside."""
    return next((step for step, limit in enumerate(_STEPS) if part <= limit), len(_STEPS))


CSS = "".join(
    f".tilebench .h{at}{{fill:light-dark({_LIGHT[at]},{_DARK[at]})}}" for at in range(len(_STEP_NAMES))
) + ".tilebench .legend{display:flex;flex-wrap:wrap;gap:2px 12px;font-size:12px;margin-top:6px}" + (
    ".tilebench .legend svg{display:inline-block;vertical-align:-1px}"
)  # fmt: skip


def _swatch(step: int) -> str:
    cross = (
        f'<path d="M2 2l7 7m0 -7l-7 7" stroke="{PALETTE["bg"][0]}" stroke-width="1.5"/>' if step == 5 else ""
    )
    square = f'<rect width="11" height="11" class="h{step}" fill="{_LIGHT[step]}"/>'
    return f'<svg width="11" height="11" aria-hidden="true">{square}{cross}</svg>'


def heat_svg(report: OutputReport) -> str:
    """The map of errors as an `<svg>` element, with the legend below; empty without elements."""
    if not report.heat:
        return ""
    rows, cols = len(report.heat), len(report.heat[0])
    side = max(6, min(16, 320 // max(rows, cols)))
    arm = side - 4
    out: list[str] = []
    for i, row in enumerate(report.heat):
        first = 0
        while first < cols:  # equal neighbours become one rectangle: a right result is a few of them
            step, end = step_of(row[first]), first + 1
            while end < cols and step_of(row[end]) == step:
                end += 1
            out.append(
                f'<rect x="{first * side}" y="{i * side}" width="{(end - first) * side}" height="{side}" '
                f'class="h{step}" fill="{_LIGHT[step]}"/>'
            )
            if step == 5 and side >= 8:
                for k in range(first, end):
                    out.append(
                        f'<path d="M{k * side + 2} {i * side + 2}l{arm} {arm}m0 {-arm}'
                        f'l{-arm} {arm}" stroke="{PALETTE["bg"][0]}"/>'
                    )
            first = end
    label = f"errors of {report.name} by place, as parts of the bound"
    used = sorted({step_of(v) for row in report.heat for v in row})
    legend = "".join(f"<span>{_swatch(s)} {_STEP_NAMES[s]}</span>" for s in used)
    patch = f"{report.patch[0]} x {report.patch[1]}" if report.patch != (1, 1) else "one element"
    return (
        f'<svg viewBox="0 0 {cols * side} {rows * side}" width="{cols * side}" height="{rows * side}'
        '" role="img" '
        f'aria-label="{escape(label)}"><title>{escape(label)}</title>{"".join(out)}</svg>'
        f'<div class="legend">{legend}<span class="q">a square: {patch}</span></div>'
    )


def summary(report: OutputReport) -> str:
    """One sentence: how many elements are outside, and the worst as a part of its bound."""
    if report.total == 0:
        return f"{report.name}: no elements"
    worst = report.worst[0]
    size = f"{report.name}: {report.checked} elements"
    unwritten = f", {report.unwritten} never written" if report.unwritten else ""
    if report.ok:
        part = f"{number(100 * worst.error / worst.bound)} % of its bound" if worst.bound else "no error"
        right = f", all within their bounds; the worst uses {part}" if worst.error else ", all exact"
        return size + right + unwritten
    extra = f", {report.not_finite} of them not finite" if report.not_finite else ""
    extra += unwritten
    share = number(100 * report.outside / report.checked)
    return f"{size}, {report.outside} outside their bounds ({share} %){extra}"


CHECK_HEADS = ("index", "got", "reference", "error", "bound", "error / bound", "relative", "ulps")
NUMERIC = (1, 2, 3, 4, 5, 6, 7)
# From this part of a bound on, an element is near enough to be looked at.
NEAR = 0.5


def near(output: OutputReport) -> tuple[WorstElement, ...]:
    """The worst elements, where any is near its bound: of a result that is right by far they say nothing."""
    return output.worst if output.ratio >= NEAR else ()


def pattern_sentences(output: OutputReport) -> list[str]:
    """What is wrong in words: rows, columns, tiles, threads."""
    found = output.map
    if found is None or not found.patterns:
        return []
    where = f" of {output.name}{found.plane}" if found.plane else f" of {output.name}"
    return [f"Wrong{where}: {'; '.join(found.patterns)}."]


def check_rows(worst: Sequence[WorstElement]) -> list[list[Value]]:
    out: list[list[Value]] = []
    for element in worst:
        part = element.error / element.bound if element.bound else (math.inf if element.error else 0.0)
        values = (element.got, element.expected, element.error, element.bound)
        share = Cell(number(part), "bad" if part > 1 else "good")
        off = number(element.relative), number(element.ulps)
        out.append([f"[{', '.join(map(str, element.index))}]", *(f"{v:.7g}" for v in values), share, *off])
    return out


def note(report: OutputReport, how: str) -> str:
    """Where the bounds come from, and how many elements were compared when it was not all."""
    if report.checked == report.total:
        return how
    return f"{report.checked} of {report.total} elements were compared; {how}"


def output_body(report: OutputReport, how: str = "") -> str:
    """One output of a check, without root and style sheet."""
    good = '<span class="tag good">within bounds</span>'
    tag = good if report.ok else '<span class="tag bad">outside</span>'
    below = f'<p class="q">Bound: {escape(note(report, how))}.</p>' if how else ""
    worst = near(report)
    table = table_html(CHECK_HEADS, check_rows(worst), caption="Worst elements", numeric=NUMERIC, mono=(0,))
    table = table if worst else ""
    words = "".join(f"<p>{escape(each)}</p>" for each in pattern_sentences(report))
    # Where a result is right, the map is one even patch and says nothing.
    heat = "" if report.ok else heat_svg(report)
    side = f'<div><div class="q">Where the errors are</div>{heat}</div>' if heat else ""
    head = f"<p>{tag} {escape(summary(report))}.</p>{words}"
    return f'{head}<div class="cols"><div>{table}{below}</div>{side}</div>'


def check_body(report: CheckReport) -> str:
    """The report of a check, all its outputs, without root and style sheet."""
    return "".join(output_body(output, report.how) for output in report.outputs)


def check_html(report: CheckReport, theme: str = "auto") -> str:
    """The report of a check as HTML that stands alone."""
    return page(f'<div class="sec">{check_body(report)}</div>', theme, CSS, "check")


def check_text(report: CheckReport) -> str:
    """The report of a check in plain text."""
    out: list[str] = []
    for output in report.outputs:
        out.append(("ok: " if output.ok else "WRONG: ") + summary(output))
        out += [f"  {each}" for each in pattern_sentences(output)]
        if worst := near(output):
            out.append(table_text(CHECK_HEADS, check_rows(worst), numeric=NUMERIC, indent="  "))
        if report.how:
            out.append(f"  bound: {note(output, report.how)}")
    return "\n".join(out)


def check_bundle(report: CheckReport, theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of a check's report."""
    return {"text/html": check_html(report, theme), "text/plain": check_text(report)}
