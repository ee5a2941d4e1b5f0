"""A long value of a stage is stated once, and its name leads back to it."""

from __future__ import annotations

import pytest

from tilebench.errors import IRError
from tilebench.ir import Function, Stmt, line_numbers, parse_function, print_function, walk
from tilebench.language.words import registry

ROWS = "T.Fragment((8, 4), thread=((8, 0, 1), (4, 1, 1)))"
COLUMNS = "T.Fragment((8, 4), thread=((4, 1, 1), (8, 0, 1)))"
HEAD = "@T.prim_func\ndef main(A: T.Tensor((8, 4), T.float32), X_map: T.Tensor((8, 4), T.float32)):\n"


def stage(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def written_out(*lines: str) -> Function:
    return parse_function(stage(*lines), registry(), "stage")


def check(function: Function, *lines: str) -> None:
    """The function prints as `lines`, and they parse back equal."""
    printed = print_function(function)
    assert printed.text == stage(*lines)
    assert parse_function(printed.text, registry()) == function
    assert len(printed.nodes) == len(printed.text.splitlines())


def test_a_layout_is_named_after_its_buffer_and_defined_at_the_head() -> None:
    check(
        written_out(
            f"X = T.alloc_fragment((8, 4), T.float32, layout={ROWS})",
            f"T.fill(X, T.float32(0), map={ROWS})",
            f"T.copy(X, A, map={COLUMNS})",
        ),
        f"X_frag = {ROWS}",
        f"X_map__2 = {COLUMNS}",
        "X = T.alloc_fragment((8, 4), T.float32, layout=X_frag)",
        "T.fill(X, T.float32(0), map=X_frag)",
        "T.copy(X, A, map=X_map__2)",
    )


def test_a_mapping_of_no_fragment_is_named_after_what_it_writes() -> None:
    copies = (
        "S = T.alloc_shared((8, 4), T.float32)",
        "for k in T.serial(4):",
        f"    T.copy(A, S, map={ROWS})",
        f"T.copy(S, A, map={ROWS})",
    )
    short = [line.replace(ROWS, "S_map") for line in copies]
    check(written_out(*copies), f"S_map = {ROWS}", *short)


@pytest.mark.parametrize(
    ("buffer", "value", "name"),
    [
        ("S = T.alloc_shared", "T.SharedLayout((8, 4), (4, 1), swizzle=T.Swizzle(1, 1, 1))", "S_swizzle"),
        ("S = T.alloc_shared", "T.SharedLayout(((8, 1), 4), ((4, 32), 1))", "S_panels"),
        ("S = T.alloc_shared", "T.SharedLayout((8, 4), (4, 1))", ""),
        ("S_frag = T.alloc_fragment", ROWS, "S_frag_layout"),
        ("S = T.alloc_fragment", "T.Fragment((8, 4), value=((32, 1, 1), (8, 0, 1)))", "S_frag"),
    ],
)
def test_a_name_says_what_it_names_and_what_is_short_has_none(buffer: str, value: str, name: str) -> None:
    alloc = f"{buffer}((8, 4), T.float32, layout="
    head = [f"{name} = {value}"] if name else []
    check(written_out(f"{alloc}{value})"), *head, f"{alloc}{name or value})")


def test_a_fragment_of_one_mode_is_short() -> None:
    line = "X = T.alloc_fragment((4,), T.float32, layout=T.Fragment((4,), thread=((4, 0, 1),)))"
    check(written_out(line), line)


def test_a_name_that_the_function_has_is_not_taken() -> None:
    copies = ("X = T.alloc_shared((8, 4), T.float32)", *[f"T.copy(A, X, map={ROWS})"] * 2)
    check(
        written_out(*copies),
        f"X_map__2 = {ROWS}",
        "X = T.alloc_shared((8, 4), T.float32)",
        *["T.copy(A, X, map=X_map__2)"] * 2,
    )


def named(*lines: str) -> list[str]:
    return [name for name, _, _ in print_function(written_out(*lines)).names.definitions]


def test_a_value_keeps_its_name_where_a_pass_adds_buffers_and_statements_change_places() -> None:
    tile = "S = T.alloc_shared((8, 4), T.float32)"
    ring = f"R = T.alloc_fragment((8, 4), T.float32, layout={ROWS})"
    assert named(tile, f"T.copy(A, S, map={ROWS})") == ["S_map"]
    assert named(tile, ring, f"T.copy(A, R, map={ROWS})", f"T.copy(A, S, map={ROWS})") == ["S_map"]
    two = [f"T.copy(A, S, map={ROWS})", f"T.copy(A, R, map={COLUMNS})"]
    other = "R = T.alloc_shared((8, 4), T.float32)"
    assert named(tile, other, *two) == named(tile, other, *two[::-1]) == ["S_map", "R_map"]


def test_a_mapping_is_named_after_the_fragment_that_it_moves() -> None:
    lines = (
        "S = T.alloc_shared((8, 4), T.float32)",
        f"X = T.alloc_fragment((8, 4), T.float32, layout={ROWS})",
        f"T.copy(X, S, map={ROWS})",
    )
    assert named(*lines) == ["X_frag"]
    assert named(lines[0], "X = T.alloc_fragment((8, 4), T.float32)", lines[2]) == ["X_map__2"]


def test_an_edited_definition_is_what_all_its_uses_have() -> None:
    function = written_out(
        f"X = T.alloc_fragment((8, 4), T.float32, layout={ROWS})", f"T.copy(A, X, map={ROWS})"
    )
    edited = print_function(function).text.replace(f"X_frag = {ROWS}", f"X_frag = {COLUMNS}")
    wanted = written_out(
        f"X = T.alloc_fragment((8, 4), T.float32, layout={COLUMNS})", f"T.copy(A, X, map={COLUMNS})"
    )
    assert parse_function(edited, registry()) == wanted


def test_lines_and_places_are_those_of_the_statements() -> None:
    function = written_out(
        "S = T.alloc_shared((8, 4), T.float32)",
        "if True:",
        f"    T.copy(A, S, map={ROWS})",
        "else:",
        f"    T.copy(A, S, map={ROWS})",
    )
    printed = print_function(function)
    assert printed.text.splitlines()[2].strip() == f"S_map = {ROWS}"
    copies = [node for node in walk(function) if type(node).__name__ == "Copy"]
    assert printed.nodes[2] is copies[0]
    assert printed.places[2] == copies[0].place
    numbers = line_numbers(function)
    again = parse_function(printed.text, registry(), "printed")
    for old, new in zip(walk(function), walk(again), strict=True):
        if isinstance(old, Stmt) and not isinstance(old, Function):
            assert new.place is not None
            assert numbers[id(old)] == new.place.line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("T.copy(A, A, map=A.layout)", "a stage has no such expression"),
        ("T.copy(A, A, map=rows)", "the name rows is not bound"),
        ("X_map = T.Panels(3)", "the name X_map is bound twice"),
        ("rows = T.Panels(3)\n    rows = T.Panels(3)", "the name rows is bound twice"),
        ("rows = T.Panels(3)\n    rows: T.int32 = 3", "the name rows is bound twice"),
        ("rows = T.Panels(3)\n    A[rows, 0] = A[0, 0]", "rows is a T.Panels; a number is expected"),
        ("x: T.int32 = 3\n    rows = T.Panels(3)", "T.Panels is no such word here"),
    ],
)
def test_a_wrong_name_is_told_at_its_line(line: str, message: str) -> None:
    with pytest.raises(IRError) as caught:
        parse_function(stage(line), registry(), "edited")
    assert message in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == 2 + len(line.splitlines())
