"""Marks for an editor: errors and warnings of a cell's run, each at its range, in the cell's outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.workbench.bench_kernels import GEMM, IMPORTS, SHAPES
from tests.workbench.test_magic import run
from tilebench.errors import OptionError, Place, ShapeError, remember_source
from tilebench.record import CompileRecord, Diagnostic, PlaceRecord, Remark
from tilebench.workbench import live
from tilebench.workbench.front.marks import MARKS_MIME, error_marks, marks_json, record_marks, word_place
from tilebench.workbench.registry import close_all

pytest.importorskip("IPython")
TEXT = "%%tile --with M=4\ndef f():\n    T.gemm(A, B)\n"


@pytest.fixture(autouse=True)
def source() -> None:
    remember_source("Cell In[3]", TEXT)


def test_an_error_is_marked_where_it_is_and_where_it_was_called_from() -> None:
    call = Place("Cell In[3]", 2, 0, 2, 3)
    place = Place("Cell In[3]", 3, 4, 3, 16, caller=call)
    other = Place("Cell In[3]", 1, 0, 1, 6)
    error = ShapeError(
        "sizes of {a} differ",
        at=place,
        a="A",
        expected="{a} as B",
        hint="look",
        also=[("{a} is here", other)],
    )
    first, second, third = error_marks(error)
    assert (first.line, first.column, first.end_line, first.end_column) == (3, 4, 0, 16)
    assert (first.text, first.severity) == ("    T.gemm(A, B)", "error")
    assert first.what == "shape error: sizes of A differ"
    assert first.details == (("expected", "A as B"), ("help", "look"))
    assert (second.line, second.what) == (2, "called from here: shape error: sizes of A differ")
    assert (third.severity, third.what) == ("info", "A is here")


def test_an_error_of_the_magics_line_is_marked_at_its_word() -> None:
    line = "%%tile --wiht M=4"
    error = OptionError("%%tile has no option {name}", name="--wiht", options="--with")
    place = word_place("Cell In[3]", line, error)
    assert (place.column, place.end_column) == (7, 13)
    whole = word_place("Cell In[3]", line, OptionError("nothing that is there"))
    assert (whole.column, whole.end_column) == (0, len(line))
    assert error_marks(error, place)[0].line == 1
    assert error_marks(OptionError("no place")) == ()


def test_what_passes_could_not_do_is_a_warning() -> None:
    here = PlaceRecord("Cell In[3]", 3, 4, 3, 16)
    record = CompileRecord(
        "f", "cpu", {}, (), (),
        remarks=(
            Remark("vectorize", "missed", "rows do not divide", here), Remark("p", "applied", "done", here),
            Remark("p", "missed", "nowhere"),
        ),
        diagnostics=(Diagnostic("error", "bad", PlaceRecord("Cell In[3]", 2)),),
    )  # fmt: skip
    found = record_marks(record)
    assert [(m.severity, m.line, m.what) for m in found] == [
        ("warning", 3, "rows do not divide"),
        ("error", 2, "bad"),
    ]
    assert marks_json(found, "tb1")["bench"] == "tb1"
    # A place whose text nobody has is marked nowhere.
    # A place whose text nobody has is marked nowhere.
    gone = Remark("p", "missed", "x", PlaceRecord("gone", 1))
    assert record_marks(CompileRecord("f", "cpu", {}, (), (), remarks=(gone,))) == ()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    made: Any = InteractiveShell.instance(config=config)
    made.run_cell(IMPORTS + "%load_ext tilebench", store_history=True)
    monkeypatch.setattr(live, "is_interactive", lambda: True)
    yield made
    close_all()
    made.run_line_magic("unload_ext", "tilebench")
    InteractiveShell.clear_instance()


def marks_of(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [mark for bundle in shown if MARKS_MIME in bundle for mark in bundle[MARKS_MIME]["marks"]]


def test_a_cell_that_fails_leaves_its_marks(shell: Any) -> None:
    broken = GEMM.replace("T.clear(", "T.claer(")
    line = next(k for k, text in enumerate(broken.splitlines(), 2) if "T.claer(" in text)
    result, shown, _ = run(shell, f"%%tile {SHAPES} --target cuda:sm_80\n{broken}")
    assert not result.success
    (mark,) = marks_of(shown)
    assert mark["file"] == f"Cell In[{shell.execution_count - 1}]"
    assert mark["line"] == line
    assert mark["text"][mark["column"] : mark["end_column"]] == "T.claer"
    assert ["help", "did you mean T.clear or T.clamp?"] in mark["details"]
    assert shown[0]["text/plain"] == ""


def test_a_line_that_cannot_be_read_leaves_its_mark(shell: Any) -> None:
    _, shown, _ = run(shell, f"%%tile --wiht M=4\n{GEMM}")
    (mark,) = marks_of(shown)
    assert (mark["line"], mark["text"][mark["column"] : mark["end_column"]]) == (1, "--wiht")
    _, shown, _ = run(shell, f"%%tile --with M=4\n{GEMM}")
    (mark,) = marks_of(shown)
    assert (mark["line"], mark["column"]) == (1, 0)
    assert "needs a value for N, K" in mark["what"]


def test_an_error_of_pythons_own_is_marked_in_the_cell(shell: Any) -> None:
    body = "def f(x):\n    é = 1; return x / 0\n\nf(1)\n"
    _, shown, _ = run(shell, f"%%tile --with M=4\n{body}")
    (mark,) = marks_of(shown)
    assert mark["what"] == "ZeroDivisionError: division by zero"
    assert (mark["line"], mark["text"][mark["column"] : mark["end_column"]]) == (3, "x / 0")
    _, shown, _ = run(shell, "%%tile\nimport json\njson.loads(\n    '{'\n)\n")
    (mark,) = marks_of(shown)
    assert mark["what"].startswith("JSONDecodeError")
    assert mark["line"] == 3


def test_a_bench_says_what_its_position_cannot_have(shell: Any) -> None:
    pytest.importorskip("anywidget")
    # Tiles of 1024 x 1024 take more shared memory than there is.
    huge = "--with M=2048 N=2048 K=2048 block_M=1024 block_N=1024 block_K=1024"
    result, shown, _ = run(shell, f"%%tile {huge} --target cuda:sm_80\n{GEMM}")
    assert result.success
    fallback = next(bundle for bundle in shown if MARKS_MIME in bundle)
    assert fallback[MARKS_MIME]["bench"].startswith("tb")
    assert any("shared memory" in mark["what"] for mark in fallback[MARKS_MIME]["marks"])
    assert "text/html" in fallback
