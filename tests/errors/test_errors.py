"""Places, carets and the filling of templates."""

from __future__ import annotations

import pytest

from tilebench import errors
from tilebench.errors import (
    IRError,
    LanguageError,
    Place,
    TileError,
    draw_place,
    nearest,
    remember_source,
    set_translation,
)

TEXT = "first\n\tindented(x)\n名前 = f(値)  # 名\nlast"


@pytest.fixture(autouse=True)
def kept() -> None:
    remember_source("<cell>", TEXT)


def test_carets_under_the_span() -> None:
    assert draw_place(Place("<cell>", 1, 1, 1, 4)) == "  at <cell>:1\n    first\n     ^^^"


def test_carets_after_a_tab_and_under_wide_characters() -> None:
    assert draw_place(Place("<cell>", 2, 1, 2, 12)).splitlines()[1:] == ["    indented(x)", "    ^^^^^^^^^^^"]
    assert draw_place(Place("<cell>", 3, 7, 3, 8)).splitlines()[1:] == [
        "    名前 = f(値)  # 名", "             ^^",
    ]  # fmt: skip


def test_a_span_over_several_lines_or_without_an_end_goes_to_the_end_of_the_line() -> None:
    for place in (Place("<cell>", 1, 2, 4, 2), Place("<cell>", 1, 2)):
        assert draw_place(place).splitlines()[2] == "      ^^^"
    assert draw_place(Place("<cell>", 1, 2, 1, 2)).splitlines()[2] == "      ^^^"


def test_a_source_that_is_gone_leaves_file_and_line() -> None:
    assert draw_place(Place("nowhere.txt", 3, 1)) == "  at nowhere.txt:3"
    assert draw_place(Place("<cell>", 99)) == "  at <cell>:99"


def test_the_chain_of_callers() -> None:
    inner = Place("<cell>", 1, 0, 1, 5, "helper", Place("<cell>", 4, 0, 4, 4, "main"))
    text = draw_place(inner)
    assert text.splitlines() == [
        "  at <cell>:1, in helper", "    first", "    ^^^^^",
        "  called from <cell>:4, in main", "    last", "    ^^^^",
    ]  # fmt: skip
    assert inner.user.line == 4


def test_colour_is_only_on_the_carets() -> None:
    lines = draw_place(Place("<cell>", 1, 1, 1, 4), color=True).splitlines()
    assert [("\x1b" in line) for line in lines] == [False, False, True]


def test_a_place_stamps_itself_once() -> None:
    outer, inner = Place("<cell>", 1), Place("<cell>", 2)
    with pytest.raises(TileError) as caught, outer, inner:
        raise IRError("x")
    assert caught.value.place is inner
    with pytest.raises(ValueError, match="x"), outer:
        raise ValueError("x")


def test_templates_are_filled_from_values_even_with_braces_in_them() -> None:
    error = LanguageError(
        "{name} is {value!r}", at=Place("<cell>", 4, 0, 4, 4), name="{x}", value={"a": 1}, expected="{name}",
        hint="no {value}", also=[("the other {name}", Place("<cell>", 1, 0, 1, 5)), ("dropped", None)],
    )  # fmt: skip
    assert error.message == "{x} is {'a': 1}"
    assert error.explain().splitlines() == [
        "language error: {x} is {'a': 1}", "  at <cell>:4", "    last", "    ^^^^",
        "the other {x}:", "  at <cell>:1", "    first", "    ^^^^^", "  expected: {x}", "  help: no {'a': 1}",
    ]  # fmt: skip
    assert str(error) == error.explain()


def test_without_values_a_template_is_plain_text() -> None:
    assert TileError("a set {1, 2}").message == "a set {1, 2}"


def test_a_catalogue_translates_templates() -> None:
    set_translation(
        {
            "shape error": "Formfehler",
            "{n} Zeilen fehlen": "?",
            "{n} rows are missing": "{n} Zeilen fehlen",
        }.get
    )  # type: ignore[arg-type]
    try:
        error = errors.ShapeError("{n} rows are missing", n=3)
        assert error.explain() == "Formfehler: 3 Zeilen fehlen"
    finally:
        set_translation(str)


def test_the_nearest_names_ignore_case() -> None:
    known = ["Parallel", "Pipelined", "serial", "alloc_shared"]
    assert nearest("parallel", known) == ["Parallel"]
    assert nearest("alloc_share", known)[0] == "alloc_shared"
    assert nearest("zzz", known) == []


def test_every_kind_of_error_has_a_title_of_its_own() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    titles = [kind.title for kind in kinds if isinstance(kind, type) and issubclass(kind, TileError)]
    assert len(set(titles)) == len(titles) == 13
