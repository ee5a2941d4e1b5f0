"""Colours, the style sheet, and the small formats that every view shares.

A view is HTML without a script and without anything fetched. The style sheet is scoped under one
class, so that nothing of the page around it changes; where a viewer drops `<style>` the markup
alone (headings, real tables, `<pre>`, `<mark>`) still reads.
"""

from __future__ import annotations

import html
import json
import math
from pathlib import Path

from ..errors import OptionError

# name: (light, dark), which the front end's sources read too. Every colour that a text has in the style sheet
# has a contrast of at least 4.5 (WCAG level AA) on every ground there is, also as the three common colour
# deficiencies see them; the tests compute it. The series colours stay apart for all of them (blue, orange,
# teal of differing lightness) and never speak alone: marks differ in shape as well.
PALETTE: dict[str, tuple[str, str]] = {
    name: (light, dark)
    for name, (light, dark) in json.loads(Path(__file__).with_name("palette.json").read_text("utf-8")).items()
}
THEMES = ("auto", "light", "dark")

_RULES = """
.tilebench{color:var(--fg);background:var(--bg);font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);
text-align:left;border:1px solid var(--line);border-radius:6px;overflow:hidden;margin:4px 0}
.tilebench *{box-sizing:border-box}
.tilebench h2,.tilebench h3{margin:0;font-size:13px;line-height:1.45;font-weight:650;color:var(--fg)}
.tilebench .hd{display:flex;flex-wrap:wrap;gap:2px 16px;align-items:baseline;padding:8px 12px;
background:var(--bar);border-bottom:1px solid var(--line)}
.tilebench .hd h2{font-size:14px}
.tilebench .q{color:var(--dim);font-weight:400}
.tilebench .sec{padding:10px 12px;border-top:1px solid var(--line)}
.tilebench .sec:first-child{border-top:0}
.tilebench .sec>h3{margin-bottom:6px}
.tilebench .cols{display:flex;flex-wrap:wrap;gap:10px 32px}
.tilebench .cols>*{flex:1 1 340px;min-width:0}
.tilebench .good{color:var(--good)}.tilebench .bad{color:var(--bad)}.tilebench .warn{color:var(--warn)}
.tilebench code,.tilebench pre,.tilebench .mono{font-family:var(--jp-code-font-family,ui-monospace,
SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace);font-size:12px}
.tilebench pre{margin:0;line-height:1.5;background:none;color:inherit;white-space:pre}
.tilebench table{border-collapse:collapse;margin:0;border:0;font-size:12.5px;color:inherit}
.tilebench table caption{caption-side:top;text-align:left;color:var(--dim);padding:0 0 4px}
.tilebench th,.tilebench td{padding:3px 14px 3px 0;text-align:left;vertical-align:top;border:0;
border-bottom:1px solid var(--line);background:none;white-space:normal;max-width:64ch}
.tilebench thead th{color:var(--dim);font-weight:600;white-space:nowrap}
.tilebench tbody th{font-weight:600}
.tilebench tbody tr:last-child>*{border-bottom:0}
.tilebench .num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.tilebench .nw{white-space:nowrap}.tilebench td.note{min-width:26ch}
.tilebench .wide{overflow-x:auto}
.tilebench mark{background:var(--mark);color:inherit;border-radius:2px;padding:0;
box-shadow:inset 0 -1px var(--s2)}
.tilebench .tag{display:inline-block;border:1px solid currentColor;border-radius:9px;padding:0 7px;
font-size:11.5px;line-height:16px;white-space:nowrap}
.tilebench svg{display:block;max-width:100%;height:auto}
.tilebench svg text{fill:var(--fg);font:11px var(--jp-ui-font-family,system-ui,sans-serif)}
.tilebench svg .q{fill:var(--dim)}.tilebench svg .bad{fill:var(--bad)}
.tilebench summary{cursor:pointer}
.tilebench :focus-visible{outline:2px solid var(--accent);outline-offset:-2px}
""".replace("\n", "")

# Which page says what about its theme: JupyterLab and Notebook 7, VS Code, Colab.
_LIGHT_PAGES = ("[data-jp-theme-light=true]", ".vscode-light", "html[theme=light]")
_DARK_PAGES = ("[data-jp-theme-light=false]", ".vscode-dark", ".vscode-high-contrast", "html[theme=dark]")


def pair(name: str) -> str:
    """A colour of the palette as a value that follows the scheme: for pages around the scoped root."""
    return f"light-dark({','.join(PALETTE[name])})"


def check_theme(theme: str) -> str:
    """`theme` itself; `OptionError` unless it is `auto`, `light` or `dark`."""
    if theme not in THEMES:
        raise OptionError("there is no theme {theme!r}", theme=theme, expected=", ".join(THEMES))
    return theme


def css(theme: str = "auto", extra: str = "") -> str:
    """The style sheet. `auto` follows the page's theme where it names one, else the reader's system.

    Values are written with `light-dark()`; browsers older than it (2024) get the light colours.
    """
    check_theme(theme)
    pairs = ";".join(f"--{name}:{pair(name)}" for name in PALETTE)
    plain = ";".join(f"--{name}:{light}" for name, (light, _) in PALETTE.items())
    scheme = "light dark" if theme == "auto" else theme
    out = f".tilebench{{color-scheme:{scheme};{pairs}}}"
    out += f"@supports not (color:light-dark(red,red)){{.tilebench{{{plain}}}}}"
    if theme == "auto":
        out += ",".join(f"{page} .tilebench" for page in _LIGHT_PAGES) + "{color-scheme:light}"
        out += ",".join(f"{page} .tilebench" for page in _DARK_PAGES) + "{color-scheme:dark}"
    return out + _RULES + extra


def page(body: str, theme: str = "auto", extra: str = "", label: str = "") -> str:
    """`body` inside the scoped root, with its style sheet before it: what a cell output holds."""
    name = f' role="region" aria-label="{escape(label)}"' if label else ""
    return f'<style>{css(theme, extra)}</style><div class="tilebench"{name}>{body}</div>'


def escape(text: object) -> str:
    """Text made safe inside HTML elements and quoted attributes."""
    return html.escape(str(text), quote=True)


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio of two `#rrggbb` colours, 1 to 21 (relative luminance of sRGB)."""
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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
