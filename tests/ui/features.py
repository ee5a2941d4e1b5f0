"""The page of features: what a person does for each, and the test that shows it. Made by running those tests.

    python -m tests.ui.features            # runs the tests and writes tilebench/workbench/FEATURES.md

The rows are those by which tools around kernels are compared. A row is `no` where there is nothing to show.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "tilebench" / "workbench" / "FEATURES.md"
HEAD = """# What the workbench does

Written by `python -m tests.ui.features`, which ran the tests named here; do not edit.

| feature | what one does | shown by | result |
| --- | --- | --- | --- |
"""


class Feature(NamedTuple):
    """A row; a test is `FILE::NAME` below `tests/`, the first empty where the answer is no."""

    name: str
    does: str
    test: str = ""
    second: str = ""

    @property
    def tests(self) -> tuple[str, ...]:
        """What shows it; a feature of two places has a test in each."""
        return tuple(test for test in (self.test, self.second) if test)


_LIVE, _SEEN = "extension/test_live_bench.py", "extension/test_panes_seen.py"
_QUICK, _SWEEP = "ui/test_quickstart.py", "ui/test_sweep.py"
_EDIT, _PICTURES = "workbench/test_edits.py", "workbench/test_picture_tabs.py"
_HERE = "workbench/test_where_it_runs.py"
FEATURES = (
    Feature("source and IR, line by line", "click a line: its kin light up in every pane",
            f"{_SEEN}::test_a_line_of_a_macro_lights_what_it_became_everywhere"),
    Feature("source, PTX and SASS, line by line", "the same, down to the machine code",
            "profile/test_lines.py::test_a_gemm_finds_its_instructions_in_every_stage"),
    Feature("difference of stages", "`compared with`: the stage before, a position, a pin, a target",
            f"{_SEEN}::test_a_difference_says_what_only_sizes_changed"),
    Feature("highlighting of IR, PTX, SASS", "nothing: texts are coloured",
            "extension/test_browser.py::test_texts_are_coloured"),
    Feature("SASS control codes", "show `sass`: stalls and barriers stand in the gutter",
            f"{_SEEN}::test_control_codes_stand_beside_machine_code_and_the_keyboard_reads_them"),
    Feature("edit generated code and run it", "`e` in a pane, then Ctrl+Enter",
            f"{_EDIT}::test_cuda_text_is_compiled_and_its_registers_follow"),
    Feature("layout picture", "the tab of layouts: who holds each element",
            "extension/test_picture_page.py::test_each_cell_says_who_holds_it"),
    Feature("bank-conflict picture", "the tab of accesses: banks with and without the swizzle",
            "extension/test_picture_page.py::test_banks_with_and_without_the_swizzle"),
    Feature("occupancy and shared memory", "the tabs of memory and of a launch on any card",
            f"{_PICTURES}::test_memory_says_how_many_stages_fit"),
    Feature("roofline", "the chart `under the roof`",
            "profile/test_roofline.py::test_attainable_bends_at_the_ridge"),
    Feature("what bounds a kernel", "the tab Diagnosis, or `kernel.diagnose()`",
            "profile/test_diagnosis.py::test_a_cause_is_shown_by_a_kernel_that_has_it"),
    Feature("timeline of overlap", "the tab Timeline, recorded when asked for",
            "workbench/test_timeline_tab.py::test_lanes_are_the_events"),
    Feature("live charts", "`--run`, or Measure",
            f"{_QUICK}::test_a_slider_moved_by_keyboard_changes_stages_figures_and_chart"),
    Feature("sliders that wait and cancel", "move on: what is stale ends, and leaves no row",
            "workbench/test_never_in_the_way.py::test_what_a_slider_passes_by_leaves_no_row_and_no_program"),
    Feature("sweeps", "Run sweep, or `tilebench bench --sweep`",
            f"{_SWEEP}::test_a_sweep_is_begun_stopped_and_taken_up_from_the_bench"),
    Feature("heat maps and parallel coordinates", "the kind of the chart",
            f"{_SWEEP}::test_kinds_of_picture_are_chosen_by_keyboard"),
    Feature("beside torch, Triton, cuBLAS", "give other implementations: they stand in the same chart",
            "workbench/test_others.py::test_others_stand_in_the_chart_with_their_own_spread"),
    Feature("differences by element", "Check: a map of errors over tiles and threads",
            "extension/test_drawn.py::test_a_map_goes_from_tiles_to_elements_and_their_threads"),
    Feature("save and share", "Save: a record, a position as one line",
            "workbench/test_keeping.py::test_a_record_holds_the_runs_and_opens"),
    Feature("export", "Save: kernel and schedule files that run without Jupyter",
            "workbench/test_keeping.py::test_kernel_and_schedule_run_without_the_bench"),
    Feature("command line", "`tilebench show`, `run`, `bench`", "test_cli.py::test_show_prints_a_stage"),
    Feature("JupyterLab and Notebook 7", "`%%tile`",
            f"{_LIVE}::test_everything_is_on_the_screen_at_once",
            "extension/test_notebook7.py::test_a_bench_answers_keys_and_links_lines"),
    Feature("VS Code notebooks", "`%%tile`: the picture as HTML",
            f"{_HERE}::test_it_is_read_where_outputs_are_cleaned"),
    Feature("Colab", "`%%tile`: the picture as HTML", f"{_HERE}::test_it_is_read_where_outputs_are_cleaned"),
    Feature("a demo without a GPU", "`tilebench demo`, or the quickstart on Binder",
            "test_cli.py::test_demo_writes_a_report_and_a_line_for_each_kernel"),
    Feature("marimo and programs", "`tilebench.workbench(...)`: the picture as HTML, `set` answers at once",
            "workbench/test_magic.py::test_headless_takes_no_thread_and_leaves_nothing"),
    Feature("squiggles in the cell", "run a cell with a fault (JupyterLab extension)",
            "extension/test_cell_editing.py::test_an_error_is_marked_at_its_range_until_its_text_changes"),
    Feature("completion and hover", "Tab in a cell; point at a word",
            "extension/test_cell_editing.py::test_completion_of_names_says_their_signatures"),
    Feature("dark theme", "nothing: it is the notebook's",
            "extension/test_accessible_bench.py::test_axe_finds_nothing_in_any_tab"),
    Feature("accessibility", "everything by keys, read by name and value",
            "extension/test_accessible_bench.py::test_every_handle_has_a_name_and_says_its_value"),
    Feature("large outputs", "scroll: only what is seen is drawn",
            f"{_SEEN}::test_five_thousand_lines_scroll_at_sixty_frames_a_second"),
    Feature("without a GPU", "choose any card: all but speed is there",
            "workbench/test_never_in_the_way.py::test_targets_that_are_not_here_do_not_time_the_processor_again"),
    Feature("remote GPU", "no: it comes with tuning"),
    Feature("several GPUs", "no: they come with tuning"),
)  # fmt: skip


def function_of(test: str) -> str:
    """The text of a file if it defines the named test, else empty."""
    file, _, name = test.partition("::")
    path = ROOT / "tests" / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return text if re.search(rf"^def {name}\(", text, re.M) else ""


def outcomes(tests: list[str]) -> dict[str, str]:
    """Run tests; `passed`, `skipped` or `failed` by test (of all its parameters the worst)."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run([*words, *[f"tests/{test}" for test in tests]], cwd=ROOT, check=False)
        found: dict[str, str] = {}
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            path = str(case.get("classname", "")).removeprefix("tests.").replace(".", "/") + ".py"
            name = f"{path}::{str(case.get('name', '')).partition('[')[0]}"
            kinds = {child.tag for child in case}
            state = (
                "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            )
            found[name] = max(found.get(name, "passed"), state, key=("passed", "skipped", "failed").index)
    return found


def page(results: dict[str, str]) -> str:
    """The page, from the outcome of each test."""

    def row(feature: Feature) -> str:
        shown = ", ".join(f"`tests/{test}`" for test in feature.tests)
        found = ", ".join(dict.fromkeys(results.get(test, "not run") for test in feature.tests))
        return f"| {feature.name} | {feature.does} | {shown}{' ' * bool(shown)}| {found or 'no'} |"

    return HEAD + "\n".join(map(row, FEATURES)) + "\n"


def main() -> int:
    """Run the tests and write the page; 1 where one of them did not pass."""
    tests = list(dict.fromkeys(test for each in FEATURES for test in each.tests))
    results = outcomes(tests)
    PAGE.write_text(page(results), encoding="utf-8")
    wrong = {test: results.get(test, "not run") for test in tests if results.get(test) != "passed"}
    for test, state in wrong.items():
        print(f"{state}: {test}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
