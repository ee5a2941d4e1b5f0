"""Every text of the style sheet can be read on every ground, in both themes, by every kind of eye."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from tilebench.workbench import parts, report
from tilebench.workbench.check_view import _DARK, _LIGHT
from tilebench.workbench.front.script import script
from tilebench.workbench.style import PALETTE, contrast, css
from tilebench.workbench.views.stages import stages_body

from .samples import gemm_record

# What a colour becomes for an eye, in linear light (Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009,
# severity 1).
EYES = {
    "usual": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
THEMES = {"light": 0, "dark": 1}
# Bars, tracks, dividers and marks, which no text stands on.
BARS = {"track", "fill", "bad", "line", "accent", "s2"}


def seen(colour: str, eye: str) -> str:
    """`#rrggbb` as that eye sees it."""
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.asarray(EYES[eye]) @ linear, 0, 1)
    back = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(float(part) * 255):02x}" for part in back)


def sheet() -> str:
    """The style sheet of the HTML form, and the front end's own as it stands in the script."""
    return css("auto", parts.sheet()) + script()


def names(property_: str) -> set[str]:
    """The palette's names that a property has somewhere in the style sheet.

    What the front end fills are points of charts; its texts have a colour.
    """
    # The second: which lines light up together.
    rules = (css("auto", parts.sheet()) if property_ == "fill" else sheet()) + stages_body(gemm_record())[1]
    return set(re.findall(rf"(?<![-\w]){property_}:var\(--(\w+)\)", rules))


def test_what_the_style_sheet_has_is_found() -> None:
    assert {"fg", "dim", "good", "bad", "warn", "accent", "tk", "tv"} <= names("color")
    assert {"bg", "bar", "new", "changed", "mark", "link"} == names("background") - BARS
    own = css("auto", parts.sheet())
    assert re.findall(r"(?<![-\w(])(?:color|background):((?!var|inherit|none)[^;}]+)", own) == []
    assert "opacity" not in sheet()


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_numbers_in_cells_are_readable_on_each_of_their_colours(theme: str, eye: str) -> None:
    pick = {name: seen(both[THEMES[theme]], eye) for name, both in PALETTE.items()}
    cells = [name for name in pick if re.fullmatch(r"c\d", name)]
    assert len(cells) == 8
    assert {name for name in cells if contrast(pick["fg"], pick[name]) < 4.5} == set()


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_figures_beside_lines_are_readable_on_their_shade(theme: str, eye: str) -> None:
    pick = {name: seen(both[THEMES[theme]], eye) for name, both in PALETTE.items()}
    assert contrast(pick["dim"], pick["track"]) >= 4.5


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_text_is_readable_on_every_ground(theme: str, eye: str) -> None:
    pick = {name: seen(both[THEMES[theme]], eye) for name, both in PALETTE.items()}
    texts, grounds = names("color") | names("fill"), names("background") - BARS
    low = {
        (text, ground): round(found, 2)
        for text, ground in itertools.product(texts, grounds)
        if (found := contrast(pick[text], pick[ground])) < 4.5
    }
    assert low == {}


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_marks_stand_out_and_series_stay_apart(theme: str, eye: str) -> None:
    pick = {name: seen(both[THEMES[theme]], eye) for name, both in PALETTE.items()}
    for name in ("s1", "s2", "s3", "bad", "fill"):
        assert contrast(pick[name], pick["bg"]) >= 3, name
    for one, other in itertools.combinations(("s1", "s2", "s3"), 2):
        apart = [int(pick[one][k : k + 2], 16) - int(pick[other][k : k + 2], 16) for k in (1, 3, 5)]
        assert sum(step * step for step in apart) ** 0.5 > 50, (one, other)


@pytest.mark.parametrize("eye", EYES)
def test_the_steps_of_the_map_of_errors_are_in_order_of_lightness(eye: str) -> None:
    for steps, ground in ((_LIGHT, "#ffffff"), (_DARK, "#000000")):
        found = [contrast(seen(step, eye), ground) for step in steps[:5]]
        assert found == sorted(found)


def test_the_page_of_a_report_takes_the_same_colours() -> None:
    own = set(re.findall(r"#[0-9a-f]{6}", report._PAGE))
    assert own == {colour for name in ("bg", "fg", "accent") for colour in PALETTE[name]}


def test_words_on_lanes_and_letters_on_errors_can_be_read() -> None:
    """What the front end writes on a coloured bar or square has 4.5:1 to it, in both themes."""
    rows = re.findall(r'\["(\w+)", ?"(#\w{6}),(#\w{6})", ?"(#\w{6}),(#\w{6})"\]', script())
    lanes = {kind: (a, b) for kind, a, b, _, _ in rows}
    words = {kind: (c, d) for kind, _, _, c, d in rows}
    assert {"load", "wait", "barrier", "compute", "store"} <= set(lanes) == set(words)
    for kind, fills in lanes.items():
        for fill, word in zip(fills, words[kind], strict=True):
            assert contrast(fill, word) >= 4.5, kind


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_figures_are_readable_on_the_squares_of_a_map(theme: str, eye: str) -> None:
    """Each step of a sweep's map with the colour of its text, and the steps in order of lightness."""
    style = (Path(__file__).parents[2] / "extension" / "src" / "bench" / "style.ts").read_text("utf-8")
    steps = re.findall(r"\['(#\w{6}),(#\w{6})', '(#\w{6}),(#\w{6})'\]", style)
    assert len(steps) == 5
    at = THEMES[theme]
    pairs = [(seen(step[at], eye), seen(step[2 + at], eye)) for step in steps]
    assert [round(contrast(*pair), 2) for pair in pairs if contrast(*pair) < 4.5] == []
    found = [contrast(ground, pick_ground(theme)) for ground, _ in pairs]
    assert found == sorted(found, reverse=True)


def pick_ground(theme: str) -> str:
    return PALETTE["bg"][THEMES[theme]]
