"""A value that a stage repeats is stated once, and its name leads back to it."""

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


def test_a_mapping_that_a_fragment_has_is_named_after_it() -> None:
    function = written_out(
        f"X = T.alloc_fragment((8, 4), T.float32, layout={ROWS})",
        f"T.fill(X, T.float32(0), map={ROWS})",
        f"T.copy(X, A, map={COLUMNS})",
    )
    check(
        function,
        f"X = T.alloc_fragment((8, 4), T.float32, layout={ROWS})",
        "T.fill(X, T.float32(0), map=X.layout)",
        f"T.copy(X, A, map={COLUMNS})",
    )


def test_a_mapping_of_no_fragment_is_bound_at_the_head_by_what_it_writes() -> None:
    copies = (
        "S = T.alloc_shared((8, 4), T.float32)",
        "for k in T.serial(4):",
        f"    T.copy(A, S, map={ROWS})",
        f"T.copy(S, A, map={ROWS})",
    )
    named = [line.replace(ROWS, "S_map") for line in copies]
    check(written_out(*copies), f"S_map = {ROWS}", *named)


def test_a_name_that_the_function_has_is_not_taken() -> None:
    copies = ("X = T.alloc_shared((8, 4), T.float32)", *[f"T.copy(A, X, map={ROWS})"] * 2)
    check(
        written_out(*copies),
        f"X_map__2 = {ROWS}",
        "X = T.alloc_shared((8, 4), T.float32)",
        *["T.copy(A, X, map=X_map__2)"] * 2,
    )


def test_a_fragment_out_of_scope_gives_no_name() -> None:
    branch = (
        "for k in T.serial(4):",
        f"    X = T.alloc_fragment((8, 4), T.float32, layout={ROWS})",
        "    T.fill(X, T.float32(0))",
        f"T.copy(A, A, map={ROWS})",
    )
    named = [line.replace(ROWS, "X_layout") for line in branch]
    check(written_out(*branch), f"X_layout = {ROWS}", *named)


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
        ("T.copy(A, A, map=A.layout)", "A says no layout"),
        ("T.copy(A, A, map=B.layout)", "a stage has no such expression"),
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
