"""The text that Python runs is the one that is compiled, wherever it is from, whatever was written since."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
from tilebench.errors import LanguageError, remember_source
from tilebench.frontend import trace

KERNEL = """\
import tilebench
import tilebench.language as T

def helper(x):
    return x * 1.0

@tilebench.jit(target="cpu")
def made(N=2):
    @T.prim_func
    def main(C: T.Tensor((N,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(N):
                C[i] = helper(7.0)

    return main
"""
PLAIN = KERNEL.replace('@tilebench.jit(target="cpu")\n', "")
ROOT = str(Path(__file__).parents[2])


def result(made: Any) -> float:
    out = np.zeros(2, np.float32)
    made()(out)
    return float(out[0])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    (tmp_path / "kernels_of_a_test.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("kernels_of_a_test")
    sys.modules.pop("kernels_of_a_test", None)


def edit(module: types.ModuleType, old: str, new: str) -> None:
    path = Path(str(module.__file__))
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, (2e9, 2e9))


@pytest.mark.parametrize(
    "edited", [("7.0", "8.0"), ("import tilebench\n", "import tilebench\n\n\n"), ("made", "x")]
)
def test_an_edited_file_is_compiled_as_python_read_it(
    module: types.ModuleType, edited: tuple[str, str]
) -> None:
    edit(module, *edited)
    assert result(module.made) == 7.0
    assert result(module.made.using(schedule=None)) == 7.0
    assert "helper(7.0)" in module.made().compilation.traced.text


def test_errors_quote_the_text_that_ran(module: types.ModuleType) -> None:
    edit(module, "C[i] =", "C[i] = 2 *")
    module.helper = lambda _: T_missing  # type: ignore[name-defined]  # noqa: F821
    with pytest.raises(LanguageError, match=r"kernels_of_a_test.py \(as it was read\):13") as caught:
        module.made()
    assert "C[i] = helper(7.0)" in str(caught.value)


def test_a_reload_takes_the_new_text(module: types.ModuleType) -> None:
    assert result(module.made) == 7.0
    edit(module, "7.0", "8.0")
    assert result(module.made) == 7.0
    assert result(importlib.reload(module).made) == 8.0


def test_code_that_a_tool_put_in_place_is_found_in_the_new_text(module: types.ModuleType) -> None:
    old = module.made
    edit(module, "7.0", "8.0")
    new = importlib.reload(module).made
    old.function.__code__ = new.function.__code__  # what %autoreload does
    assert result(old) == 8.0


def test_a_kernel_of_an_edited_file_without_jit_is_refused(module: types.ModuleType) -> None:
    text = "import tilebench\ndef build(module):\n    return module.made.function()\n"
    space: dict[str, Any] = {}
    remember_source("caller", text)
    exec(compile(text, "caller", "exec", dont_inherit=True), space)
    build = tilebench.jit(target="cpu")(space["build"])
    assert build(module) is not None
    edit(module, "7.0", "8.0")
    other = types.ModuleType("other")
    other.made = module.made  # type: ignore[attr-defined]
    with pytest.raises(LanguageError, match="the source of main has changed since Python read it") as caught:
        build(other)
    assert "import the module again" in str(caught.value)


def test_texts_of_one_name_are_told_apart() -> None:
    spaces: list[dict[str, Any]] = [{}, {}, {}]
    for k, space in enumerate(spaces):
        text = KERNEL.replace("7.0", f"{k}.0")
        exec(text, space)
    assert [result(space["made"]) for space in spaces] == [0.0, 1.0, 2.0]


def test_a_form_feed_ends_no_line() -> None:
    space: dict[str, Any] = {}
    text = "\f\n# \x85 \u2028\n" + KERNEL
    remember_source("feeds", text)
    exec(compile(text, "feeds", "exec", dont_inherit=True), space)
    assert result(space["made"]) == 7.0


def test_a_file_in_latin_1_with_its_cookie(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\n" + KERNEL.replace("7.0)", "7.0)  # \u00e9\u00fc")
    text += "\n@tilebench.jit(target='cpu')\ndef wrong():\n    '\u00e9'; return T.nothing\n"
    path = tmp_path / "latin.py"
    path.write_text(text, encoding="latin-1")
    space: dict[str, Any] = {}
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), space)
    assert result(space["made"]) == 7.0
    with pytest.raises(LanguageError) as caught:
        space["wrong"]()
    place = caught.value.place
    assert place is not None
    assert place.text[place.column : place.end_column] == "T.nothing"


RUN = KERNEL + "import numpy\nout = numpy.zeros(2, 'float32')\nmade()(out)\nprint(out[0])\n"


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, **options
    )


def test_standard_input(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(RUN)
    with (tmp_path / "run.py").open() as file:
        assert python(stdin=file).stdout == "7.0\n"
    piped = python("-", input=RUN)
    assert "<stdin> is no file and no remembered text" in piped.stderr
    assert "save it as a file and run that, give it to python -c, or use IPython" in piped.stderr


def test_the_command_line_and_exec(tmp_path: Path) -> None:
    assert python("-c", RUN).stdout == "7.0\n"
    (tmp_path / "run.py").write_text(RUN)
    code = f"text = open({str(tmp_path / 'run.py')!r}).read()\nexec(text)"
    assert python("-c", code).stdout == "7.0\n"
    lost = python("-c", code.replace("text = ", "exec(").replace(".read()\nexec(text)", ".read())"))
    assert (
        "give it to errors.remember_source(file, text) before exec(compile(text, file, 'exec'))"
        in lost.stderr
    )


MAGICS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
text = {text!r}
for magic in ("%%time", "%%timeit -n1 -r1", "%%prun -q", "%%capture kept", "%%time"):
    found = shell.run_cell(magic + "\\n" + text.replace("7.0", f"{{len(magic)}}.0"))
    assert found.success, magic
shell.run_cell("kept.show()")
"""


def test_under_the_magics_that_run_a_cell() -> None:
    run = python("-c", textwrap.dedent(MAGICS).format(text=RUN))
    numbers = [line.strip() for line in run.stdout.splitlines() if line.endswith(".0")]
    assert numbers == ["6.0", "16.0", "9.0", "6.0", "14.0"], run.stdout + run.stderr


def instrumented(path: Path, text: str = PLAIN) -> dict[str, Any]:
    """The names of a file in whose functions a tool has put statements, as some do."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.body.insert(0, ast.copy_location(ast.Pass(), node.body[0]))
            node.body.insert(0, ast.copy_location(ast.parse("seen = 1").body[0], node.body[0]))
    space: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True), space)
    return space


def test_code_that_a_tool_has_changed_is_its_files_while_that_is_old(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(PLAIN)
    os.utime(path, (1e9, 1e9))
    made = instrumented(path)["made"]
    assert trace(made).file == str(path)
    os.utime(path, (2e9, 2e9))
    with pytest.raises(LanguageError, match="the source of made has changed since Python read it"):
        trace(made)


def test_what_jit_read_while_the_definition_ran_is_the_text(tmp_path: Path) -> None:
    """Whatever the date of the file says, and a tool did to the code."""
    path = tmp_path / "new.py"
    path.write_text(KERNEL)
    os.utime(path, (2e9, 2e9))
    assert result(instrumented(path, KERNEL)["made"]) == 7.0


def test_jit_after_the_file_was_edited_takes_no_new_text(tmp_path: Path) -> None:
    path = tmp_path / "late.py"
    path.write_text(PLAIN)
    space: dict[str, Any] = {}
    exec(compile(PLAIN, str(path), "exec", dont_inherit=True), space)
    assert result(tilebench.jit(target="cpu")(space["made"])) == 7.0
    path.write_text(PLAIN.replace("7.0", "8.0"))
    os.utime(path, (2e9, 2e9))
    with pytest.raises(LanguageError, match="the source of made has changed since Python read it"):
        tilebench.jit(target="cpu")(space["made"])()
