"""The report of an element-by-element check: summary, worst elements, a map of where errors are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .style import PALETTE, escape, number, page
from .table import Cell, Value, table_html, table_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORST = 8
_CELLS = 32
# Steps of the map, as parts of the bound; the last is outside. Lightness falls steadily, so the
# order survives every colour deficiency and a grey print; the failing step also carries a cross.
_STEPS = (0.0, 0.01, 0.1, 0.5, 1.0)
_STEP_NAMES = ("exact", "to 1 %", "to 10 %", "to 50 %", "to the bound", "outside")
_LIGHT = ("#f4f6f8", "#d3e4f5", "#9cc5ea", "#5595d1", "#1f5f9f", "#b3140f")
_DARK = ("#20262d", "#1f3a56", "#2b5f92", "#4d94de", "#a8d1ff", "#ff6b60")


@dataclass(frozen=True)
class WorstElement:
    """One element: where, what came, what should have, the error and the bound there."""

    index: tuple[int, ...]
    got: float
    reference: float
    error: float
    bound: float


@dataclass(frozen=True)
class CheckReport:
    """What a check found in one array, as plain data.

    `heat` is the greatest error as a part of its bound in each of a grid of patches (rows of
    columns), with `patch` elements a side; leading axes are folded into rows. `how` says where
    the bound comes from.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    total: int
    outside: int
    not_finite: int
    worst: tuple[WorstElement, ...]
    heat: tuple[tuple[float, ...], ...] = ()
    patch: tuple[int, int] = (1, 1)
    how: str = ""
    target: str = ""

    @property
    def passed(self) -> bool:
        """Whether every element is within its bound."""
        return self.outside == 0


def check_report(
    name: str,
    got: NDArray[Any],
    reference: NDArray[Any],
    bound: NDArray[Any] | float,
    *,
    how: str = "",
    target: str = "",
) -> CheckReport:
    """Compare `got` with `reference` (same shape, any dtype) against `bound` (broadcast to the shape).

    An element is outside when |got - reference| > bound. Equal infinities and a NaN where the
    reference has one are right; a NaN or infinity elsewhere is outside. Raises `ShapeError` when
    the shapes differ.
    """
    import numpy as np

    if got.shape != reference.shape:
        from ..errors import ShapeError

        raise ShapeError(
            "{name} cannot be compared", name=name, expected="shape {shape}", found="shape {given}",
            shape=reference.shape, given=got.shape,
        )  # fmt: skip
    a, b = got.astype(np.float64), reference.astype(np.float64)
    limit: NDArray[np.float64] = np.broadcast_to(np.asarray(bound, np.float64), a.shape)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.where(same, 0.0, np.abs(a - b))
        error = np.where(np.isnan(error), np.inf, error)
        outside = error > limit
        part = np.where(error == 0, 0.0, np.where(limit > 0, error / np.where(limit > 0, limit, 1.0), np.inf))
    worst = _worst(a, b, error, limit, part)
    heat, patch = _heat(part)
    wrong = int(np.count_nonzero(~np.isfinite(a) & ~same))
    return CheckReport(
        name, tuple(got.shape), str(got.dtype), int(a.size), int(np.count_nonzero(outside)), wrong,
        worst, heat, patch, how, target,
    )  # fmt: skip


def _worst(
    a: NDArray[np.float64], b: NDArray[np.float64], error: NDArray[np.float64],
    limit: NDArray[np.float64], part: NDArray[np.float64],
) -> tuple[WorstElement, ...]:  # fmt: skip
    import numpy as np

    flat = part.reshape(-1)
    count = min(WORST, flat.size)
    if not count:
        return ()
    picked = np.argpartition(flat, flat.size - count)[-count:]
    ordered = picked[np.argsort(-flat[picked], kind="stable")]
    out: list[WorstElement] = []
    for at in ordered.tolist():
        index = cast("tuple[int, ...]", np.unravel_index(at, part.shape))
        values = (float(x.reshape(-1)[at]) for x in (a, b, error, limit))
        out.append(WorstElement(tuple(map(int, index)), *values))
    return tuple(out)


def _heat(part: NDArray[np.float64]) -> tuple[tuple[tuple[float, ...], ...], tuple[int, int]]:
    """Greatest part of the bound in each of at most 32 by 32 patches."""
    import numpy as np

    if part.size == 0:
        return (), (1, 1)
    flat = part.reshape(-1, part.shape[-1]) if part.ndim > 1 else part.reshape(1, -1)
    rows, cols = flat.shape
    step = (math.ceil(rows / _CELLS), math.ceil(cols / _CELLS))
    by_rows = np.maximum.reduceat(flat, np.arange(0, rows, step[0]), axis=0)
    patches = np.maximum.reduceat(by_rows, np.arange(0, cols, step[1]), axis=1)
    return tuple(tuple(float(v) for v in row) for row in patches), step


def step_of(part: float) -> int:
    """Which step of the map a part of the bound falls in: 0 exact, 5 outside."""
    return next((at for at, limit in enumerate(_STEPS) if part <= limit), len(_STEPS))


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


def heat_svg(report: CheckReport) -> str:
    """The map of errors as an `<svg>` element, with the legend below; empty without elements."""
    if not report.heat:
        return ""
    rows, cols = len(report.heat), len(report.heat[0])
    side = max(6, min(16, 320 // max(rows, cols)))
    arm = side - 4
    out: list[str] = []
    for i, row in enumerate(report.heat):
        at = 0
        while at < cols:  # equal neighbours become one rectangle: a right result is a few of them
            step, end = step_of(row[at]), at + 1
            while end < cols and step_of(row[end]) == step:
                end += 1
            out.append(
                f'<rect x="{at * side}" y="{i * side}" width="{(end - at) * side}" height="{side}" '
                f'class="h{step}" fill="{_LIGHT[step]}"/>'
            )
            if step == 5 and side >= 8:
                for k in range(at, end):
                    out.append(
                        f'<path d="M{k * side + 2} {i * side + 2}l{arm} {arm}m0 {-arm}'
                        f'l{-arm} {arm}" stroke="{PALETTE["bg"][0]}"/>'
                    )
            at = end
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


def summary(report: CheckReport) -> str:
    """One sentence: how many elements are outside, and the worst as a part of its bound."""
    if report.total == 0:
        return f"{report.name}: no elements"
    worst = report.worst[0]
    size = f"{report.name}: {report.total} elements"
    if report.passed:
        part = f"{number(100 * worst.error / worst.bound)} % of its bound" if worst.bound else "no error"
        return (
            f"{size}, all within their bounds; the worst uses {part}" if worst.error else f"{size}, all exact"
        )
    extra = f", {report.not_finite} of them not finite" if report.not_finite else ""
    share = number(100 * report.outside / report.total)
    return f"{size}, {report.outside} outside their bounds ({share} %){extra}"


_HEADS = ("index", "got", "reference", "error", "bound", "error / bound")


def _rows(worst: Sequence[WorstElement]) -> list[list[Value]]:
    out: list[list[Value]] = []
    for each in worst:
        part = each.error / each.bound if each.bound else (math.inf if each.error else 0.0)
        values = (each.got, each.reference, each.error, each.bound)
        out.append(
            [f"[{', '.join(map(str, each.index))}]", *(f"{v:.7g}" for v in values),
             Cell(number(part), "bad" if part > 1 else "good")]
        )  # fmt: skip
    return out


def check_body(report: CheckReport) -> str:
    """The report without root and style sheet."""
    tag = (
        '<span class="tag good">within bounds</span>'
        if report.passed
        else '<span class="tag bad">outside</span>'
    )
    how = f'<p class="q">Bound: {escape(report.how)}.</p>' if report.how else ""
    table = table_html(
        _HEADS, _rows(report.worst), caption="Worst elements", numeric=(1, 2, 3, 4, 5), mono=(0,)
    )
    heat = heat_svg(report)
    side = f'<div><div class="q">Where the errors are</div>{heat}</div>' if heat else ""
    return f'<p>{tag} {escape(summary(report))}.</p><div class="cols"><div>{table}{how}</div>{side}</div>'


def check_html(report: CheckReport, theme: str = "auto") -> str:
    """The report of a check as HTML that stands alone."""
    shape = " x ".join(map(str, report.shape))
    facts = f"{report.dtype}, {shape}" + (f", target {report.target}" if report.target else "")
    head = (
        f'<div class="hd"><h2>Check of {escape(report.name)}</h2><span class="q">{escape(facts)}</span></div>'
    )
    return page(f'{head}<div class="sec">{check_body(report)}</div>', theme, CSS, f"check of {report.name}")


def check_text(report: CheckReport) -> str:
    """The report of a check in plain text."""
    out = [("ok: " if report.passed else "WRONG: ") + summary(report)]
    if report.worst:
        out.append(table_text(_HEADS, _rows(report.worst), numeric=(1, 2, 3, 4, 5), indent="  "))
    if report.how:
        out.append(f"  bound: {report.how}")
    return "\n".join(out)
