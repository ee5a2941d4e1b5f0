"""Figures as text: times, rates, sizes and spans, as fine as their ranges leave them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits and no exponent between 1e-3 and 1e6."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    # Rounded before its size is taken: 0.9996 has three digits as 1.00, not as 1.000.
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if size < -3 or size >= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - size)}f}"


def digits_within(value: float, low: float, high: float, most: int = 3) -> int:
    """Significant digits of `value` that a range around it leaves: the last has the place of its half width.

    >>> digits_within(16.05, 9.6, 23.4), digits_within(11.42, 11.0, 11.9)
    (2, 3)
    """
    half = (high - low) / 2
    if not half > 0 or not value > 0:
        return most
    return max(1, min(most, math.floor(math.log10(value)) - math.floor(math.log10(half)) + 1))


def _rounded(value: float, digits: int) -> float:
    """`value` to `digits` significant digits: before its unit is chosen, so that 999.9 us are 1.00 ms."""
    return float(f"{value:.{digits - 1}e}")


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def _time_unit(value: float) -> tuple[float, str]:
    return next((step for step in _TIMES if abs(value) >= step[0] * 0.9999), _TIMES[-1])


def seconds_text(value: float, digits: int = 3) -> str:
    """Seconds as `s`, `ms`, `us` or `ns`."""
    if value == 0:
        return "0 s"
    value = _rounded(value, digits)
    size, unit = _time_unit(value)
    return f"{number(_rounded(value / size, digits), digits)} {unit}"


def span_text(low: float, high: float) -> str:
    """`10 to 23 ms`: two times in one unit, as fine as they are apart."""
    if low == high:
        return seconds_text(high)
    if not 0 <= low < high < math.inf:  # of a record that others wrote
        return f"{seconds_text(low)} to {seconds_text(high)}"
    size, unit = _time_unit(high)
    digits = max(2, digits_within(high, low, high, 4))
    place = math.floor(math.log10(high / size)) - digits + 1
    if round(low / size, -place) == 0:
        return f"{seconds_text(low, 2)} to {seconds_text(high, 2)}"
    first, last = (f"{round(value / size, -place):.{max(0, -place)}f}" for value in (low, high))
    return f"{first} to {last} {unit}"


def percent_text(part: float, low: float, high: float) -> str:
    """`+12 %`: a part with its sign, as fine as its range leaves it, a tenth of a percent at most."""
    half = 50 * (high - low)
    place = max(-1, math.floor(math.log10(half))) if half > 0 else -1
    value = round(100 * part, -place)
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    return f"{sign}{abs(value):.{max(0, -place)}f} %"


def bytes_text(value: float) -> str:
    """Bytes as B, KiB, MiB or GiB, of 1024 each; exact below one KiB."""
    if abs(value) < 1024:
        return f"{int(value)} B"
    for size, name in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if abs(value) >= size:
            whole = value / size
            return f"{whole:.0f} {name}" if whole == int(whole) else f"{number(whole)} {name}"
    return f"{int(value)} B"


def rate_text(value: float, unit: str, digits: int = 3) -> str:
    """A rate a second: `value` FLOP or bytes a second (`unit` is `FLOP/s` or `B/s`), scaled by thousands."""
    steps = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
    value = _rounded(value, digits)
    size, lead = next((step for step in steps if abs(value) >= step[0]), (1.0, ""))
    return f"{number(_rounded(value / size, digits), digits)} {lead}{unit}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table as lines: columns to the width of their widest cell, the last as it is."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]
