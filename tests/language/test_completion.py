"""What editors show of the language: names, signatures and documentation of the words, no insides."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing

import pytest

import tilebench
import tilebench.language as T
from tilebench.language.tracing import taken, values

INSIDE = {"PrimFunc", "TensorSpec", "registry"}


def test_names() -> None:
    assert set(dir(T)) == set(T.__all__) - INSIDE
    assert set(dir(tilebench)) == set(tilebench.__all__)
    assert not [name for name in dir(T) if inspect.ismodule(getattr(T, name))]


@pytest.mark.parametrize("jedi", [True, False])
def test_the_notebooks_completion(jedi: bool) -> None:
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from IPython.core.completer import provisionalcompleter\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('import tilebench.language as T')\n"
        f"shell.Completer.use_jedi = {jedi}\n"
        "with provisionalcompleter():\n"
        "    print(*{each.text.lstrip('.') for each in shell.Completer.completions('T.', 2)})\n"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    found = {name for name in run.stdout.split() if not name.startswith("_")}
    assert found == set(dir(T)), run.stderr


FUNCTIONS = [name for name in dir(T) if inspect.isfunction(getattr(T, name))]


@pytest.mark.parametrize("name", [name for name in dir(T) if callable(getattr(T, name))])
def test_no_signature_has_quotes_or_objects(name: str) -> None:
    assert not re.search(r"\bobject\b|: '|-> '", str(inspect.signature(getattr(T, name))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_words_signature_and_documentation(name: str) -> None:
    word = getattr(T, name)
    doc = inspect.getdoc(word)
    assert doc is not None
    assert len(doc) > 10
    # The types are real: each can be found by its name.
    typing.get_type_hints(word, {**vars(sys.modules[word.__module__]), **vars(taken), **vars(values)})


def test_signatures_read_as_they_are_written() -> None:
    assert str(inspect.signature(T.reduce_sum)) == (
        "(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1) -> None"
    )
    assert str(inspect.signature(T.float16)) == "(value: Number | None = None) -> Value"
    assert str(inspect.signature(T.alloc_shared)).startswith("(shape: Shape, dtype: DTypeLike, ")
