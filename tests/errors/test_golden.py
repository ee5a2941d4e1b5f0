"""Whole texts of errors at the user's line. Renew with `pytest --update-golden` and read the diff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.errors import cells
from tilebench.errors import LanguageError, TileError, remember_source
from tilebench.frontend import check_syntax, trace

GOLDEN = Path(__file__).parent / "golden"


def error_of(name: str) -> TileError:
    """The error that a cell gives, run as a notebook runs it."""
    text = cells.CELLS[name]
    remember_source("cell", text)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "cell", "exec", dont_inherit=True), space)
    with pytest.raises(TileError) as caught:
        trace(space["kernel"], cells.PARAMETERS.get(name, {}))
    return caught.value


def compare(name: str, text: str, update: bool) -> None:
    path = GOLDEN / f"{name}.txt"
    if update:
        path.write_text(text + "\n", encoding="utf-8")
    assert path.is_file(), "no golden text; run with --update-golden and read it"
    assert text + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(cells.CELLS))
def test_message(name: str, request: pytest.FixtureRequest) -> None:
    error = error_of(name)
    text = error.explain()
    compare(name, text, request.config.getoption("--update-golden"))
    assert "tilebench/" not in text, "a file of the compiler stands in a message"
    assert error.place is not None
    assert error.place.file == "cell"
    assert error.title != "internal error"


def test_a_helper_that_calls_itself_is_told_in_few_lines() -> None:
    cells.CELLS["again"] = "def again(x):\n    return again(x)\n\n" + cells.in_kernel(
        "C[0, 0] = again(A[0, 0])"
    )
    try:
        text = error_of("again").explain()
    finally:
        del cells.CELLS["again"]
    assert text.startswith("language error: this calls itself without end")
    assert "C[0, 0] = again(A[0, 0])" in text
    assert "calls more ..." in text
    assert len(text.splitlines()) < 20


def test_syntax_error(request: pytest.FixtureRequest) -> None:
    with pytest.raises(LanguageError) as caught:
        check_syntax("import tilebench.language as T\n\ndef kernel(M:\n    pass\n", "cell")
    compare("syntax", caught.value.explain(), request.config.getoption("--update-golden"))
    assert caught.value.place is not None
    assert caught.value.place.line == 3


def test_annotations_left_as_text_give_the_same_error() -> None:
    plain = error_of("tensor_extent").explain()
    cells.CELLS["as_text"] = "from __future__ import annotations\n" + cells.CELLS["tensor_extent"]
    try:
        text = error_of("as_text").explain()
    finally:
        del cells.CELLS["as_text"]
    assert text == plain.replace("cell:5, in kernel", "cell:6, in main")


def test_no_golden_without_a_cell() -> None:
    known = {*cells.CELLS, "syntax"}
    assert {path.stem for path in GOLDEN.glob("*.txt")} <= known
