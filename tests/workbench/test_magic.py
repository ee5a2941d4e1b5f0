"""`%%tile` in a real IPython shell, without a notebook: static output, errors at the cell's lines."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workbench.bench_kernels import DOUBLE, GEMM, IMPORTS, SHAPES
from tilebench.errors import TileError
from tilebench.workbench.front.marks import MARKS_MIME
from tilebench.workbench.packed import MIME, unpack

pytest.importorskip("IPython")


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    made = InteractiveShell.instance(config=config)
    made.run_cell(IMPORTS + "%load_ext tilebench")
    yield made
    made.run_line_magic("unload_ext", "tilebench")
    InteractiveShell.clear_instance()


def run(shell: Any, text: str) -> tuple[Any, list[dict[str, Any]], str]:
    """Run a cell: its result, the MIME bundles that it showed, and its text."""
    from IPython.utils.capture import capture_output

    with capture_output() as said:
        result = shell.run_cell(text, store_history=True)
    return result, [each.data for each in said.outputs], said.stdout + said.stderr


def test_a_cell_opens_its_kernel(shell: Any) -> None:
    result, shown, _ = run(shell, f"%%tile {SHAPES} --target cuda:sm_90a --stages source,tile,cuda\n{GEMM}")
    assert result.success
    (bundle,) = shown
    assert set(bundle) == {"text/html", "text/plain", MIME, MARKS_MIME}
    # Rows of 130 float16 do not divide into vectors, which the editor marks at the copy.
    assert {mark["severity"] for mark in bundle[MARKS_MIME]["marks"]} == {"info"}
    assert "gemm for cuda:sm_90a: M=200 N=170 K=130" in bundle["text/plain"]
    assert unpack(bundle[MIME]["packed"])["state"]["shown"] == ["source", "tile", "cuda"]
    assert "__global__" in bundle["text/html"]
    assert shell.user_ns["gemm"].name == "gemm"


def test_lines_count_the_magic(shell: Any) -> None:
    """The kernel starts in line 2 of what the notebook shows, blank lines above it counted."""
    _, shown, _ = run(shell, f"%%tile {SHAPES} --target cuda:sm_80 --stages source\n\n\n{GEMM}")
    assert "\n 4  @tilebench.jit" in shown[0]["text/plain"]


def test_the_last_kernel_or_the_named_one(shell: Any) -> None:
    _, shown, _ = run(shell, f"%%tile --with N=1000 --target cuda:sm_80\n{GEMM}{DOUBLE}")
    assert shown[0]["text/plain"].startswith("double for cuda:sm_80: N=1000 block=64")
    _, shown, _ = run(shell, f"%%tile gemm {SHAPES} --target cuda:sm_80\n{GEMM}{DOUBLE}")
    assert shown[0]["text/plain"].startswith("gemm for cuda:sm_80")
    _, shown, _ = run(shell, "%tile double --with N=96 --target cuda:sm_80")
    assert shown[0]["text/plain"].startswith("double for cuda:sm_80: N=96 block=64")


def test_the_last_line_is_shown_as_in_any_cell(shell: Any) -> None:
    result, _, text = run(shell, f"%%tile --with N=8 --target cuda:sm_80\n{DOUBLE}\n6 * 7\n")
    assert result.success
    assert "42" in text
    assert shell.user_ns["_"] == 42


@pytest.mark.parametrize("stages", ["tile,sass", "sass,threaded"])
def test_stages_of_another_target_are_said_to_be_its(shell: Any, stages: str) -> None:
    _, shown, _ = run(shell, f"%%tile --with N=8 --target cpu --stages {stages}\n{DOUBLE}")
    for form in ("text/plain", "text/html"):
        assert "sass is a stage of cuda: on cpu its usual stages stand in for it" in shown[0][form]
        assert ("threaded is a stage of cuda" in shown[0][form]) == ("threaded" in stages)
    _, shown, _ = run(shell, f"%%tile --with N=8 --target cuda:sm_80 --stages {stages}\n{DOUBLE}")
    assert "is a stage of" not in shown[0]["text/plain"]


@pytest.mark.parametrize(
    ("line", "body", "words"),
    [
        ("--wiht M=1", GEMM, ["did you mean --with?"]),
        ("", GEMM, ["gemm needs a value for M, N, K", "block_K=32", "--with M=1024 N=1024 K=1024"]),
        (SHAPES + " Q=1", GEMM, ["gemm has no parameter Q"]),
        (SHAPES + " --target cuda:sm_91", GEMM, ["sm_91", "sm_90"]),
        (SHAPES + " --stages tile,cudda", GEMM, ["no stage 'cudda'", "did you mean cuda?"]),
        (SHAPES + " --sweep block_Q=1,2", GEMM, ["nothing called block_Q", "did you mean block_"]),
        (SHAPES + " --sweep ko.num_stages=1,99", GEMM, ["num_stages of a loop cannot be 99"]),
        (SHAPES + " --schedule none.toml", GEMM, ["none.toml cannot be read"]),
        ("gem " + SHAPES, GEMM, ["no kernel called gem", "did you mean gemm?"]),
        ("--with M=1", "x = 1\n", ["the cell defines no kernel"]),
    ],
)
def test_what_is_told(shell: Any, line: str, body: str, words: list[str]) -> None:
    result, shown, _ = run(shell, f"%%tile --target cuda:sm_90a {line}\n{body}" if "--target" not in line
                           else f"%%tile {line}\n{body}")  # fmt: skip
    assert isinstance(result.error_in_exec, TileError)
    assert not shown
    text = result.error_in_exec.explain()
    for word in words:
        assert word in text


def drawn(shell: Any, text: str) -> str:
    """What IPython prints of a cell's error."""
    result, _, said = run(shell, text)
    assert result.error_in_exec is not None
    return said


def test_an_error_of_the_kernel_stands_at_its_line(shell: Any) -> None:
    body = GEMM.replace("T.clear", "T.clea")
    text = drawn(shell, f"%%tile {SHAPES} --target cuda:sm_80\n{body}")
    assert "there is no T.clea" in text
    assert ":10, in main\n    T.clea(C_local)\n    " in text  # line 9 of the kernel, and the magic's
    assert "tilebench/" not in text
    assert "Traceback" not in text


def test_a_syntax_error_stands_at_its_line(shell: Any) -> None:
    text = drawn(shell, f"%%tile {SHAPES}\n{GEMM.replace('return main', 'return main)')}")
    assert "this is not Python" in text
    assert ":16\n    return main)\n" in text


@pytest.mark.parametrize(
    ("body", "why", "cure"),
    [
        ("import asyncio\nawait asyncio.sleep(0)", "'await' outside function", "in a cell of its own"),
        ("x = 1\nasync with x: pass", "'async with' outside async function", "in a cell of its own"),
        ("x = 1\n[i async for i in x]", "asynchronous comprehension", "in a cell of its own"),
        ("x = 1\nreturn x", "'return' outside function", "leave the return out"),
        ("x = 1\nyield x", "'yield' outside function", "belongs in a function"),
        ("x = 1\nbreak", "'break' outside loop", ""),
        ("x = 1\nnonlocal x", "name 'x' is assigned to before nonlocal declaration", ""),
    ],
)
def test_a_statement_that_belongs_in_a_function(shell: Any, body: str, why: str, cure: str) -> None:
    text = drawn(shell, f"%%tile {SHAPES}\n{body}")
    assert f"this is not Python: {why}" in text
    assert f":3\n    {body.splitlines()[1]}\n" in text
    assert cure in text
    assert "Traceback" not in text


def test_an_indent_that_fits_nothing_stands_at_its_line(shell: Any) -> None:
    # The shell's own transformation of a cell reads indents and raises before any code of ours.
    text = drawn(shell, f"%%tile {SHAPES}\n{GEMM.replace('    return main', '  return main')}")
    assert "this is not Python: unindent does not match any outer indentation level" in text
    assert ":16\n" in text
    assert "magic.py" not in text


def test_an_ordinary_error_keeps_its_traceback(shell: Any) -> None:
    text = drawn(shell, f"%%tile {SHAPES}\n\nx = 1\ndef f():\n    return x / 0\nf()\n")
    assert "ZeroDivisionError: division by zero" in text
    assert "----> 5     return x / 0" in text
    assert "----> 6 f()" in text
    assert "magic.py" not in text
    assert "run_cell_magic" not in text


def test_a_combination_that_cannot_be_is_told_with_its_arithmetic(shell: Any) -> None:
    big = "block_M=256 block_N=256 block_K=128 num_stages=2"
    text = drawn(shell, f"%%tile {SHAPES} {big} --target cuda:sm_80\n{GEMM}")
    assert "resource error" in text
    assert "so at most" in text
    assert "A_s 2 stages x 65536 bytes = 131072" in text


def test_help_tells_everything(shell: Any) -> None:
    doc = shell.find_cell_magic("tile").__doc__
    for word in (
        "--with",
        "--sweep",
        "--stages",
        "--run",
        "--check",
        "--schedule",
        "cuda:sm_90a",
        "tilebench.workbench(",
    ):
        assert word in doc


def test_values_show_themselves(shell: Any) -> None:
    run(shell, f"%%tile {SHAPES} --target cuda:sm_80\n{GEMM}")
    form = shell.display_formatter.format
    kernel = shell.user_ns["gemm"].using(target="cuda:sm_80")(64, 64, 64)
    for value, word in ((kernel, "gemm for cuda:sm_80"), (kernel.record(("tile",)), "gemm for cuda:sm_80"),
                        (TileError("odd"), "error: odd")):  # fmt: skip
        data, _ = form(value)
        assert word in data["text/plain"]
        assert data["text/html"].startswith("<style>")


def test_headless_takes_no_thread_and_leaves_nothing(shell: Any) -> None:
    from tilebench.workbench.registry import open_benches

    before = {each.name for each in threading.enumerate()}
    for _ in range(5):
        run(shell, f"%%tile {SHAPES} --target cuda:sm_80 --stages tile\n{GEMM}")
    gc.collect()
    assert {each.name for each in threading.enumerate()} <= before
    assert [each.name for each in open_benches() if each.name == "gemm"] == ["gemm"]


def test_unload_takes_everything_away(shell: Any) -> None:
    from tilebench.workbench.registry import open_benches

    shell.run_line_magic("unload_ext", "tilebench")
    try:
        assert shell.find_cell_magic("tile") is None
        assert not open_benches()
        assert not hasattr(TileError, "_render_traceback_")
    finally:
        shell.run_line_magic("load_ext", "tilebench")
    assert shell.find_cell_magic("tile") is not None
