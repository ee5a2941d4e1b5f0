"""The page of features names tests that there are, and was written by a run in which they passed."""

from __future__ import annotations

from tests.ui.features import FEATURES, PAGE, function_of, page


def test_there_is_a_row_for_each_feature_by_which_tools_are_compared() -> None:
    assert len(FEATURES) == len({each.name for each in FEATURES}) == 34
    assert [each.name for each in FEATURES if not each.test] == ["remote GPU", "several GPUs"]


def test_every_named_test_is_there() -> None:
    assert [test for each in FEATURES for test in each.tests if not function_of(test)] == []
    assert function_of("ui/test_features.py::test_that_there_is_not") == ""


def test_the_page_is_of_these_rows_and_all_of_them_passed() -> None:
    told = {test: "passed" for each in FEATURES for test in each.tests}
    assert PAGE.read_text(encoding="utf-8") == page(told), "run: python -m tests.ui.features"
