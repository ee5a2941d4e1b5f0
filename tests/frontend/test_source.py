"""Source from files, cells, `exec` and passed text; the two forms; parameters and knobs."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frontend import kernels
from tests.frontend.cell import run_cell
from tilebench.errors import ArgumentError, LanguageError
from tilebench.frontend import check_syntax, form_of, knobs_of, read_source, source_of, trace
from tilebench.ir import print_function
from tilebench.language import Knob

CELL = """\
import tilebench.language as T

def kernel(M=64, block: T.knob(16, 32) = 32, stages=T.Knob(range(1, 4))):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block)) as bx:
            T.fill(A[bx * block : bx * block + block], stages)

    return main
"""


def test_file_keeps_its_lines() -> None:
    source = source_of(kernels.add_kernel)
    assert source.file == kernels.__file__
    assert source.text.startswith("def add_kernel(")
    lines = Path(kernels.__file__).read_text(encoding="utf-8").splitlines()
    assert lines[source.first_line - 1].startswith("def add_kernel(")


def test_passed_text_keeps_the_numbers_of_its_file() -> None:
    space: dict[str, Any] = {}
    exec(compile("\n" * 40 + CELL, "<nowhere>", "exec", dont_inherit=True), space)
    found = trace(space["kernel"], text=CELL, file="notes.txt", first_line=41)
    assert (found.file, found.first_line) == ("notes.txt", 43)
    place = found.function.body[0].place
    assert place is not None
    assert (place.file, place.line) == ("notes.txt", 46)
    assert place.text.strip() == "with T.Kernel(T.ceildiv(M, block)) as bx:"


def test_text_that_was_never_kept_is_an_error() -> None:
    space: dict[str, Any] = {}
    exec(CELL, space)
    with pytest.raises(LanguageError, match="the source of kernel cannot be read") as caught:
        trace(space["kernel"])
    assert "remember_source" in str(caught.value)


def test_a_file_that_changed_is_an_error_until_it_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "changing.py"
    path.write_text(CELL, encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(CELL, str(path), "exec", dont_inherit=True), space)
    assert trace(space["kernel"]).name == "kernel"
    path.write_text("# a new first line\n" + CELL, encoding="utf-8")
    linecache.clearcache()
    with pytest.raises(LanguageError, match="has changed since Python read it"):
        trace(space["kernel"])
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), space)
    assert trace(space["kernel"]).first_line == 4


def test_a_notebooks_cell_is_shown_as_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "/tmp/ipykernel_77/1234.py"
    named = {file: ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=named.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    linecache.cache[file] = (len(CELL), None, CELL.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(CELL, file, "exec", dont_inherit=True), space)
    found = trace(space["kernel"])
    place = found.function.body[0].place
    assert place is not None
    assert str(place) == "Cell In[3]:6"
    assert place.text.strip().startswith("with T.Kernel")


def test_annotations_left_as_text_find_names_that_the_body_does_not_use() -> None:
    text = "from __future__ import annotations\n" + CELL.replace("(M,)", "(M, width)").replace(
        "    @T.prim_func", "    width = 3\n    @T.prim_func"
    ).replace("A[bx * block : bx * block + block]", "A[bx * block : bx * block + block, :]")
    found = trace(run_cell(text)["kernel"], {"M": 128})
    assert found.function.params[0].shape == (128, 3)
    assert found.knobs == {"block": Knob(16, 32), "stages": Knob(1, 2, 3)}


def test_bytes_and_characters_of_a_line_are_told_apart() -> None:
    text = CELL.replace("T.fill(A[", "数 = '数'; T.fill(A[")
    fill = trace(run_cell(text)["kernel"]).function.body[0]
    place = getattr(fill, "body")[0].place  # noqa: B009
    assert place.text[place.column : place.end_column] == "T.fill(A[bx * block : bx * block + block], stages)"


def test_a_kernel_made_in_another_file_is_quoted_from_there() -> None:
    text = "def kernel(make, M):\n    return make(M, 64, 32, 32)\n"
    found = trace(run_cell(text)["kernel"], {"make": kernels.add_kernel, "M": 64})
    assert found.file == "cell"
    place = found.function.place
    assert place is not None
    assert place.file == kernels.__file__


def test_a_bare_prim_func_is_traced_too() -> None:
    prim = kernels.add_kernel(64, 64, 32, 32)
    assert print_function(trace(prim).function).text.startswith("@T.prim_func\ndef main(A: T.Tensor((64, 64)")


def test_parameters_and_knobs() -> None:
    kernel = run_cell(CELL)["kernel"]
    assert knobs_of(kernel) == {"block": Knob(16, 32), "stages": Knob(1, 2, 3)}
    found = trace(kernel, {"M": 100})
    assert found.parameters == {"M": 100, "block": 32, "stages": 1}
    assert print_function(found.function).text.splitlines()[2:] == [
        "    with T.Kernel(4) as bx:",
        "        T.fill(A[bx * 32 : bx * 32 + 32], T.float32(1))",
    ]
    with pytest.raises(ArgumentError, match="kernel has no parameter blok") as caught:
        trace(kernel, {"blok": 3})
    assert "did you mean block?" in str(caught.value)
    with pytest.raises(ArgumentError, match="needs a value for M, N, block_M, block_N"):
        trace(kernels.add_kernel)


def test_forms() -> None:
    space = run_cell(
        "import tilebench.language as T\n\n"
        "def eager(A, M):\n    A: T.Tensor((M,), 'float16')\n"
        "    with T.Kernel(4) as bx:\n        T.clear(A)\n\n"
        "def passed_on(M):\n    return eager\n"
    )
    assert form_of(space["eager"]) == "eager"
    assert form_of(space["passed_on"]) == "lazy"
    assert form_of(kernels.add_kernel) == "lazy"


def test_syntax_is_checked_with_its_place() -> None:
    check_syntax(CELL, "cell")
    with pytest.raises(LanguageError) as caught:
        check_syntax("x = 1\nfor in range(3):\n", "cell")
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line, place.column) == ("cell", 2, 4)


def test_a_file_is_read_in_the_encoding_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    assert read_source(path).endswith("x = '\u00e9'\n")
    for data, why in (
        (b"x = '\xe9'\n", "invalid or missing encoding"),
        (b"# coding: nothing\n", "unknown encoding"),
    ):
        path.write_bytes(data)
        with pytest.raises(LanguageError, match=f"latin.py is no text that Python reads: {why}") as caught:
            read_source(path)
        assert "# -*- coding: latin-1 -*-" in str(caught.value)


def test_tracing_is_fast() -> None:
    parameters = {"M": 1024, "N": 1024, "K": 1024, "block_M": 128, "block_N": 128, "block_K": 32}
    trace(kernels.gemm_kernel, parameters)
    times: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        trace(kernels.gemm_kernel, parameters)
        times.append(time.perf_counter() - start)
    # 0.7 ms on a quiet core; the least of 20 is not moved by what else the machine does.
    assert min(times) < 0.003


def test_comments_and_docstrings_are_skipped() -> None:
    text = textwrap.dedent('''\
        import tilebench.language as T
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            """What it does."""
            # nothing here
            with T.Kernel(1):
                pass
        ''')
    made = trace(run_cell(text)["main"])
    assert print_function(made.function).text.splitlines()[2:] == [
        "    with T.Kernel(1) as bx:",
        "        pass",
    ]


PRINTED = "print(tilebench.frontend.trace(kernel).file)\n"


def test_source_in_an_archive_and_on_the_command_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kept.zip", "w") as archive:
        archive.writestr("kept.py", CELL)
        archive.writestr("__main__.py", "import tilebench.frontend\nfrom kept import kernel\n" + PRINTED)
    runs = ([str(tmp_path / "kept.zip")], ["-c", "import tilebench.frontend\n" + CELL + PRINTED])
    for arguments, file in zip(runs, (str(tmp_path / "kept.zip" / "kept.py"), "<string>"), strict=True):
        run = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert run.stdout.strip() == file, run.stderr
