"""A bench for those who do not see it or use no pointer: names, values, states, focus, contrast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extension.lab import browser_page, lab_server, open_notebook, run_all, write_notebook
from tests.extension.test_live_bench import CELL, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent
VIOLATIONS = """async () => {
    const found = await axe.run(document.querySelector('.tbx'), { resultTypes: ['violations'] });
    const html = each => each.nodes.map(node => node.html.slice(0, 120)).join(' | ');
    return found.violations.map(each => `${each.id}: ${html(each)}`);
}"""


@pytest.fixture(scope="module")
def page(chromium: str, labextensions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A bench that measured and checked, with every tab, in JupyterLab; axe-core is in the page."""
    root = tmp_path_factory.mktemp("notebooks")
    cell = CELL.replace("--target cuda:sm_80", "--target cuda:sm_80 --run --check")
    cells = ["import tilebench, tilebench.language as T\n%load_ext tilebench", cell]
    write_notebook(root / "bench.ipynb", cells)
    axe = labextensions.parent.parent / "extension" / "node_modules" / "axe-core" / "axe.min.js"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("TILEBENCH_VERIFY", raising=False)
        with lab_server(root, tmp_path_factory.mktemp("home")) as address, browser_page(chromium) as opened:
            opened.set_viewport_size({"width": 1600, "height": 1000})
            open_notebook(opened, address, "bench.ipynb")
            run_all(opened)
            settled(opened)
            slider = opened.get_by_label("block_M")
            slider.focus()
            opened.keyboard.press("ArrowRight")
            opened.locator("[data-stage=cuda] .tbx-row").first.wait_for()
            opened.locator(".tbx-tabs [role=tab]", has_text="Moves").wait_for()
            settled(opened)
            opened.add_script_tag(content=axe.read_text(encoding="utf-8"))
            yield opened


def dark(page: Any, on: bool) -> None:
    theme = "JupyterLab Dark" if on else "JupyterLab Light"
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_function(f"document.body.dataset.jpThemeLight === '{'false' if on else 'true'}'")
    page.wait_for_timeout(300)


@pytest.mark.parametrize("look", ["light", "dark", "forced colours"])
def test_axe_finds_nothing_in_any_tab(page: Any, look: str) -> None:
    dark(page, look == "dark")
    page.emulate_media(forced_colors="active" if look == "forced colours" else "none")
    ground = page.locator(".tbx").evaluate("each => getComputedStyle(each).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (look != "dark")
    tabs = page.locator(".tbx-tabs [role=tab]")
    names = tabs.all_inner_texts()
    assert len(names) >= 6
    for at in range(len(names)):
        tabs.nth(at).click()
        page.locator(".tbx").evaluate(
            "bench => bench.querySelectorAll('details').forEach(each => { each.open = true; })"
        )
        assert page.evaluate(VIOLATIONS) == [], names[at]
    page.emulate_media(forced_colors="none")
    dark(page, False)


def test_every_handle_has_a_name_and_says_its_value(page: Any) -> None:
    sliders = page.locator(".tbx input[type=range]")
    assert sliders.count() >= 4
    for slider in sliders.all():
        value = slider.evaluate("each => each.parentElement.querySelector('output').textContent")
        said = slider.get_attribute("aria-valuetext")
        assert said.split(",")[0] == value
        assert value != slider.input_value() or int(value) < 5  # the value, not its place in the list
        assert slider.evaluate("each => each.labels[0].textContent")
    for divider in page.locator(".tbx-divider:visible").all():
        assert divider.get_attribute("aria-label").startswith("width of")
        assert 0 < int(divider.get_attribute("aria-valuenow")) < 100


def test_toggles_say_whether_they_are_on(page: Any) -> None:
    for name, on in (("Measure", "true"), ("Check", "true")):
        assert page.get_by_role("button", name=name, exact=True).get_attribute("aria-pressed") == on
    stages = page.locator(".tbx-stages button[aria-pressed]")
    shown = set(page.locator(".tbx-pane").evaluate_all("panes => panes.map(each => each.dataset.stage)"))
    for stage in stages.all():
        assert (stage.get_attribute("aria-pressed") == "true") == (stage.inner_text() in shown)


def test_folds_and_panes_are_reached_and_worked_by_keys(page: Any) -> None:
    for fold in page.locator(".tbx details:visible > summary").all():
        fold.focus()
        assert fold.evaluate("each => document.activeElement === each")
        was = fold.evaluate("each => each.parentElement.open")
        page.keyboard.press("Enter")
        assert fold.evaluate("each => each.parentElement.open") != was
    code = page.locator("[data-stage=cuda] .tbx-code")
    code.focus()
    page.keyboard.press("Home")
    assert code.locator(".tbx-folded").count() == 1
    # A fold is one line of a walk, and a key opens and closes it.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert code.locator(".tbx-folded").count() == 1
    page.keyboard.press("z")
    assert code.locator(".tbx-folded").count() == 0
    page.keyboard.press("z")
    assert code.locator(".tbx-folded").count() == 1


def test_the_focus_stays_over_redraws(page: Any) -> None:
    select = page.get_by_label("block_N")
    select.focus()
    page.keyboard.press("ArrowRight")
    page.locator("[data-stage=cuda] .tbx-row").first.wait_for()
    settled(page)
    assert page.evaluate("document.activeElement.labels?.[0].textContent") == "block_N"
    code = page.locator("[data-stage=cuda] .tbx-code")
    code.focus()
    page.keyboard.press("End")
    # A move that comes from elsewhere, as a program's, draws the pane that has the focus again.
    page.locator(".tbx").evaluate(
        """bench => {
            const named = each => each.labels[0]?.textContent === 'block_N';
            const slider = [...bench.querySelectorAll('input')].find(named);
            slider.value = 0;
            slider.dispatchEvent(new Event('input'));
        }"""
    )
    page.locator("[data-stage=laid_out] .tbx-row", has_text="T.Kernel(32, 4").first.wait_for()
    settled(page)
    assert page.evaluate("document.activeElement.closest('.tbx-pane')?.dataset.stage") == "cuda"
    tab = page.locator(".tbx-tabs [role=tab][aria-selected=true]")
    tab.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
