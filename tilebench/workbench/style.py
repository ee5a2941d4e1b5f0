"""Colours, the style sheet, and (from `profile/figures.py`) the small formats that every view shares.

A view is HTML without a script and without anything fetched. The style sheet is scoped under one
class, so that nothing of the page around it changes; where a viewer drops `<style>` the markup
alone (headings, real tables, `<pre>`, `<mark>`) still reads.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from ..errors import OptionError
from ..profile.figures import bytes_text as bytes_text
from ..profile.figures import digits_within as digits_within
from ..profile.figures import number as number
from ..profile.figures import percent_text as percent_text
from ..profile.figures import rate_text as rate_text
from ..profile.figures import seconds_text as seconds_text
from ..profile.figures import span_text as span_text

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


_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_COMMA, _NOT = re.compile(r",(?![^()]*\))"), re.compile(r":not\([^()]*\)")
_COLOUR = re.compile(r"var\(--([\w-]+)")


def rules_for(rules: str, body: str) -> str:
    """Of flat rules those that a text can use, by its classes: an output is saved with its style sheet."""
    classes = set(" ".join(re.findall(r'class="([^"]*)"', body)).split())
    out = ""
    for selectors, values in _RULE.findall(rules):
        kept = [one for one in _COMMA.split(selectors) if classes.issuperset(_classes(one))]
        out += f"{','.join(kept)}{{{values}}}" if kept else ""
    return out


def _classes(selector: str) -> list[str]:
    """What an element of ours has to have; not what the page around it has, nor what it must not have."""
    return re.findall(r"\.([\w-]+)", _NOT.sub("", selector.partition(".tilebench")[2]))


def css(theme: str = "auto", extra: str = "", body: str | None = None) -> str:
    """The style sheet; with a `body` what that needs of it.

    `auto` follows the page's theme where it names one, else the reader's system.
    Values are written with `light-dark()`; browsers older than it (2024) get the light colours.
    """
    check_theme(theme)
    rules = _RULES + extra if body is None else rules_for(_RULES + extra, body)
    names = PALETTE if body is None else [n for n in PALETTE if n in {*_COLOUR.findall(rules + body)}]
    pairs = ";".join(f"--{name}:{pair(name)}" for name in names)
    plain = ";".join(f"--{name}:{PALETTE[name][0]}" for name in names)
    scheme = "light dark" if theme == "auto" else theme
    out = f".tilebench{{color-scheme:{scheme};{pairs}}}"
    out += f"@supports not (color:light-dark(red,red)){{.tilebench{{{plain}}}}}"
    if theme == "auto":
        out += ",".join(f"{page} .tilebench" for page in _LIGHT_PAGES) + "{color-scheme:light}"
        out += ",".join(f"{page} .tilebench" for page in _DARK_PAGES) + "{color-scheme:dark}"
    return out + rules


def page(body: str, theme: str = "auto", extra: str = "", label: str = "") -> str:
    """`body` inside the scoped root, with its style sheet before it: what a cell output holds."""
    name = f' role="region" aria-label="{escape(label)}"' if label else ""
    return f'<style>{css(theme, extra, body)}</style><div class="tilebench"{name}>{body}</div>'


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
