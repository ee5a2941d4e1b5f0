"""The `tile` stage of whole kernels, as text; and that each text parses back to an equal function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.frontend import kernels
from tilebench.frontend import trace
from tilebench.ir import Function, Stmt, parse_function, print_function, walk
from tilebench.language import registry
from tilebench.language.copy import Copy

GOLDEN = Path(__file__).parent / "golden"
BLOCKS = {"block_M": 128, "block_N": 128, "block_K": 32}
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "add": (kernels.add_kernel, {"M": 1000, "N": 1200, "block_M": 64, "block_N": 128}),
    "gemm": (kernels.gemm_kernel, {"M": 1000, "N": 1100, "K": 1200, **BLOCKS, "threads": 256}),
    "global_gemm": (kernels.global_gemm_kernel, {"M": 1000, "N": 1100, "K": 1200, **BLOCKS}),
    "row_sum": (kernels.row_sum_kernel, {"M": 1000, "N": 1000, "block_M": 32, "block_N": 96}),
    "softmax": (kernels.softmax_kernel, {"M": 1000, "N": 900, "block_M": 4}),
    "variants": (kernels.variants_kernel, {"M": 256, "negate": True}),
}


def function_of(name: str) -> Function:
    kernel, parameters = CASES[name]
    return trace(kernel, parameters).function


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.tile").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(CASES))
def test_text(name: str, request: pytest.FixtureRequest) -> None:
    text = print_function(function_of(name)).text
    if request.config.getoption("--update-golden"):
        (GOLDEN / f"{name}.tile").write_text(text, encoding="utf-8")
    assert text == golden(name)


@pytest.mark.parametrize("name", list(CASES))
def test_text_parses_back(name: str) -> None:
    function = function_of(name)
    assert parse_function(print_function(function).text, registry()) == function


@pytest.mark.parametrize("name", list(CASES))
def test_every_statement_has_the_line_it_comes_from(name: str) -> None:
    function = function_of(name)
    lines = Path(kernels.__file__).read_text(encoding="utf-8").splitlines()
    for node in walk(function):
        if isinstance(node, Stmt):
            assert node.place is not None, node
            assert node.place.file == kernels.__file__
            assert node.place.text == lines[node.place.line - 1]
            assert node.place.text[node.place.column] != " "


def test_static_if_leaves_no_trace() -> None:
    text = print_function(trace(kernels.variants_kernel, {"M": 256}).function).text
    assert text == golden("variants").replace("            value__2: T.float32 = -value\n", "").replace(
        "value__2", "value"
    )


def test_places_inside_a_helper_name_both_lines() -> None:
    copies = [n for n in walk(function_of("variants")) if isinstance(n, Copy)]
    first, _, last = copies
    assert first.place is not None
    assert last.place is not None
    assert first.place.text.strip() == "T.copy(A[row, 0], a)"
    assert first.place.function == "stage_both"
    assert first.place.user.text.strip() == "a_s, b_s = stage_both(A, B, bx * 64, 64)"
    assert last.place.caller is None


def test_places_of_loads_are_their_own_columns() -> None:
    store = next(n for n in walk(function_of("add")) if type(n).__name__ == "Store")
    loads = [n for n in walk(store) if type(n).__name__ == "Load"]
    texts = [n.place.text[n.place.column : n.place.end_column] for n in loads if n.place is not None]
    assert texts == [
        "A[by * block_M + i, bx * block_N + j]",
        "B[by * block_M + i, bx * block_N + j]",
    ]
